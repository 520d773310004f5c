"""Inverted indexes of text properties, built incrementally from fragment to fragment.

Fragments never change, so what was made of them for one version serves the next: a version is seen
as segments, each made from the texts of some fragments, without the rows that are gone meanwhile.
Large segments are kept in files, from which a process that begins has them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.commit.model import VersionState
from omnigraph.query import text_index_files
from omnigraph.query.bm25 import SegmentView, TextIndex
from omnigraph.query.column_cache import MAX_TRACKED_KEYS, ColumnCache, TypeTable
from omnigraph.query.inverted_index import TextSegment
from omnigraph.query.limits import run_apart
from omnigraph.query.text_index_files import IndexedSegment, TextIndexFiles, property_identity
from omnigraph.storage.columns import FragmentRows, Positions, list_fragments
from omnigraph.storage.lru_cache import LruCache

SEGMENT_MERGE_FACTOR = 2
"""A segment not larger than this many times the new texts is rebuilt together with them."""

_PropertyKey: TypeAlias = tuple[int, int, str]
"""A dataset and a property of it, by identity."""


@dataclass(frozen=True)
class _TextIndexVersion:
    """The texts of a version, and what they are made of."""

    cuts: tuple[IndexedSegment, ...]
    texts: TextIndex

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
        return self.texts.nbytes


class TextIndexCache:
    """The words of the texts of a graph that are in memory or in files.

    `built` counts the segments that were made from texts.
    """

    def __init__(self, store: ColumnCache, *, may_write: bool) -> None:
        self._store = store
        self._files = TextIndexFiles(store.manifest.location, may_write=may_write)
        self.built = 0
        self._last: LruCache[_PropertyKey, tuple[str, VersionState, str]] = LruCache(
            MAX_TRACKED_KEYS
        )

    def known(self, table: TypeTable, name: str) -> bool:
        """Return whether the index of a property is in memory."""
        return self._store.get(_cache_key(table, name)) is not None

    def texts(
        self, table: TypeTable, name: str, check: Callable[[], None] = lambda: None
    ) -> TextIndex:
        """Return the texts of a property; while they are read, `check` may raise."""
        key = _cache_key(table, name)
        version: _TextIndexVersion | None = self._store.get(key)
        if version is None:
            last = self._last.get(_property_key(table, name))
            before: _TextIndexVersion | None = self._store.get(last) if last is not None else None
            cuts = before.cuts if before is not None else ()
            version = self._view(table, name, cuts, check)
            self._store.keep(key, version)
            self._last.put(_property_key(table, name), key)
        return version.texts

    def refresh(self, table: TypeTable, name: str, check: Callable[[], None]) -> bool:
        """Store the words of a property before readers need them; return whether it did.

        Files of older versions serve as long as few texts are new since.
        """
        fragments = self._fragments(table)
        there = {fragment.key: fragment for fragment in fragments}
        new, _ = _plan_segments(fragments, _reusable(self._files.load(table, name), there))
        if sum(fragment.rows for fragment in new) < text_index_files.MIN_STORED_TEXTS:
            return False
        self.texts(table, name, check)
        return True

    @staticmethod
    def _fragments(table: TypeTable) -> list[FragmentRows]:
        with table.open() as handle:
            return list_fragments(handle)

    def _view(
        self,
        table: TypeTable,
        name: str,
        segments: Sequence[IndexedSegment],
        check: Callable[[], None],
    ) -> _TextIndexVersion:
        fragments = self._fragments(table)
        there = {fragment.key: fragment for fragment in fragments}
        new, kept = _plan_segments(fragments, _reusable(segments, there))
        if new and table.rows >= text_index_files.MIN_STORED_TEXTS:
            stored = self._files.load(table, name)
            new, kept = _plan_segments(fragments, _reusable([*segments, *stored], there))
        if new or not kept:
            segment = TextSegment.build(table.read_fragment_column(name, new), check)
            self.built += 1
            indexed = IndexedSegment(tuple(new), segment)
            kept = [*kept, run_apart(lambda: self._files.save(table, name, indexed), check)]
        starts = dict(zip(there, _fragment_starts(fragments), strict=True))
        parts = (SegmentView(cut.segment, _segment_positions(cut, there, starts)) for cut in kept)
        return _TextIndexVersion(tuple(kept), TextIndex(table.rows, tuple(parts)))


def _property_key(table: TypeTable, name: str) -> _PropertyKey:
    """Return what identifies a property whatever it is called: another one may get its name."""
    return (*table.entry.key, property_identity(table, name))


def _cache_key(table: TypeTable, name: str) -> tuple[str, VersionState, str]:
    return (*table.key, f"words of {name}")


def _reusable(
    segments: Iterable[IndexedSegment], there: dict[str, FragmentRows]
) -> list[IndexedSegment]:
    """Return segments that serve a version, the largest first, of each fragment one at most."""
    kept: list[IndexedSegment] = []
    covered: set[str] = set()
    for segment in sorted(segments, key=lambda segment: -segment.rows):
        keys = {fragment.key for fragment in segment.fragments}
        if not keys & covered and _is_reusable(segment, there):
            kept.append(segment)
            covered |= keys
    return kept


def _is_reusable(cut: IndexedSegment, there: dict[str, FragmentRows]) -> bool:
    """Return whether all fragments of a cut are in a version, with no rows it lacks."""
    return all(
        fragment.key in there and _surviving_rows(fragment, there[fragment.key]) is not None
        for fragment in cut.fragments
    )


def _surviving_rows(cut: FragmentRows, now: FragmentRows) -> npt.NDArray[np.int64] | None:
    """Return which rows of a fragment that was cut are there now; None when some were not cut."""
    if now.offsets is None:
        return np.arange(now.rows) if cut.rows == now.rows else None
    if cut.offsets is None:
        return now.offsets.astype(np.int64)
    places = np.searchsorted(cut.offsets, now.offsets)
    if len(places) and (places[-1] >= cut.rows or (cut.offsets[places] != now.offsets).any()):
        return None
    return places


def _plan_segments(
    fragments: Sequence[FragmentRows], cuts: Sequence[IndexedSegment]
) -> tuple[list[FragmentRows], list[IndexedSegment]]:
    """Return the fragments to cut, and the cuts to keep; of those there are always few.

    Small cuts are made again with the new texts, so that sizes grow from each to the next.
    """
    kept = sorted(cuts, key=lambda cut: -cut.rows)
    covered = {fragment.key for cut in kept for fragment in cut.fragments}
    size = sum(fragment.rows for fragment in fragments if fragment.key not in covered)
    while size and kept and kept[-1].rows <= SEGMENT_MERGE_FACTOR * size:
        again = kept.pop()
        size += again.rows
        covered -= {fragment.key for fragment in again.fragments}
    return [fragment for fragment in fragments if fragment.key not in covered], kept


def _fragment_starts(fragments: Sequence[FragmentRows]) -> list[int]:
    """Return the position of the first row of each fragment."""
    ends = np.cumsum([fragment.rows for fragment in fragments], dtype=np.int64)
    return [int(end) - fragment.rows for end, fragment in zip(ends, fragments, strict=True)]


def _segment_positions(
    cut: IndexedSegment, there: dict[str, FragmentRows], starts: dict[str, int]
) -> Positions:
    """Return the position of each text of a cut in a version."""
    parts = [np.empty(0, np.int64)]
    for fragment in cut.fragments:
        now = there[fragment.key]
        places = _surviving_rows(fragment, now)
        assert places is not None, "the cut serves this version"
        part = np.full(fragment.rows, -1)
        part[places] = starts[fragment.key] + np.arange(now.rows)
        parts.append(part)
    return np.concatenate(parts)
