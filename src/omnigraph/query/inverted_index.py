"""An inverted index of texts as arrays: the positions of each word."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.limits import chunk_slices
from omnigraph.storage.columns import Positions
from omnigraph.storage.text_analyzer import TextAnalyzer

CUT_ROWS = 8_192
"""Texts that are cut into words at once."""

TermNumbers = npt.NDArray[np.int32]
_Cut = tuple[TermNumbers, TermNumbers, TermNumbers]
"""Words by number as they stand in some texts, the text of each and its place there."""
_NOTHING: _Cut = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32))


@dataclass(frozen=True)
class TextSegment:
    """The words of some texts, which are numbered from 0.

    Word `i`, in the order of its letters, stands at `starts[i]` up to `starts[i + 1]`: in the text
    `rows`, there at the place `places`, in the order of both. `documents` count the texts of words,
    `lengths` the words of texts.
    """

    words: pa.StringArray
    starts: Positions
    rows: TermNumbers
    places: TermNumbers
    documents: TermNumbers
    lengths: TermNumbers
    is_mapped: bool = False
    """Whether the arrays are in files, which take none of our memory."""

    @classmethod
    def build(
        cls, batches: Iterable[pa.Array], check: Callable[[], None] = lambda: None
    ) -> TextSegment:
        """Cut texts into words; between parts of them `check` is called, which may raise."""
        analyser, total = TextAnalyzer(), 0
        parts: list[_Cut] = []
        lengths = [np.empty(0, np.int32)]
        for batch in batches:
            for texts in (batch[part] for part in chunk_slices(len(batch), CUT_ROWS)):
                check()
                stems, rows, places = analyser.cut(texts)
                parts.append((stems, rows + np.int32(total), places))
                lengths.append(np.bincount(rows, minlength=len(texts)).astype(np.int32))
                total += len(texts)
        terms = pa.array(list(analyser.stems), pa.string())
        alphabet = pc.array_sort_indices(terms)
        rank = np.empty(len(terms), np.int32)
        rank[np.asarray(alphabet)] = np.arange(len(terms), dtype=np.int32)
        starts = np.zeros(len(terms) + 1, np.int64)
        for stems, _, _ in parts:
            starts[1:] += np.bincount(rank[stems], minlength=len(terms))
        np.cumsum(starts, out=starts)
        grouped = _grouped(parts, rank, starts, check)
        return cls(terms.take(alphabet), starts, *grouped, np.concatenate(lengths))

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
        if self.is_mapped:
            return 0
        arrays = (self.starts, self.rows, self.places, self.documents, self.lengths)
        return int(self.words.nbytes) + sum(array.nbytes for array in arrays)

    def find(self, word: str) -> int | None:
        """Return the number of a word, if a text has it."""
        place = bisect_left(range(len(self.words)), word, key=lambda i: self.words[i].as_py())
        there = place < len(self.words) and self.words[place].as_py() == word
        return place if there else None

    def occurrences(self, number: int) -> tuple[TermNumbers, TermNumbers]:
        """Return the texts a word stands in, one for each time, and its places there."""
        here = slice(self.starts[number], self.starts[number + 1])
        return self.rows[here], self.places[here]

    def close(self, word: str, edits: int) -> Positions:
        """Return the words within an edit distance: inserted, removed or replaced."""
        sizes = np.asarray(pc.utf8_length(self.words))
        matches = [np.empty(0, np.int64)]
        for size in np.unique(sizes[np.abs(sizes - len(word)) <= edits]).tolist():
            numbers = np.flatnonzero(sizes == size)
            others = "".join(self.words.take(pa.array(numbers)).to_pylist())
            letters = np.frombuffer(others.encode("utf-32-le"), np.uint32).reshape(-1, size)
            matches.append(numbers[_edit_distances(word, letters) <= edits])
        return np.concatenate(matches)


def _grouped(
    parts: list[_Cut], rank: TermNumbers, starts: Positions, check: Callable[[], None]
) -> tuple[TermNumbers, TermNumbers, TermNumbers]:
    """Return texts and places by word, and how many texts each word has; the parts are used up.

    They are put where they stay one by one, so that memory is taken for words once.
    """
    rows, places = (np.empty(starts[-1], np.int32) for _ in range(2))
    documents, filled = np.zeros(len(rank), np.int32), starts[:-1].copy()
    for number, (stems, part_rows, part_places) in enumerate(parts):
        check()
        parts[number] = _NOTHING
        words = rank[stems]
        order = np.argsort(words, kind="stable")
        words, part_rows = words[order], part_rows[order]
        counts = np.bincount(words, minlength=len(rank))
        first = np.cumsum(counts) - counts
        targets = (filled - first)[words] + np.arange(len(words))
        rows[targets], places[targets] = part_rows, part_places[order]
        filled += counts
        is_first = np.ones(len(words), np.bool_)
        is_first[1:] = (words[1:] != words[:-1]) | (part_rows[1:] != part_rows[:-1])
        documents += np.bincount(words[is_first], minlength=len(rank)).astype(np.int32)
    return rows, places, documents


def _edit_distances(word: str, letters: npt.NDArray[np.uint32]) -> TermNumbers:
    """Count the edits from a word to each of others of one size, given as rows of letters."""
    count, size = letters.shape
    before: TermNumbers = np.repeat(np.arange(size + 1, dtype=np.int32)[:, None], count, axis=1)
    for number, letter in enumerate(word, 1):
        row = np.empty_like(before)
        row[0] = number
        for place in range(1, size + 1):
            replaced = before[place - 1] + (letters[:, place - 1] != ord(letter))
            shifted = np.minimum(before[place], row[place - 1]) + 1
            row[place] = np.minimum(shifted, replaced)
        before = row
    counted: TermNumbers = before[-1]
    return counted
