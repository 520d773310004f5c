"""This module adds up numbers by id on Spark, whole columns at a time.

Workers cut what they read into buckets by a hash of the id, and Spark moves each piece of a bucket
as one value. So its rows are few, and adding up is left to Arrow; ids are compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from omnigraph.pipeline.scan import Rows, on_each
from omnigraph.storage.probe import ROW_ADDRESS

BUCKET_ROWS = 1_000_000
"""About how many ids one worker adds up at a time."""

FEW_ROWS = 50_000
"""So few are not worth more than one bucket."""

_LEAST = 4
_HASHED = 16
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_PIECES = "bucket int, piece binary"


@dataclass(frozen=True)
class Share:
    """What rows add to the lines of ids: columns of ids, and the numbers they bring by name.

    A number is the same for every row, or `addr`, its address. Of `distinct` ids only different
    ones travel, and `n` is how often an id is there.
    """

    rows: Rows
    columns: tuple[str, ...]
    numbers: Mapping[str, int | str]
    distinct: bool = False

    def read(self, piece: Sequence[int]) -> pa.Table:
        """Return ids and numbers."""
        tables = list(self.rows.read(self.columns, piece))
        chunks = [c for name in self.columns for t in tables for c in t[name].chunks]
        ids = pa.chunked_array(chunks, pa.string())
        if "addr" in self.numbers.values():
            addresses = [c for table in tables for c in table[ROW_ADDRESS].chunks]
            found = {"id": ids, "addr": pa.chunked_array(addresses, pa.uint64())}
        elif "n" in self.numbers.values():
            counted = ids.value_counts()
            found = {"id": counted.field("values"), "n": counted.field("counts")}
        else:
            found = {"id": ids.unique() if self.distinct else ids}
        return _with_numbers(found, self.numbers)


def _with_numbers(
    found: Mapping[str, pa.Array | pa.ChunkedArray], numbers: Mapping[str, int | str]
) -> pa.Table:
    ids = found["id"]
    columns = {"id": ids}
    for name, number in numbers.items():
        if isinstance(number, str):
            columns[name] = pc.cast(found[number], pa.int64())
        else:
            columns[name] = pa.repeat(pa.scalar(number, pa.int64()), len(ids))
    return pa.table(columns)


def lines_frame(
    spark: SparkSession,
    shares: Sequence[Share],
    frames: Sequence[tuple[DataFrame, Mapping[str, int]]],
    names: Sequence[str],
    flags: Mapping[str, Callable[[Mapping[str, npt.NDArray[np.int64]]], npt.NDArray[np.int64]]],
) -> DataFrame:
    """Return the lines that have a flag: `id`, the sums by name, and the flags.

    `frames` are ids that Spark found, with the numbers each of them brings.
    """
    rows = sum(sum(share.rows.sizes.values()) for share in shares)
    count = 1 if rows < FEW_ROWS else max(_LEAST, -(-rows // BUCKET_ROWS))
    work = [(share, piece) for share in shares for piece in share.rows.pieces]

    def read(number: int) -> Iterator[pa.RecordBatch]:
        share, piece = work[number]
        yield from cut(share.read(piece), count)

    pieces = on_each(spark, len(work), read, _PIECES)
    for frame, numbers in frames:
        pieces = pieces.unionAll(frame.mapInArrow(_cutter(dict(numbers), count), _PIECES))

    def add_up(bucket: pa.Table) -> pa.Table:
        found = [pa.ipc.open_stream(piece.as_buffer()).read_all() for piece in bucket["piece"]]
        sums = _summed(found, names)
        numbers = {name: sums[name].to_numpy() for name in names}
        made = {name: flag(numbers) for name, flag in flags.items()}
        flagged = np.logical_or.reduce([values > 0 for values in made.values()])
        columns = {"id": sums["id"], **numbers, **made}
        return pa.table(columns).filter(pa.array(flagged))

    longs = ", ".join(f"`{name}` long" for name in (*names, *flags))
    return pieces.groupBy("bucket").applyInArrow(add_up, f"id string, {longs}")


def _cutter(
    numbers: Mapping[str, int], count: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from cut(_with_numbers({"id": batch["id"]}, numbers), count)

    return run


def _summed(tables: Sequence[pa.Table], names: Sequence[str]) -> pa.Table:
    """Return one line for each id."""
    whole = pa.concat_tables(tables, promote_options="default")
    for name in names:
        if name not in whole.column_names:
            nothing = pa.repeat(pa.scalar(0, pa.int64()), whole.num_rows)
            whole = whole.append_column(name, nothing)
    sums = whole.group_by("id").aggregate([(name, "sum") for name in names])
    filled = {name: pc.fill_null(sums[f"{name}_sum"], 0) for name in names}
    return pa.table({"id": sums["id"], **filled})


def cut(table: pa.Table, count: int) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of a table that belong to each bucket."""
    if not table.num_rows:
        return
    if count == 1:
        yield _piece(0, table)
        return
    numbers = bucket_numbers(table["id"].combine_chunks(), count)
    order = np.argsort(numbers, kind="stable")
    table = table.take(pa.array(order))
    ends = np.searchsorted(numbers[order], np.arange(count + 1))
    for number in range(count):
        start, stop = int(ends[number]), int(ends[number + 1])
        if start < stop:
            yield _piece(number, table.slice(start, stop - start))


def _piece(number: int, table: pa.Table) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    piece = pa.array([sink.getvalue().to_pybytes()], pa.binary())
    return pa.record_batch({"bucket": pa.array([number], pa.int32()), "piece": piece})


def bucket_numbers(ids: pa.Array, count: int) -> npt.NDArray[np.int64]:
    """Return the bucket of each id: equal ids have the same, others are spread.

    The length and the last bytes decide, in which generated and numbered ids differ.
    """
    _, offsets_buffer, data_buffer = ids.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[ids.offset : ids.offset + len(ids) + 1]
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if ends.max(initial=0) else np.zeros(1, np.uint8)
    hashed = (ends - starts).astype(np.uint64)
    for back in range(1, _HASHED + 1):
        there = ends - back >= starts
        byte = data[np.where(there, ends - back, 0)] * there
        hashed = (hashed ^ byte.astype(np.uint64)) * _FACTOR
    return ((hashed >> np.uint64(33)) % np.uint64(count)).astype(np.int64)
