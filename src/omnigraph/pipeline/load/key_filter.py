"""A compact filter of the keys that staged rows refer to.

A load that lost a race must know whether the commits of other writers affect it. Workers read the
rows once and store hashes of ids and tuples; the answer `no` is certain, `yes` almost certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from omnigraph.pipeline.load.aggregation import ScratchDir, hash_ids
from omnigraph.pipeline.load.fragment_scan import DatasetFragments
from omnigraph.pipeline.sessions.executors import run_on_executors
from omnigraph.write.change_set import RowSchema
from omnigraph.write.checks.unique import key_columns

Hashes = npt.NDArray[np.uint64]

MAX_HASHES = 64 * 1024 * 1024
"""The most hashes that are kept of one topic; each takes eight bytes."""

_NO_HASHES: Hashes = np.empty(0, np.uint64)
_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class KeySource:
    """The keys of rows for a topic: the ids in some columns, or tuples of columns."""

    rows: DatasetFragments
    ids: tuple[str, ...] = ()
    tuple_: tuple[str, ...] = ()


class KeyFilter:
    """The hashes of keys by topic; None where there are too many."""

    def __init__(self, hashes: Mapping[str, Hashes | None]) -> None:
        self._hashes = hashes

    def may_contain(self, topic: str, texts: pa.ChunkedArray) -> bool:
        """Return whether one of the texts may be in the filter; False is certain."""
        if topic not in self._hashes or not len(texts):
            return False
        hashes = self._hashes[topic]
        if hashes is None:
            return True
        wanted = _hash_chunks(texts)
        places = np.searchsorted(hashes, wanted)
        inside = places < len(hashes)
        return bool(np.any(hashes[places[inside]] == wanted[inside]))


def build_key_filter(
    spark: SparkSession, place: ScratchDir, topics: Mapping[str, Sequence[KeySource]]
) -> KeyFilter:
    """Collect the hashes of all topics on workers."""
    work = [
        (topic, source, piece)
        for topic, every in topics.items()
        for source in every
        for piece in source.rows.task_groups
    ]
    found = {topic: _HashCollector() for topic in topics}
    for topic, path in run_on_executors(spark, partial(_write_hashes, place), work):
        data = place.objects.get(path)
        assert data is not None, "a worker has just put it down"
        place.objects.delete([path])
        found[topic].add(np.frombuffer(data, np.uint64))
    return KeyFilter({topic: gathered.hashes() for topic, gathered in found.items()})


class _HashCollector:
    """Puts hashes together; sorts whenever there are as many new ones as known ones."""

    def __init__(self) -> None:
        self._known, self._new = _NO_HASHES, [_NO_HASHES]
        self._is_full = False

    def add(self, hashes: Hashes) -> None:
        if self._is_full:
            return
        self._new.append(hashes)
        if sum(map(len, self._new)) > len(self._known):
            self._known = np.unique(np.concatenate([self._known, *self._new]))
            self._new = [_NO_HASHES]
            self._is_full = len(self._known) > MAX_HASHES

    def hashes(self) -> Hashes | None:
        found = np.unique(np.concatenate([self._known, *self._new]))
        return None if self._is_full else found


def _write_hashes(place: ScratchDir, work: tuple[str, KeySource, Sequence[int]]) -> tuple[str, str]:
    """Put down the hashes of a piece of rows."""
    topic, source, piece = work
    found = [_NO_HASHES]
    for table in source.rows.read([*source.ids, *source.tuple_], piece):
        found += [_hash_chunks(table[name]) for name in source.ids]
        if source.tuple_:
            found.append(_hash_chunks(tuple_texts(table, source.rows.shape, source.tuple_)))
    return topic, place.put(np.unique(np.concatenate(found)).tobytes())


def tuple_texts(rows: pa.Table, shape: RowSchema, columns: Sequence[str]) -> pa.ChunkedArray:
    """Return each tuple of rows as one text; those with a null are left out."""
    texts = key_columns(rows, shape, columns)
    return pc.drop_null(pc.binary_join_element_wise(*texts, _SEPARATOR))


def _hash_chunks(texts: pa.ChunkedArray) -> Hashes:
    return np.concatenate([_NO_HASHES, *(hash_ids(chunk) for chunk in texts.chunks)])
