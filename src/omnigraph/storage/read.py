"""This module reads entities out of a version of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.storage.faults import translated
from omnigraph.storage.layout import physical_columns
from omnigraph.storage.literals import sql_text


def read_entity(
    handle: LanceDataset, id_: str, properties: Mapping[str, int]
) -> dict[str, Any] | None:
    """Return one entity by id with its properties under their logical names, or None."""
    columns = physical_columns(handle.schema)
    wanted = {name: columns[identity] for name, identity in properties.items()}
    system = [name for name in ("id", "src", "dst") if name in handle.schema.names]
    projection = {name: name for name in system} | wanted
    with translated("reading an entity"):
        table = handle.to_table(
            columns={name: f"`{column}`" for name, column in projection.items()},
            filter=f"id = {sql_text(id_)}",
        )
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows[0] if rows else None


def count_ids(handle: LanceDataset) -> tuple[int, int]:
    """Read every id; return how many rows there are and how many different ids."""
    with translated("reading ids"):
        ids = handle.to_table(columns=["id"])["id"]
    return len(ids), int(pc.count_distinct(ids).as_py())
