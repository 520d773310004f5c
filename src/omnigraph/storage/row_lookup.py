"""Find rows by values, through an index or by one scan, and write SQL literals of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from math import isfinite

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceFragment

from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import is_blob
from omnigraph.storage.small_fragments import find_keys, split_small_fragments

# --- literals of Lance filters, each in the type of its column ------------------------------------
#
# A literal of another type makes Lance cast the column, which misses rows or fails: a Date64
# compared with a timestamp fails, as does an unsigned 64-bit integer compared with a fraction.


_MIN_INT64 = -(2**63)


def sql_text(value: str) -> str:
    """Return a string as a SQL literal of Lance filters."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def sql_literals(values: pa.Array) -> list[str]:
    """Return literals in the type of a column, without values that equal nothing."""
    type_ = values.type
    if pa.types.is_date64(type_):
        numbers = values.view(pa.int64()).to_pylist()
        return [f"arrow_cast({number}, 'Date64')" for number in numbers if number is not None]
    present = (value for value in values.to_pylist() if value is not None)
    if pa.types.is_floating(type_):
        numbers = [repr(value) for value in present if isfinite(value)]
        wide = pa.types.is_float64(type_)
        return numbers if wide else [f"arrow_cast({n}, 'Float32')" for n in numbers]
    return [_literal(value) for value in present]


def _literal(value: object) -> str:
    match value:
        case str():
            return sql_text(value)
        case bool():
            return "true" if value else "false"
        case int() if value == _MIN_INT64:
            # Lance parses the sign separately, and the digits alone are out of range.
            return f"arrow_cast('{value}', 'Int64')"
        case int():
            return str(value)
        case datetime():
            raise ValueError("a DateTime must be a date64 column")
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            raise ValueError(f"{value!r} has no literal")


ROW_ADDRESS = "_rowaddr"
LOOKUP_CHUNK = 4_096
"""Number of values in one filter."""
SCAN_FACTOR = 100
"""A scan reads about this number of rows in the time of one index lookup."""
_SCAN_BATCH = 262_144
_GROUP_ROWS = 4_194_304
_GROUP_BYTES = 128 * 1024 * 1024


def lookup_rows(
    handle: LanceDataset,
    column: str,
    values: pa.Array | pa.ChunkedArray,
    columns: Sequence[str],
    total: int,
) -> pa.Table:
    """Return the rows whose `column` is one of the values, with their addresses.

    `total` is the number of rows of the dataset. Nulls match nothing. Blobs are returned as bytes.
    """
    if not total:
        return _no_rows(handle, columns)
    keys = values.unique().drop_null()
    if not len(keys):
        return _no_rows(handle, columns)
    if len(keys) <= LOOKUP_CHUNK and pa.types.is_string(keys.type):
        return _lookup_beside_small_fragments(handle, column, keys, columns)
    if len(keys) <= LOOKUP_CHUNK or len(keys) * SCAN_FACTOR < total:
        starts = range(0, len(keys), LOOKUP_CHUNK)
        chunks = [sql_literals(keys.slice(at, LOOKUP_CHUNK)) for at in starts]
        conditions = (f"`{column}` IN ({', '.join(literals)})" for literals in chunks if literals)
        parts = [select_rows(handle, columns, condition) for condition in conditions]
    else:
        parts = _lookup_by_scan(handle, column, keys, columns)
    return pa.concat_tables(parts) if parts else _no_rows(handle, columns)


def _lookup_beside_small_fragments(
    handle: LanceDataset, column: str, keys: pa.Array, columns: Sequence[str]
) -> pa.Table:
    """Look up strings in small fragments by cached columns, elsewhere through an index or scan."""
    condition = f"`{column}` IN ({', '.join(sql_literals(keys))})"
    small, others = split_small_fragments(handle)
    if not small:
        return select_rows(handle, columns, condition)
    hits = find_keys(handle, small, column, keys)
    parts = [select_rows(handle, columns, condition, others)] if others else []
    if hits.num_rows and list(columns) == [column]:
        parts.append(hits)
    elif hits.num_rows:
        numbers = set(pc.shift_right(hits[ROW_ADDRESS], pa.scalar(32, pa.uint64())).to_pylist())
        found = [fragment for fragment in small if fragment.fragment_id in numbers]
        parts.append(select_rows(handle, columns, condition, found))
    return pa.concat_tables(parts) if parts else _no_rows(handle, columns)


def _lookup_by_scan(
    handle: LanceDataset, column: str, keys: pa.Array, columns: Sequence[str]
) -> list[pa.Table]:
    """Scan all rows and keep those that match."""
    names = list(dict.fromkeys([column, *columns]))
    with translate_errors("scanning rows"):
        batches = handle.scanner(
            columns=names,
            with_row_address=True,
            batch_size=_SCAN_BATCH,
            blob_handling="all_binary",
        ).to_batches()
        keys = _without_negative_zero(keys)
        groups = _batch_groups(batches)
        hits = (
            rows.filter(pc.is_in(_without_negative_zero(rows[column]), keys)) for rows in groups
        )
        order = [*columns, ROW_ADDRESS]
        return [hit.select(order) for hit in hits if hit.num_rows]


def _batch_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield many batches at a time: each lookup hashes all keys first."""
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


def _without_negative_zero(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Replace negative zeros, which Arrow does not match with zero."""
    return (
        pc.add(values, pa.scalar(0, values.type)) if pa.types.is_floating(values.type) else values
    )


def select_rows(
    handle: LanceDataset,
    columns: Sequence[str],
    condition: str | None = None,
    fragments: Sequence[LanceFragment] | None = None,
) -> pa.Table:
    """Return the rows that satisfy a condition, with their addresses; optionally of fragments."""
    with translate_errors("reading rows"):
        return handle.scanner(
            columns=list(columns),
            filter=condition,
            with_row_address=True,
            blob_handling="all_binary",
            fragments=fragments,
        ).to_table()


def select_in_batches(
    handle: LanceDataset, columns: Sequence[str], condition: str, rows: int
) -> Iterator[pa.Table]:
    """Yield the rows that satisfy a condition, `rows` at a time, with their addresses."""
    with translate_errors("reading rows"):
        batches = handle.scanner(
            columns=list(columns),
            filter=condition,
            with_row_address=True,
            batch_size=rows,
            blob_handling="all_binary",
        ).to_batches()
        for batch in batches:
            yield pa.Table.from_batches([batch])


def count_rows(handle: LanceDataset, condition: str) -> int:
    """Return the number of rows that satisfy a condition."""
    with translate_errors("counting rows"):
        return int(handle.count_rows(condition))


def count_in_base_fragments(handle: LanceDataset, base: LanceDataset, condition: str) -> int:
    """Return the number of rows that satisfy a condition in fragments shared with a base."""
    old = {fragment.fragment_id for fragment in base.get_fragments()}
    with translate_errors("counting rows"):
        shared = (f for f in handle.get_fragments() if f.fragment_id in old)
        return sum(int(fragment.count_rows(condition)) for fragment in shared)


def _no_rows(handle: LanceDataset, columns: Sequence[str]) -> pa.Table:
    fields = [handle.schema.field(name) for name in columns]
    types = [(f.name, pa.large_binary() if is_blob(f) else f.type) for f in fields]
    return pa.schema([*types, (ROW_ADDRESS, pa.uint64())]).empty_table()
