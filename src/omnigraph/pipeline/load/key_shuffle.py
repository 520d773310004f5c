"""Add up what the rows of a load say of each key, across all tasks.

Tasks read keys from fragments and collapse equal ones into blocks; Spark shuffles the blocks, so
that one task gets every occurrence of a key, and that task adds them up with Arrow. Spilling,
fetching, retries and the recomputation of lost blocks are Spark's: fragments never change, so a
task that is repeated makes the same blocks. Keys are compared by all their bytes; their hash only
chooses the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from omnigraph.pipeline.load.fragment_scan import DatasetFragments
from omnigraph.pipeline.sessions.tasks import map_tasks
from omnigraph.storage.row_lookup import ROW_ADDRESS

SumArray: TypeAlias = npt.NDArray[np.int64]
FlagFunction: TypeAlias = Callable[[Mapping[str, SumArray]], SumArray]
"""Computes a flag from the sums of all keys."""
_ReadTask: TypeAlias = tuple[int, tuple[int, ...]]

BUCKET_ROWS = 250_000
"""About how many rows a bucket has; the table of their keys then fits the caches of a core."""
PARTITION_BUCKETS = 4
"""Buckets of one partition of the shuffle."""
SINGLE_BUCKET_ROWS = 50_000
"""Fewer rows than this use a single bucket."""
BLOCK_BYTES = 4 * 1024 * 1024
"""Largest block, unless a single key is larger: Spark moves blocks as values of a column."""

_BATCH_BYTES = 16 * 1024 * 1024
_MAX_BUCKETS = 0x7FFF
_MAX_OFFSET = 2**31 - 1
_OUTPUT_ROWS = 65_536
_CHUNK = 32_768
_LONG_KEY = 256
_WORD = 8
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_BLOCKS = "bucket int, contribution int, block binary"
_SUMS = "aggregation int, id string, sums array<long>, flags array<long>"


@dataclass(frozen=True)
class KeyContribution:
    """What rows contribute to the sums of the keys in some columns.

    Each occurrence of a key adds `numbers` to the sums of these names, and the address of its row
    to the sum `address`, if that is given.
    """

    rows: DatasetFragments
    columns: tuple[str, ...]
    numbers: Mapping[str, int]
    address: str | None = None

    def read(self, fragments: Sequence[int]) -> pa.Table:
        """Return the keys of fragments, and the addresses of their rows."""
        tables = list(self.rows.read(self.columns, fragments))
        keys = [c for name in self.columns for t in tables for c in t[name].chunks]
        found = {"id": pa.chunked_array(keys, pa.string())}
        if self.address is not None:
            addresses = [c for table in tables for c in table[ROW_ADDRESS].chunks]
            found["addr"] = pc.cast(pa.chunked_array(addresses, pa.uint64()), pa.int64())
        return pa.table(found)


@dataclass(frozen=True)
class ComputedContribution:
    """Keys that Spark computes, as a frame of `id`, and what each occurrence adds."""

    frame: DataFrame
    numbers: Mapping[str, int]


@dataclass(frozen=True)
class KeyAggregation:
    """An aggregation by key: contributions, names of the sums, and flags."""

    contributions: Sequence[KeyContribution]
    names: Sequence[str]
    flags: Mapping[str, FlagFunction]
    computed: Sequence[ComputedContribution] = ()

    @property
    def buckets(self) -> int:
        """The number of its buckets, which depends only on the number of its rows."""
        rows = sum(sum(found.rows.sizes.values()) for found in self.contributions)
        if rows < SINGLE_BUCKET_ROWS:
            return 1
        return min(-(-rows // BUCKET_ROWS), _MAX_BUCKETS)


@dataclass(frozen=True)
class KeyCounts:
    """The flagged keys of an aggregation: their sums, a column per flag, and the totals."""

    frame: DataFrame
    totals: Mapping[str, int]

    def where(self, flag: str) -> DataFrame:
        """Return the keys with a flag."""
        return self.frame.where(f"`{flag}` > 0")


class KeyShuffle:
    """Runs aggregations as one job of Spark; close it when the results are not needed any more."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._kept: DataFrame | None = None

    def aggregate(self, aggregations: Mapping[str, KeyAggregation]) -> dict[str, KeyCounts]:
        """Return the flagged keys of all aggregations, by the same names."""
        if not aggregations:
            return {}
        plan = _ShufflePlan.of(list(aggregations.values()))
        partitions = -(-plan.firsts[-1] // PARTITION_BUCKETS)
        partition = f.expr(f"bucket DIV {PARTITION_BUCKETS}").cast("int")
        blocks = self._blocks(plan, list(aggregations.values()))
        flagged = blocks.repartitionById(partitions, partition).mapInArrow(plan.sums, _SUMS)
        # Few keys have a flag, and each of the checks that follow reads them.
        self._kept = flagged.persist(StorageLevel.MEMORY_AND_DISK)
        totals = _totals(self._kept, plan.sinks)
        return {
            key: KeyCounts(
                _named(self._kept.where(f"aggregation = {number}"), sink), totals[number]
            )
            for number, (key, sink) in enumerate(zip(aggregations, plan.sinks, strict=True))
        }

    def _blocks(self, plan: _ShufflePlan, aggregations: Sequence[KeyAggregation]) -> DataFrame:
        """Return the blocks of all contributions."""
        tasks, read = read_tasks(plan, aggregations)
        frames = [map_tasks(self._spark, tasks, read, _BLOCKS)]
        computed = [found for each in aggregations for found in each.computed]
        for number, source in enumerate(computed, len(plan.sources) - len(computed)):
            frames.append(source.frame.mapInArrow(_cut_frame(plan, number), _BLOCKS))
        return reduce(DataFrame.unionAll, frames)

    def close(self) -> None:
        """Release the results."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None


@dataclass(frozen=True)
class _Sink:
    """Where contributions go: the sums and flags of an aggregation."""

    names: tuple[str, ...]
    flags: Mapping[str, FlagFunction]


@dataclass(frozen=True)
class _ContributionRef:
    """A contribution as tasks know it: what it adds to which aggregation."""

    aggregation: int
    numbers: Mapping[str, int]
    address: str | None

    @property
    def schema(self) -> pa.Schema:
        """The columns of its blocks."""
        fields = [("id", pa.string()), ("n", pa.int64())]
        return pa.schema([*fields, *([("addr", pa.int64())] if self.address else [])])


@dataclass(frozen=True)
class _ShufflePlan:
    """All aggregations of a job as tasks know them.

    Buckets are numbered across aggregations: those of one begin at its number in `firsts`, whose
    last element is the number of all buckets.
    """

    sources: Sequence[_ContributionRef]
    sinks: Sequence[_Sink]
    firsts: Sequence[int]

    @classmethod
    def of(cls, aggregations: Sequence[KeyAggregation]) -> _ShufflePlan:
        """Return the plan of some aggregations."""
        numbered = list(enumerate(aggregations))
        read = [
            _ContributionRef(n, c.numbers, c.address) for n, a in numbered for c in a.contributions
        ]
        computed = [_ContributionRef(n, c.numbers, None) for n, a in numbered for c in a.computed]
        firsts = np.cumsum([0, *(each.buckets for each in aggregations)]).tolist()
        sinks = [_Sink(tuple(each.names), dict(each.flags)) for each in aggregations]
        return cls([*read, *computed], sinks, firsts)

    def cut(self, number: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a contribution as blocks of equal keys, by bucket."""
        source = self.sources[number]
        first, end = self.firsts[source.aggregation : source.aggregation + 2]
        held: list[tuple[int, bytes]] = []
        size = 0
        for bucket, part in enumerate(split_by_bucket(rows, end - first), first):
            for block in _slices(collapse(part, source.schema)):
                held.append((bucket, block.serialize().to_pybytes()))
                size += len(held[-1][1])
                if size > _BATCH_BYTES:
                    yield _block_batch(number, held)
                    held, size = [], 0
        yield _block_batch(number, held)

    def sums(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the flagged keys of the buckets of a partition."""
        buckets: dict[int, list[tuple[int, pa.RecordBatch]]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                number = row["contribution"]
                block = pa.ipc.read_record_batch(
                    pa.py_buffer(row["block"]), self.sources[number].schema
                )
                buckets.setdefault(row["bucket"], []).append((number, block))
        for bucket in sorted(buckets):
            aggregation = int(np.searchsorted(self.firsts, bucket, side="right")) - 1
            yield from self._flagged(aggregation, buckets.pop(bucket))

    def _flagged(
        self, aggregation: int, blocks: Sequence[tuple[int, pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        sink = self.sinks[aggregation]
        ids, sums = sum_by_id(
            [(self.sources[number], block) for number, block in blocks], sink.names
        )
        flags = {name: flag(sums) for name, flag in sink.flags.items()}
        flagged = np.flatnonzero(np.logical_or.reduce([values > 0 for values in flags.values()]))
        for start in range(0, len(flagged), _OUTPUT_ROWS):
            rows = flagged[start : start + _OUTPUT_ROWS]
            yield pa.record_batch(
                {
                    "aggregation": pa.array(np.full(len(rows), aggregation, np.int32)),
                    "id": ids.take(pa.array(rows)).cast(pa.string()),
                    "sums": _lists([values[rows] for values in sums.values()]),
                    "flags": _lists([values[rows] for values in flags.values()]),
                }
            )


def _block_batch(number: int, blocks: Sequence[tuple[int, bytes]]) -> pa.RecordBatch:
    buckets, data = zip(*blocks, strict=True) if blocks else ((), ())
    columns = {
        "bucket": pa.array(buckets, pa.int32()),
        "contribution": pa.array([number] * len(blocks), pa.int32()),
        "block": pa.array(data, pa.binary()),
    }
    return pa.record_batch(columns)


def read_tasks(
    plan: _ShufflePlan, aggregations: Sequence[KeyAggregation]
) -> tuple[list[_ReadTask], Callable[[_ReadTask], Iterator[pa.RecordBatch]]]:
    """Return the tasks that read contributions, and the function that runs one.

    A task names its fragments; what is sent to all of them does not grow with their number.
    """
    sources = [found for each in aggregations for found in each.contributions]
    tasks = [
        (number, fragments)
        for number, source in enumerate(sources)
        for fragments in source.rows.task_groups
    ]
    readers = [replace(source, rows=source.rows.stripped) for source in sources]

    def read(task: _ReadTask) -> Iterator[pa.RecordBatch]:
        number, fragments = task
        yield from plan.cut(number, readers[number].read(fragments))

    return tasks, read


def _cut_frame(
    plan: _ShufflePlan, number: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what makes blocks of the keys that Spark computed."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from plan.cut(number, pa.Table.from_batches([batch]))

    return run


def _totals(flagged: DataFrame, sinks: Sequence[_Sink]) -> list[dict[str, int]]:
    """Return the totals of all flags; one row for each aggregation is collected."""
    most = max(len(sink.flags) for sink in sinks)
    sums = [f.sum(f.get("flags", f.lit(place))).alias(f"f{place}") for place in range(most)]
    rows = {row["aggregation"]: row for row in flagged.groupBy("aggregation").agg(*sums).collect()}
    return [
        {
            flag: 0 if number not in rows else int(rows[number][f"f{place}"] or 0)
            for place, flag in enumerate(sink.flags)
        }
        for number, sink in enumerate(sinks)
    ]


def _named(flagged: DataFrame, sink: _Sink) -> DataFrame:
    """Return the sums and flags of an aggregation as columns."""
    columns = [f"sums[{place}] AS `{name}`" for place, name in enumerate(sink.names)]
    columns += [f"flags[{place}] AS `{name}`" for place, name in enumerate(sink.flags)]
    return flagged.selectExpr("id", *columns)


def _lists(columns: Sequence[npt.NDArray[np.int64]]) -> pa.Array:
    """Return the values of each row as a list."""
    rows, width = len(columns[0]), len(columns)
    values = np.stack(columns, axis=1).ravel()
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


# --- tasks ---------------------------------------------------------------------------------------


def split_by_bucket(rows: pa.Table, count: int) -> Iterator[pa.Table]:
    """Yield the rows of each bucket."""
    if count == 1:
        yield rows
        return
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
    for batch in rows.to_batches(max_chunksize=_CHUNK):
        numbers = bucket_numbers(batch["id"], count)
        # Of 16 bits, this is a radix sort.
        batch = batch.take(pa.array(np.argsort(numbers, kind="stable")))
        ends = np.cumsum(np.bincount(numbers, minlength=count)).tolist()
        for part, (start, stop) in zip(parts, pairwise([0, *ends]), strict=True):
            if start < stop:
                part.append(batch.slice(start, stop - start))
    for part in parts:
        yield pa.Table.from_batches(part, rows.schema)


def collapse(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return each key once, with `n`, how often it occurs, and the sum of its addresses."""
    keys, codes = _encode(rows["id"].chunks)
    found = {"id": keys, "n": np.bincount(codes, minlength=len(keys))}
    if "addr" in schema.names:
        addresses = np.zeros(len(keys), np.int64)
        np.add.at(addresses, codes, rows["addr"].to_numpy())
        found["addr"] = addresses
    return pa.table(found)


def _slices(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows as batches that are not larger than a block may be."""
    step = max(1, rows.num_rows * BLOCK_BYTES // max(rows.nbytes, 1))
    for batch in rows.to_batches(max_chunksize=step):
        yield batch.set_column(0, "id", batch["id"].cast(pa.string()))


def _encode(chunks: Sequence[pa.Array]) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Return the different keys, and which of them each row has."""
    if sum(chunk.nbytes for chunk in chunks) > _MAX_OFFSET:
        chunks = [chunk.cast(pa.large_string()) for chunk in chunks]
    whole = pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
    encoded = whole.dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy()


def sum_by_id(
    blocks: Sequence[tuple[_ContributionRef, pa.RecordBatch]], names: Sequence[str]
) -> tuple[pa.Array, dict[str, SumArray]]:
    """Return the keys of a bucket, each once, and the sums of their numbers by name."""
    ids, codes = _encode([block["id"] for _, block in blocks])
    sums = {name: np.zeros(len(ids), np.int64) for name in names}
    start = 0
    for source, block in blocks:
        here = codes[start : start + block.num_rows]  # each key once: no index is repeated
        start += block.num_rows
        times = block["n"].to_numpy()
        for name, number in source.numbers.items():
            sums[name][here] += number * times
        if source.address is not None:
            sums[source.address][here] += block["addr"].to_numpy()
    return ids, sums


def bucket_numbers(keys: pa.Array, count: int) -> npt.NDArray[np.int16]:
    """Return the bucket of each key: equal keys have the same, others are spread."""
    return ((hash_keys(keys) >> np.uint64(33)) % np.uint64(count)).astype(np.int16)


def hash_keys(keys: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a number for each key that depends on all its bytes, equal for equal keys.

    Few keys at a time are fastest, because all that is between then fits the caches.
    """
    if not len(keys):
        return np.empty(0, np.uint64)
    _, offsets_buffer, data_buffer = keys.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    # A word of eight bytes may be read at the beginning of every key, whatever follows it.
    data = np.zeros(_WORD + last - first, np.uint8)
    if last > first:
        data[: last - first] = np.frombuffer(data_buffer, np.uint8)[first:last]
    words = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))
    starts, lengths = offsets[:-1].astype(np.int64) - first, np.diff(offsets)
    made = lengths.astype(np.uint64) * _FACTOR
    for done in range(0, min(int(lengths.max()), _LONG_KEY), _WORD):
        left = lengths - done
        if int(left.min()) >= _WORD:
            made = _mix(made, words[starts + done])
            continue
        longer = np.flatnonzero(left > 0)
        word = words[starts[longer] + done]
        missing = np.maximum(_WORD - left[longer], 0).astype(np.uint64) * np.uint64(_WORD)
        made[longer] = _mix(made[longer], word & (~np.uint64(0) >> missing))
    for place in np.flatnonzero(lengths > _LONG_KEY).tolist():
        key = data[starts[place] : starts[place] + lengths[place]].tobytes()
        made[place] = int.from_bytes(blake2b(key, digest_size=_WORD).digest(), "little")
    return _mix(made, made >> np.uint64(32))


def _mix(made: npt.NDArray[np.uint64], words: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    mixed: npt.NDArray[np.uint64] = (made ^ words) * _FACTOR
    return mixed ^ (mixed >> _SHIFT)
