"""An inverted index of texts as arrays: the positions of each word."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.columns import Positions
from omnigraph.storage.text_analyzer import TextAnalyzer

TermNumbers = npt.NDArray[np.int32]


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

    @classmethod
    def build(cls, batches: Iterable[pa.Array]) -> TextSegment:
        """Cut texts into words."""
        analyser, total = TextAnalyzer(), 0
        parts: list[tuple[TermNumbers, TermNumbers, TermNumbers]] = []
        for texts in batches:
            stems, rows, places = analyser.cut(texts)
            parts.append((stems, rows + np.int32(total), places))
            total += len(texts)
        nothing = np.empty(0, np.int32)
        stems, rows, places = (
            np.concatenate([nothing, *(part[i] for part in parts)]) for i in range(3)
        )
        del parts
        terms = pa.array(list(analyser.stems), pa.string())
        alphabet = pc.array_sort_indices(terms)
        rank = np.empty(len(terms), np.int32)
        rank[np.asarray(alphabet)] = np.arange(len(terms), dtype=np.int32)
        numbers = rank[stems]
        order = np.argsort(numbers, kind="stable")
        starts = np.zeros(len(terms) + 1, np.int64)
        np.cumsum(np.bincount(numbers, minlength=len(terms)), out=starts[1:])
        lengths = np.bincount(rows, minlength=total).astype(np.int32)
        numbers, rows = numbers[order], rows[order]
        first = np.ones(len(rows), np.bool_)
        first[1:] = (numbers[1:] != numbers[:-1]) | (rows[1:] != rows[:-1])
        documents = np.bincount(numbers[first], minlength=len(terms)).astype(np.int32)
        return cls(terms.take(alphabet), starts, rows, places[order], documents, lengths)

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
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
