"""Aggregate numbers by id on workers, in columnar form.

Workers partition what they read into buckets by a hash of the id and store the pieces beside the
run; other tasks aggregate the pieces of one bucket after the other. A bucket is small enough to be
aggregated within the caches of a core, and ids are compared exactly. Spark only schedules tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from ulid import ULID

from omnigraph.pipeline.connector.table_scan import manifest_at
from omnigraph.pipeline.load.fragment_scan import DatasetFragments, map_numbers
from omnigraph.pipeline.sessions.executors import run_on_executors
from omnigraph.storage.location import Location
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.row_lookup import ROW_ADDRESS

SumArray: TypeAlias = npt.NDArray[np.int64]
FlagFunction: TypeAlias = Callable[[Mapping[str, SumArray]], SumArray]
"""Computes a flag from the sums of all keys."""

BUCKET_ROWS = 250_000
"""About how many rows a bucket has; the table of their ids then fits the caches of a core."""

TASK_BUCKETS = 4
"""Buckets that one task reads, because their pieces are adjacent in the files."""

SINGLE_BUCKET_ROWS = 50_000
"""Fewer rows than this use a single bucket."""

_MIN_BUCKETS = 4
_MAX_BUCKETS = 0x7FFF
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_WORD = 8
_CHUNK = 32_768


@dataclass(frozen=True)
class KeyContribution:
    """What rows contribute to the sums of ids: columns of ids, and numbers by name.

    A number is the same for every row, or `addr`, its address. Of `distinct` ids only different
    ones travel, and `n` is how often an id is there.
    """

    rows: DatasetFragments
    columns: tuple[str, ...]
    numbers: Mapping[str, int | str]
    distinct: bool = False

    def read(self, piece: Sequence[int]) -> pa.Table:
        """Return ids, and addresses if they count."""
        tables = list(self.rows.read(self.columns, piece))
        ids = [c for name in self.columns for t in tables for c in t[name].chunks]
        found = {"id": pa.chunked_array(ids, pa.string())}
        if "addr" in self.numbers.values():
            addresses = [c for table in tables for c in table[ROW_ADDRESS].chunks]
            found["addr"] = pc.cast(pa.chunked_array(addresses, pa.uint64()), pa.int64())
        return pa.table(found)

    def condensed(self, table: pa.Table) -> pa.Table:
        """Return what has to travel of the rows of a bucket."""
        if "n" in self.numbers.values():
            counted = table["id"].value_counts()
            return pa.table({"id": counted.field("values"), "n": counted.field("counts")})
        return pa.table({"id": table["id"].unique()}) if self.distinct else table


@dataclass(frozen=True)
class ComputedContribution:
    """Ids that Spark found, and the numbers each of them brings."""

    frame: DataFrame
    numbers: Mapping[str, int]


@dataclass(frozen=True)
class KeyAggregation:
    """An aggregation by id: contributions, names of the sums, and flags."""

    shares: Sequence[KeyContribution]
    names: Sequence[str]
    flags: Mapping[str, FlagFunction]
    found: Sequence[ComputedContribution] = ()

    @property
    def numbers(self) -> list[Mapping[str, int | str]]:
        """The numbers of each share, then those of what Spark found."""
        return [share.numbers for share in self.shares] + [dict(f.numbers) for f in self.found]

    @property
    def buckets(self) -> int:
        """Into how many buckets it is cut."""
        rows = sum(sum(share.rows.sizes.values()) for share in self.shares)
        return (
            1
            if rows < SINGLE_BUCKET_ROWS
            else min(max(_MIN_BUCKETS, -(-rows // BUCKET_ROWS)), _MAX_BUCKETS)
        )


@dataclass(frozen=True)
class ScratchDir:
    """A folder of a graph where workers exchange files."""

    location: Location
    folder: str

    @property
    def objects(self) -> ObjectStore:
        """What is there, opened once in each process."""
        return manifest_at(self.location).objects

    def put(self, data: bytes) -> str:
        """Put something down and return its name."""
        path = f"{self.folder}/{ULID()}.arrow"
        self.objects.put(path, data)
        return path


@dataclass(frozen=True)
class FlaggedKeys:
    """The flagged keys of an aggregation, in files, and the total of each flag."""

    place: ScratchDir
    columns: Sequence[str]
    sums: Mapping[str, int]
    paths: Sequence[str] = ()

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the lines as a frame: `id`, the sums by name, and the flags."""
        longs = ", ".join(f"`{name}` long" for name in self.columns)
        place, paths = self.place, self.paths

        def read(number: int) -> Iterator[pa.RecordBatch]:
            data = place.objects.get(paths[number])
            assert data is not None, "files are kept until validation ends"
            yield from pa.ipc.open_stream(data)

        return map_numbers(spark, len(paths), read, f"id string, {longs}")


