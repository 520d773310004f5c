"""This module finds rows by values: through an index when there are few, else by one scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.storage.faults import translated
from omnigraph.storage.layout import is_blob
from omnigraph.storage.literals import sql_literals

ROW_ADDRESS = "_rowaddr"
CHUNK = 4_096
"""Values looked up by one filter."""
SCAN_FACTOR = 100
"""A scan reads about so many rows in the time an index finds one."""
_SCAN_BATCH = 262_144
_GROUP_ROWS = 4_194_304
_GROUP_BYTES = 128 * 1024 * 1024


def lookup(
    handle: LanceDataset,
    column: str,
    values: pa.Array | pa.ChunkedArray,
    columns: Sequence[str],
    total: int,
) -> pa.Table:
    """Return the rows whose `column` is one of the values, with their addresses.

    `total` is how many rows there are. Nulls match nothing. Blob columns come as bytes.
    """
    if not total:
        return _no_rows(handle, columns)
    wanted = values.unique().drop_null()
    if not len(wanted):
        return _no_rows(handle, columns)
    if len(wanted) <= CHUNK or len(wanted) * SCAN_FACTOR < total:
        starts = range(0, len(wanted), CHUNK)
        chunks = [sql_literals(wanted.slice(at, CHUNK)) for at in starts]
        parts = [_filtered(handle, column, literals, columns) for literals in chunks if literals]
    else:
        parts = _scanned(handle, column, wanted, columns)
    return pa.concat_tables(parts) if parts else _no_rows(handle, columns)


def _filtered(
    handle: LanceDataset, column: str, literals: list[str], columns: Sequence[str]
) -> pa.Table:
    return select(handle, columns, f"`{column}` IN ({', '.join(literals)})")


def _scanned(
    handle: LanceDataset, column: str, wanted: pa.Array, columns: Sequence[str]
) -> list[pa.Table]:
    """Read everything once and keep what matches."""
    names = list(dict.fromkeys([column, *columns]))
    with translated("scanning rows"):
        batches = handle.scanner(
            columns=names,
            with_row_address=True,
            batch_size=_SCAN_BATCH,
            blob_handling="all_binary",
        ).to_batches()
        wanted = _one_zero(wanted)
        groups = _groups(batches)
        hits = (rows.filter(pc.is_in(_one_zero(rows[column]), wanted)) for rows in groups)
        order = [*columns, ROW_ADDRESS]
        return [hit.select(order) for hit in hits if hit.num_rows]


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield many batches at a time: looking up values begins with hashing all that are wanted."""
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(group)
            group, rows, size = [], 0, 0
    if group:
        yield pa.Table.from_batches(group)


def _one_zero(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return values without negative zeros, which Arrow looks up as another number than zero."""
    return (
        pc.add(values, pa.scalar(0, values.type)) if pa.types.is_floating(values.type) else values
    )


def select(handle: LanceDataset, columns: Sequence[str], condition: str | None = None) -> pa.Table:
    """Return the rows that satisfy a condition, with their addresses."""
    with translated("reading rows"):
        return handle.to_table(
            columns=list(columns),
            filter=condition,
            with_row_address=True,
            blob_handling="all_binary",
        )


def select_in_batches(
    handle: LanceDataset, columns: Sequence[str], condition: str, rows: int
) -> Iterator[pa.Table]:
    """Yield the rows that satisfy a condition, so many at a time, with their addresses."""
    with translated("reading rows"):
        batches = handle.scanner(
            columns=list(columns),
            filter=condition,
            with_row_address=True,
            batch_size=rows,
            blob_handling="all_binary",
        ).to_batches()
        for batch in batches:
            yield pa.Table.from_batches([batch])


def count(handle: LanceDataset, condition: str) -> int:
    """Return how many rows satisfy a condition."""
    with translated("counting rows"):
        return int(handle.count_rows(condition))


def count_beside(handle: LanceDataset, base: LanceDataset, condition: str) -> int:
    """Return how many rows satisfy a condition in the fragments a version has from its base."""
    old = {fragment.fragment_id for fragment in base.get_fragments()}
    with translated("counting rows"):
        found = (f for f in handle.get_fragments() if f.fragment_id in old)
        return sum(int(fragment.count_rows(condition)) for fragment in found)


def _no_rows(handle: LanceDataset, columns: Sequence[str]) -> pa.Table:
    fields = [handle.schema.field(name) for name in columns]
    types = [(f.name, pa.large_binary() if is_blob(f) else f.type) for f in fields]
    return pa.schema([*types, (ROW_ADDRESS, pa.uint64())]).empty_table()
