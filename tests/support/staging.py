"""Stage rows by id on a dataset, with the functions that commits use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from lance import LanceDataset

from omnigraph.storage.index import IndexKind, add_index, build_segment, index_task
from omnigraph.storage.row_lookup import lookup_rows
from omnigraph.storage.staged_writes import replace_rows, write_new_fragments


def append(base: LanceDataset, rows: pa.Table) -> LanceDataset:
    """Stage rows whose ids are new."""
    return replace_rows(base, (), write_new_fragments(rows, base))


def upsert(base: LanceDataset, rows: pa.Table) -> LanceDataset:
    """Stage whole rows: those with an existing id replace it, the others are new."""
    addresses = row_addresses(base, rows["id"].to_pylist())
    return replace_rows(base, addresses, write_new_fragments(rows, base))


def delete(base: LanceDataset, ids: Sequence[str]) -> LanceDataset:
    """Stage the removal of rows by id; ids that do not exist are ignored."""
    return replace_rows(base, row_addresses(base, ids), ())


def row_addresses(base: LanceDataset, ids: Sequence[str]) -> list[int]:
    """Return the addresses of the rows that have one of the ids."""
    values = pa.array(ids, pa.string())
    rows = lookup_rows(base, "id", values, ["id"], base.count_rows())
    addresses: list[int] = rows["_rowaddr"].to_pylist()
    return addresses


def index_column(base: LanceDataset, column: str) -> LanceDataset | None:
    """Stage a BTREE index of a column in one segment; None when all fragments have one."""
    task = index_task(base, column, IndexKind.BTREE)
    if task is None:
        return None
    everything = tuple(fragment.fragment_id for fragment in base.get_fragments())
    task = replace(task, fragments=everything, rebuild=True)
    return add_index(base, task, build_segment(base, task))