@dataclass
class KeyAggregator:
    """Runs aggregations on workers; results are stored in `place` until it is closed."""

    spark: SparkSession
    place: ScratchDir
    _written: list[str] = field(default_factory=list)

    def aggregate(self, aggregations: Mapping[str, KeyAggregation]) -> dict[str, FlaggedKeys]:
        """Return the flagged keys of all aggregations, by the same names."""
        pieces: dict[str, list[_BucketFile]] = {key: [] for key in aggregations}
        work = [
            _PartitionTask(self.place, key, number, share, piece, aggregation.buckets)
            for key, aggregation in aggregations.items()
            for number, share in enumerate(aggregation.shares)
            for piece in share.rows.task_groups
        ]
        for cut in run_on_executors(self.spark, _PartitionTask.run, work):
            pieces[cut.key].append(cut)
        for key, aggregation in aggregations.items():
            for number, found in enumerate(aggregation.found, len(aggregation.shares)):
                pieces[key] += self._cut_frame(key, number, found, aggregation.buckets)
        self._written += [cut.path for cuts in pieces.values() for cut in cuts]
        return self._added_up(aggregations, pieces)

    def _cut_frame(
        self, key: str, number: int, found: ComputedContribution, count: int
    ) -> list[_BucketFile]:
        place = self.place

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            tables = [pa.Table.from_batches([batch]) for batch in batches if batch.num_rows]
            if tables:
                data, ends = partition_by_bucket(pa.concat_tables(tables), count)
                yield pa.record_batch({"path": [place.put(data)], "ends": [ends]})

        rows = found.frame.mapInArrow(run, "path string, ends array<long>").collect()
        return [_BucketFile(key, number, row["path"], row["ends"]) for row in rows]

    def _added_up(
        self,
        aggregations: Mapping[str, KeyAggregation],
        pieces: Mapping[str, Sequence[_BucketFile]],
    ) -> dict[str, FlaggedKeys]:
        work = [
            _AggregationTask(
                self.place,
                key,
                aggregation.names,
                aggregation.numbers,
                aggregation.flags,
                [piece.part(first, first + TASK_BUCKETS) for piece in pieces[key]],
            )
            for key, aggregation in aggregations.items()
            for first in range(0, aggregation.buckets, TASK_BUCKETS)
        ]
        sums = {
            key: dict.fromkeys(aggregation.flags, 0) for key, aggregation in aggregations.items()
        }
        paths: dict[str, list[str]] = {key: [] for key in aggregations}
        for added in run_on_executors(self.spark, _AggregationTask.run, work):
            for flag, number in added.sums.items():
                sums[added.key][flag] += number
            paths[added.key] += [added.path] if added.path is not None else []
        self._written += [path for found in paths.values() for path in found]
        return {
            key: FlaggedKeys(
                self.place, (*aggregation.names, *aggregation.flags), sums[key], paths[key]
            )
            for key, aggregation in aggregations.items()
        }

    def close(self) -> None:
        """Remove all files."""
        self.place.objects.delete(self._written)
        self._written.clear()


# --- tasks of workers --------------------------------------------------------------------------


@dataclass(frozen=True)
class _BucketFile:
    """What one worker put down for an aggregation: a file, and where each bucket ends in it."""

    key: str
    share: int
    path: str
    ends: Sequence[int]

    def part(self, first: int, last: int) -> _BucketFile:
        """Return the same for some buckets: where the first begins, and where each ends."""
        return _BucketFile(self.key, self.share, self.path, [0, *self.ends][first : last + 1])


@dataclass(frozen=True)
class _PartitionTask:
    """Cut a piece of a share into buckets."""

    place: ScratchDir
    key: str
    number: int
    share: KeyContribution
    piece: Sequence[int]
    count: int

    def run(self) -> _BucketFile:
        data, ends = partition_by_bucket(
            self.share.read(self.piece), self.count, self.share.condensed
        )
        return _BucketFile(self.key, self.number, self.place.put(data), ends)


def partition_by_bucket(
    table: pa.Table, count: int, condensed: Callable[[pa.Table], pa.Table] = lambda rows: rows
) -> tuple[bytes, list[int]]:
    """Return the rows of each bucket, one after the other, and where each ends."""
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
    for batch in table.to_batches(max_chunksize=_CHUNK):
        numbers = bucket_numbers(batch["id"], count)
        # Of 16 bits, this is a radix sort.
        batch = batch.take(pa.array(np.argsort(numbers, kind="stable")))
        ends = np.cumsum(np.bincount(numbers, minlength=count)).tolist()
        for part, (start, stop) in zip(parts, pairwise([0, *ends]), strict=True):
            if start < stop:
                part.append(batch.slice(start, stop - start))
    sink = pa.BufferOutputStream()
    ends = []
    for part in parts:
        if part:
            rows = condensed(pa.Table.from_batches(part)).combine_chunks()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows)
        ends.append(sink.tell())
    return sink.getvalue().to_pybytes(), ends


@dataclass(frozen=True)
class _BucketTotals:
    """What some buckets add up to, and the file of their lines if any has a flag."""

    key: str
    sums: Mapping[str, int]
    path: str | None


