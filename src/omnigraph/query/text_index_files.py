"""Segments of text indexes in files, so that a process that begins does not read the texts again.

Fragments never change, so a segment serves every version that has its fragments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.query.array_files import UNREADABLE, ArrayFiles
from omnigraph.query.column_cache import TypeTable
from omnigraph.query.inverted_index import TextSegment
from omnigraph.storage import Location
from omnigraph.storage.columns import FragmentRows

TEXT_INDEX_FOLDER = "_text"
MIN_STORED_TEXTS = 10_000
"""Texts from which on a segment is kept in files: fewer are cut into words again quickly."""
KEPT_SEGMENTS = 12
"""Segments of one property that are kept: those of a version, and of some older ones."""
_ARRAYS = ("starts", "rows", "places", "documents", "lengths")
_WORD_OFFSETS, _WORD_LETTERS = "word-offsets", "word-letters"


@dataclass(frozen=True, slots=True)
class IndexedSegment:
    """A segment and the fragments whose rows its texts are, in their order."""

    fragments: tuple[FragmentRows, ...]
    segment: TextSegment

    @property
    def rows(self) -> int:
        """How many texts it has."""
        return len(self.segment.lengths)


def property_identity(table: TypeTable, name: str) -> str:
    """Return what identifies a property whatever it is called, or `id`, which is none."""
    number = table.type.property_ids.get(name)
    return name if number is None else f"{number:016x}"


class TextIndexFiles:
    """The files of one graph."""

    def __init__(self, location: Location, *, may_write: bool) -> None:
        self._files = ArrayFiles(location, TEXT_INDEX_FOLDER, KEPT_SEGMENTS, may_write=may_write)

    def load(self, table: TypeTable, name: str) -> Iterator[IndexedSegment]:
        """Yield the segments of a property that are there and whole."""
        for folder in self._files.newest_first(self._home(table, name)):
            stored = self._read(folder)
            if stored is not None:
                yield stored

    def save(self, table: TypeTable, name: str, indexed: IndexedSegment) -> IndexedSegment:
        """Write a large segment to files and return it mapped into memory, or as it is."""
        if indexed.rows < MIN_STORED_TEXTS:
            return indexed
        segment = indexed.segment
        _, offsets, letters = segment.words.buffers()
        arrays = {array: getattr(segment, array) for array in _ARRAYS}
        arrays[_WORD_OFFSETS] = np.frombuffer(offsets, np.int32)[: len(segment.words) + 1]
        arrays[_WORD_LETTERS] = np.frombuffer(letters or b"", np.uint8)
        fragments = []
        for number, fragment in enumerate(indexed.fragments):
            if fragment.offsets is not None:
                arrays[f"live-{number}"] = fragment.offsets
            facts = {"key": fragment.key, "number": fragment.number, "rows": fragment.rows}
            fragments.append({**facts, "is_partial": fragment.offsets is not None})
        key = "|".join(f"{fragment.key}:{fragment.rows}" for fragment in indexed.fragments)
        place = self._files.place(self._home(table, name), key)
        if self._files.save(place, arrays, {"fragments": fragments}):
            return self._read(place) or indexed  # mapped files take no memory of ours
        return indexed

    def damaged(self) -> Iterator[str]:
        """Yield the folders in which a file does not match its checksum, or that has none."""
        return self._files.damaged()

    def _home(self, table: TypeTable, name: str) -> Path:
        return self._files.home(table.entry, property_identity(table, name))

    def _read(self, folder: Path) -> IndexedSegment | None:
        with suppress(*UNREADABLE):
            stored = self._files.facts(folder)["fragments"]
            fragments = tuple(
                self._fragment(folder, number, facts) for number, facts in enumerate(stored)
            )
            arrays = {array: self._files.mapped(folder, array) for array in _ARRAYS}
            offsets, letters = (
                self._files.mapped(folder, array) for array in (_WORD_OFFSETS, _WORD_LETTERS)
            )
            words = pa.StringArray.from_buffers(
                len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(letters)
            )
            segment = TextSegment(words, **arrays, is_mapped=True)
            is_whole = (
                len(segment.starts) == len(words) + 1 == len(segment.documents) + 1
                and segment.starts[-1] == len(segment.rows) == len(segment.places)
                and offsets[-1] == len(letters)
                and len(segment.lengths) == sum(fragment.rows for fragment in fragments)
            )
            return IndexedSegment(fragments, segment) if is_whole else None
        return None

    def _fragment(self, folder: Path, number: int, facts: dict[str, Any]) -> FragmentRows:
        live = self._files.mapped(folder, f"live-{number}") if facts["is_partial"] else None
        return FragmentRows(facts["key"], facts["number"], facts["rows"], live)
