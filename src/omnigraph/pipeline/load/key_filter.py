"""A Bloom filter of the keys that staged rows refer to.

A load that lost a race must know whether the commits of other writers affect it. Executors read
the keys of the rows once; the answer `no` is certain, `yes` almost certain. Hashes are shuffled by
the segment of the filter they belong to, so that this process only gets finished segments, whose
size is limited however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from omnigraph.pipeline.load.fragment_scan import DatasetFragments
from omnigraph.pipeline.load.key_shuffle import hash_keys
from omnigraph.pipeline.sessions.tasks import map_tasks
from omnigraph.write.change_set import RowSchema
from omnigraph.write.checks.unique import key_columns

Hashes = npt.NDArray[np.uint64]
Segment = npt.NDArray[np.uint8]

SEGMENT_BITS = 1 << 20
"""Bits of a segment; a key sets all its bits in one."""
MAX_SEGMENTS = 512
"""Segments of all topics together: 64 MiB."""

_BITS_PER_KEY = 12
_PROBES = 4
_SEGMENTS_PER_PARTITION = 32
_SEPARATOR = "\x1f"
_NO_HASHES: Hashes = np.empty(0, np.uint64)
_HASHES = "segment int, hashes binary"
_SEGMENTS = "segment int, bits binary"


@dataclass(frozen=True)
class KeySource:
    """The keys of rows for a topic: the ids in some columns, or tuples of columns."""

    rows: DatasetFragments
    ids: tuple[str, ...] = ()
    tuple_: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """The number of its keys, equal ones included."""
        return sum(self.rows.sizes.values()) * (len(self.ids) + bool(self.tuple_))

    def hashes(self, fragments: Sequence[int]) -> Hashes:
        """Return the different hashes of the keys of fragments."""
        found = [_NO_HASHES]
        for table in self.rows.read([*self.ids, *self.tuple_], fragments):
            found += [_hash_chunks(table[name]) for name in self.ids]
            if self.tuple_:
                found.append(_hash_chunks(tuple_texts(table, self.rows.shape, self.tuple_)))
        return np.unique(np.concatenate(found))


class KeyFilter:
    """The segments of the filters of topics."""

    def __init__(self, topics: Mapping[str, Sequence[Segment]]) -> None:
        self._topics = topics

    def may_contain(self, topic: str, texts: pa.ChunkedArray) -> bool:
        """Return whether one of the texts may be in the filter; False is certain."""
        segments = self._topics.get(topic)
        if segments is None or not len(texts):
            return False
        hashes = _hash_chunks(texts)
        numbers = segment_numbers(hashes, len(segments))
        return any(
            _has_any(segments[number], segment_bits(hashes[numbers == number]))
            for number in np.unique(numbers).tolist()
        )


def build_key_filter(spark: SparkSession, topics: Mapping[str, Sequence[KeySource]]) -> KeyFilter:
    """Collect the keys of all topics on executors."""
    counts = _segment_counts([sum(source.count for source in each) for each in topics.values()])
    firsts = np.cumsum([0, *counts]).tolist()
    sources = [(number, source) for number, each in enumerate(topics.values()) for source in each]
    readers = [(number, replace(source, rows=source.rows.stripped)) for number, source in sources]
    tasks = [
        (place, fragments)
        for place, (_, source) in enumerate(sources)
        for fragments in source.rows.task_groups
    ]

    def read(task: tuple[int, Sequence[int]]) -> Iterator[pa.RecordBatch]:
        number, source = readers[task[0]]
        yield _by_segment(source.hashes(task[1]), counts[number], firsts[number])

    hashes = map_tasks(spark, tasks, read, _HASHES)
    partitions = max(-(-firsts[-1] // _SEGMENTS_PER_PARTITION), 1)
    partition = f.expr(f"segment DIV {_SEGMENTS_PER_PARTITION}").cast("int")
    rows = hashes.repartitionById(partitions, partition).mapInArrow(_filled, _SEGMENTS).collect()
    found = {row["segment"]: np.frombuffer(row["bits"], np.uint8) for row in rows}
    empty = np.zeros(SEGMENT_BITS // 8, np.uint8)
    return KeyFilter(
        {
            topic: [found.get(n, empty) for n in range(firsts[number], firsts[number + 1])]
            for number, topic in enumerate(topics)
        }
    )


def _segment_counts(keys: Sequence[int]) -> list[int]:
    """Return the number of segments of each topic, by its number of keys."""
    wanted = [-(-max(count, 1) * _BITS_PER_KEY // SEGMENT_BITS) for count in keys]
    total = sum(wanted)
    if total <= MAX_SEGMENTS:
        return wanted
    return [max(count * MAX_SEGMENTS // total, 1) for count in wanted]


def _by_segment(hashes: Hashes, count: int, first: int) -> pa.RecordBatch:
    """Return hashes by the segment they belong to."""
    numbers = segment_numbers(hashes, count)
    order = np.argsort(numbers, kind="stable")
    there, starts = np.unique(numbers[order], return_index=True)
    parts = np.split(hashes[order], starts[1:]) if len(there) else []
    columns = {
        "segment": pa.array((there + first).astype(np.int32)),
        "hashes": pa.array([part.tobytes() for part in parts], pa.binary()),
    }
    return pa.record_batch(columns)


def _filled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the segments of a partition, with the bits of all their hashes."""
    segments: dict[int, npt.NDArray[np.bool_]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            bits = segments.setdefault(row["segment"], np.zeros(SEGMENT_BITS, np.bool_))
            bits[segment_bits(np.frombuffer(row["hashes"], np.uint64)).ravel()] = True
    for number, bits in segments.items():
        columns = [[number], [np.packbits(bits).tobytes()]]
        arrays = [pa.array(columns[0], pa.int32()), pa.array(columns[1], pa.binary())]
        yield pa.record_batch(arrays, names=["segment", "bits"])


def _has_any(segment: Segment, bits: npt.NDArray[np.int64]) -> bool:
    """Return whether a segment has all bits of one of the keys."""
    found = (segment[bits >> 3] >> (7 - (bits & 7)).astype(np.uint8)) & 1
    return bool(found.all(axis=1).any())


def segment_numbers(hashes: Hashes, count: int) -> npt.NDArray[np.int64]:
    """Return the segment of each hash."""
    return ((hashes >> np.uint64(44)) % np.uint64(count)).astype(np.int64)


def segment_bits(hashes: Hashes) -> npt.NDArray[np.int64]:
    """Return the bits that each hash sets in its segment, by double hashing."""
    step = (hashes >> np.uint64(20)) | np.uint64(1)
    probes = np.arange(_PROBES, dtype=np.uint64)
    mixed: Hashes = hashes[:, None] + step[:, None] * probes[None, :]
    return (mixed % np.uint64(SEGMENT_BITS)).astype(np.int64)


def tuple_texts(rows: pa.Table, shape: RowSchema, columns: Sequence[str]) -> pa.ChunkedArray:
    """Return each tuple of rows as one text; those with a null are left out."""
    texts = key_columns(rows, shape, columns)
    return pc.drop_null(pc.binary_join_element_wise(*texts, _SEPARATOR))


def _hash_chunks(texts: pa.ChunkedArray) -> Hashes:
    return np.concatenate([_NO_HASHES, *(hash_keys(chunk) for chunk in texts.chunks)])
