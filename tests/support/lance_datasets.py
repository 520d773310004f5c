"""Builds small bare Lance datasets, for tests of what Lance itself does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from lance import LanceDataset
from lance.fragment import write_fragments

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int32())])


def rows(**values: int | None) -> pa.Table:
    """Return a table of ids and numbers."""
    return pa.table({"id": list(values), "n": list(values.values())}, schema=SCHEMA)


def create(
    uri: str | Path, table: pa.Table | None = None, options: Mapping[str, str] | None = None
) -> LanceDataset:
    """Create a dataset as the storage room does: staged, then one create-if-absent."""
    uri, options = str(uri), dict(options) if options else None
    content = SCHEMA.empty_table() if table is None else table
    staged = write_fragments(
        content, uri, mode="create", return_transaction=True, storage_options=options
    )
    return LanceDataset.commit(
        uri, staged, max_retries=0, storage_options=options, enable_stable_row_ids=False
    )


def append(base: LanceDataset, table: pa.Table, *, detached: bool = False) -> LanceDataset:
    """Append rows as one new fragment."""
    staged = write_fragments(table, base, mode="append", return_transaction=True)
    return LanceDataset.commit(base, staged, detached=detached)


def content(handle: LanceDataset) -> dict[str, Any]:
    """Return every number by id; of several heads the last counts."""
    found = handle.to_table(columns=["id", "n"]).to_pylist()
    others = [row["id"] for row in found if row["id"] != "head"]
    assert len(set(others)) == len(others), "an id stands twice"
    return {row["id"]: row["n"] for row in found}


def files(uri: str | Path) -> set[str]:
    """Return the files below a folder."""
    root = Path(uri)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
