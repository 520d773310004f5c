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

from omnigraph.pipeline.buckets import ScratchDir, hash_ids
from omnigraph.pipeline.scan import DatasetFragments
from omnigraph.pipeline.tasks import run_on_executors
from omnigraph.write.change_set import RowSchema
from omnigraph.write.checks.unique import key_columns

Hashes = npt.NDArray[np.uint64]

MAX_HASHES = 64 * 1024 * 1024
"""So many different hashes of one topic are kept; each takes eight bytes."""

_NO_HASHES: Hashes = np.empty(0, np.uint64)
_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class KeySource:
    """What rows say about a topic: the ids in some columns, or the tuples of some."""

    rows: DatasetFragments
    ids: tuple[str, ...] = ()
    tuple_: tuple[str, ...] = ()


class KeyFilter:
    """The hashes of what is mentioned, by topic; None where there are too many to remember."""

    def __init__(self, hashes: Mapping[str, Hashes | None]) -> None:
        self._hashes = hashes

    def have(self, topic: str, texts: pa.ChunkedArray) -> bool:
        """Tell whether one of the texts may be mentioned; False is certain."""
        if topic not in self._hashes or not len(texts):
            return False
        known = self._hashes[topic]
        if known is None:
            return True
        asked = _hash_chunks(texts)
        places = np.searchsorted(known, asked)
        inside = places < len(known)
        return bool(np.any(known[places[inside]] == asked[inside]))


def build_key_filter(
    spark: SparkSession, place: ScratchDir, topics: Mapping[str, Sequence[KeySource]]
) -> KeyFilter:
    """Return what rows say about topics."""
    work = [
        (topic, said, piece)
        for topic, every in topics.items()
        for said in every
        for piece in said.rows.pieces
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
    topic, said, piece = work
    found = [_NO_HASHES]
    for table in said.rows.read([*said.ids, *said.tuple_], piece):
        found += [_hash_chunks(table[name]) for name in said.ids]
        if said.tuple_:
            found.append(_hash_chunks(tuple_texts(table, said.rows.shape, said.tuple_)))
    return topic, place.put(np.unique(np.concatenate(found)).tobytes())


def tuple_texts(rows: pa.Table, shape: RowSchema, columns: Sequence[str]) -> pa.ChunkedArray:
    """Return each tuple of rows as one text; one with a null is no tuple."""
    texts = key_columns(rows, shape, columns)
    return pc.drop_null(pc.binary_join_element_wise(*texts, _SEPARATOR))


def _hash_chunks(texts: pa.ChunkedArray) -> Hashes:
    return np.concatenate([_NO_HASHES, *(hash_ids(chunk) for chunk in texts.chunks)])