@dataclass(frozen=True)
class _AggregationTask:
    """Add up some buckets of an aggregation; `numbers` are those of each share."""

    place: ScratchDir
    key: str
    names: Sequence[str]
    numbers: Sequence[Mapping[str, int | str]]
    flags: Mapping[str, FlagFunction]
    pieces: Sequence[_BucketFile]

    def run(self) -> _BucketTotals:
        sums = dict.fromkeys(self.flags, 0)
        lines = []
        for bucket in self._buckets():
            found = self._lines(bucket)
            if found.num_rows:
                lines.append(found)
                for flag in self.flags:
                    sums[flag] += pc.sum(found[flag]).as_py()
        path = None
        if lines:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, lines[0].schema) as writer:
                for table in lines:
                    writer.write_table(table)
            path = self.place.put(sink.getvalue().to_pybytes())
        return _BucketTotals(self.key, sums, path)

    def _buckets(self) -> Iterator[list[tuple[int, pa.Table]]]:
        """Yield the pieces of each bucket, with the number of their share."""
        objects = self.place.objects
        read = [
            (piece, objects.part(piece.path, piece.ends[0], piece.ends[-1]))
            for piece in self.pieces
            if piece.ends[0] < piece.ends[-1]
        ]
        for bucket in range(len(self.pieces[0].ends) - 1 if self.pieces else 0):
            yield [
                (piece.share, pa.ipc.open_stream(data[start:stop]).read_all())
                for piece, data in read
                for start, stop in [_bucket_range(piece, bucket)]
                if start < stop
            ]

    def _lines(self, bucket: Sequence[tuple[int, pa.Table]]) -> pa.Table:
        ids, sums = sum_by_id(bucket, self.numbers, self.names)
        made = {name: flag(sums) for name, flag in self.flags.items()}
        flagged = np.flatnonzero(np.logical_or.reduce([values > 0 for values in made.values()]))
        columns = {name: values[flagged] for name, values in {**sums, **made}.items()}
        return pa.table({"id": ids.take(pa.array(flagged)), **columns})


def _bucket_range(piece: _BucketFile, bucket: int) -> tuple[int, int]:
    start = piece.ends[0]
    return piece.ends[bucket] - start, piece.ends[bucket + 1] - start


def sum_by_id(
    bucket: Sequence[tuple[int, pa.Table]],
    numbers: Sequence[Mapping[str, int | str]],
    names: Sequence[str],
) -> tuple[pa.Array, dict[str, SumArray]]:
    """Return the ids of a bucket, each once, and the sums of their numbers by name."""
    shares = {
        share: pa.concat_tables(table for _, table in tables)
        for share, tables in groupby(
            sorted(bucket, key=_contribution_number), key=_contribution_number
        )
    }
    chunks = [chunk for table in shares.values() for chunk in table["id"].chunks]
    whole = pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
    encoded = whole.dictionary_encode()
    ids, codes = encoded.dictionary, encoded.indices.to_numpy()
    sums = {name: np.zeros(len(ids), np.int64) for name in names}
    start = 0
    for share, table in shares.items():
        here = codes[start : start + table.num_rows]
        start += table.num_rows
        often = np.bincount(here, minlength=len(ids)) if len(ids) else np.zeros(0, np.int64)
        for name, number in numbers[share].items():
            if isinstance(number, str):
                np.add.at(sums[name], here, table[number].to_numpy())
            else:
                sums[name] += number * often
    return ids, sums


def _contribution_number(piece: tuple[int, Any]) -> int:
    return piece[0]


def bucket_numbers(ids: pa.Array, count: int) -> npt.NDArray[np.int16]:
    """Return the bucket of each id: equal ids have the same, others are spread."""
    return ((hash_ids(ids) >> np.uint64(33)) % np.uint64(count)).astype(np.int16)


def hash_ids(ids: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a number for each id, equal for equal ids.

    The length and the last bytes decide, in which generated and numbered ids differ. Few ids at a
    time are fastest, because all that is between then fits the caches.
    """
    if not len(ids):
        return np.empty(0, np.uint64)
    _, offsets_buffer, data_buffer = ids.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[ids.offset : ids.offset + len(ids) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    # A word of eight bytes may be read at the end of every id, whatever comes before it.
    data = np.zeros(2 * _WORD + last - first, np.uint8)
    if last > first:
        data[2 * _WORD :] = np.frombuffer(data_buffer, np.uint8)[first:last]
    words = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))
    ends = offsets[1:].astype(np.int64) - first + 2 * _WORD
    lengths = np.diff(offsets)
    made = lengths.astype(np.uint64)
    for back in (1, 2):
        made = (
            made ^ _mask_words(words[ends - back * _WORD], lengths - (back - 1) * _WORD)
        ) * _FACTOR
        made ^= made >> np.uint64(29)
    return made


def _mask_words(
    words: npt.NDArray[np.uint64], lengths: npt.NDArray[np.int32]
) -> npt.NDArray[np.uint64]:
    """Mask the bytes of the preceding id out of words; `lengths` bytes belong to the id."""
    if lengths.min(initial=_WORD) >= _WORD:
        return words
    own = np.clip(lengths, 0, _WORD)
    kept = words >> (np.uint64(_WORD) * np.minimum(_WORD - own, _WORD - 1).astype(np.uint64))
    return np.where(own > 0, kept, np.uint64(0))
