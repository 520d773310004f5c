"""Stage changes of rows by id, with the functions that writers use."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from omnigraph.errors import AlreadyExists
from omnigraph.storage.row_lookup import ROW_ADDRESS, lookup_rows
from omnigraph.storage.staged_writes import replace_rows, write_new_fragments


def append(base: Any, rows: pa.Table) -> Any:
    """Stage rows whose ids are known to be new."""
    return replace_rows(base, [], write_new_fragments(rows, base))


def insert(base: Any, rows: pa.Table) -> Any:
    """Stage rows whose ids must be new; raise AlreadyExists for one that is not."""
    existing = existing_ids(base, rows["id"].to_pylist())
    if existing:
        raise AlreadyExists(f"id '{min(existing)}' already exists", code="key_conflict")
    return append(base, rows)


def upsert(base: Any, rows: pa.Table) -> Any:
    """Stage whole rows: those with an existing id replace it, the others are new."""
    old = _addresses(base, rows["id"].to_pylist())
    return replace_rows(base, old, write_new_fragments(rows, base))


def delete(base: Any, ids: Sequence[str]) -> Any:
    """Stage the removal of rows by id; ids that do not exist are ignored."""
    return replace_rows(base, _addresses(base, ids), [])


def existing_ids(base: Any, ids: Sequence[str]) -> set[str]:
    """Return those of the given ids that the dataset holds."""
    return set(_lookup(base, ids)["id"].to_pylist())


def _addresses(base: Any, ids: Sequence[str]) -> list[int]:
    return list(_lookup(base, ids)[ROW_ADDRESS].to_pylist())


def _lookup(base: Any, ids: Sequence[str]) -> pa.Table:
    return lookup_rows(base, "id", pa.array(ids, pa.string()), ["id"], base.count_rows())
