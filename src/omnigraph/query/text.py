"""This module decides which texts a query of words finds, and how relevant they are.

An index may only propose candidates: its answers depend on what it covers, ours must not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.scored import Scored, Scores
from omnigraph.query.segment import Segment
from omnigraph.storage.columns import Positions
from omnigraph.storage.text import words

K1, B = 1.2, 0.75
"""How much repetition and length of a text matter to its relevance."""
DEFAULT_EDITS = 2

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """A segment in one version: the position of each of its texts, -1 for one that is gone."""

    segment: Segment
    positions: Positions

    @cached_property
    def is_whole(self) -> bool:
        """Tell whether all texts are there."""
        return not len(self.positions) or bool(self.positions.min() >= 0)

    def having(self, number: int) -> Positions:
        """Return the positions of the texts a word stands in, once for each time."""
        rows, _ = self.segment.occurrences(number)
        return self.present(rows)

    def present(self, rows: npt.NDArray[Any]) -> Positions:
        """Return the positions of texts, without those that are gone."""
        positions: Positions = self.positions[rows]
        return positions if self.is_whole else positions[positions >= 0]


@dataclass(frozen=True)
class Texts:
    """The texts of one property by position."""

    rows: int
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, column: pa.Array) -> Texts:
        """Return the texts of a column."""
        part = Part(Segment.build([column]), np.arange(len(column)))
        return cls(len(column), (part,))

    @cached_property
    def nbytes(self) -> int:
        """How much memory this takes."""
        sizes = (part.segment.nbytes + part.positions.nbytes for part in self.parts)
        return sum(sizes) + self.rows * 4

    @cached_property
    def lengths(self) -> npt.NDArray[np.int32]:
        """How many words each text has."""
        found = np.zeros(self.rows, np.int32)
        for part in self.parts:
            there = part.positions >= 0
            found[part.positions[there]] = part.segment.lengths[there]
        return found

    @cached_property
    def statistics(self) -> tuple[int, float]:
        """How many texts have words, and how many words those have on average."""
        total = int(np.count_nonzero(self.lengths))
        return total, int(self.lengths.sum(dtype=np.int64)) / max(total, 1)

    # --- relevance -----------------------------------------------------------------------------

    def relevance(self, query: str) -> Scored:
        """Return the BM25 score of every text that has a word of the query.

        The statistics are those of all texts of the property, whatever else a query asks. A word
        that stands twice in the query counts twice.
        """
        total, average = self.statistics
        parts: list[tuple[Positions, Scores]] = []
        for word, _ in words(query):
            positions, times = self._documents(word)
            rarity = log(1 + (total - len(positions) + 0.5) / (len(positions) + 0.5))
            length = K1 * (1 - B + B * self.lengths[positions] / average)
            parts.append((positions, rarity * times * (K1 + 1) / (times + length)))
        return _sums(self.rows, parts)

    def _documents(self, word: str) -> tuple[Positions, Positions]:
        """Return the texts that have a word, and how often."""
        found = [p.having(number) for p, number in self._numbers(word)]
        # The occurrences of one text stand together.
        counted = [_counted(positions) for positions in found]
        nothing = np.empty(0, np.int64)
        return (
            np.concatenate([nothing, *(positions for positions, _ in counted)]),
            np.concatenate([nothing, *(times for _, times in counted)]),
        )

    def _numbers(self, word: str) -> Iterator[tuple[Part, int]]:
        for part in self.parts:
            number = part.segment.find(word)
            if number is not None:
                yield part, number

    # --- predicates ----------------------------------------------------------------------------

    def holds(self, test: str, query: str, edits: int) -> Mask:
        """Tell for each text whether a text predicate holds."""
        found = np.zeros(self.rows, np.bool_)
        for positions in self._holding(test, query, edits):
            found[positions] = True
        return found

    def _holding(self, test: str, query: str, edits: int) -> Iterable[Positions]:
        wanted = {word for word, _ in words(query)}
        match test:
            case "search":
                for word in wanted:
                    yield from (p.having(number) for p, number in self._numbers(word))
            case "match_text":
                yield from (_phrase(part, words(query)) for part in self.parts)
            case "fuzzy":
                for word in wanted:
                    for part in self.parts:
                        for number in part.segment.close(word, edits):
                            yield part.having(number)
            case _:
                raise AssertionError(f"{test} is no text predicate")


def _sums(rows: int, parts: Sequence[tuple[Positions, Scores]]) -> Scored:
    """Add up scores by position.

    What rounding loses is added at the end: equal texts get equal scores, whichever of their words
    comes first in the query.
    """
    found, lost = np.zeros(rows), np.zeros(rows)
    for positions, scores in parts:
        before = found[positions]
        after = before + scores
        part = after - before
        lost[positions] += (before - (after - part)) + (scores - part)
        found[positions] = after
    there = np.flatnonzero(found)
    return Scored(there, found[there] + lost[there])


def _counted(positions: Positions) -> tuple[Positions, Positions]:
    """Return different positions of a list in which equal ones stand together, and their counts."""
    if not len(positions):
        return positions, positions
    starts = np.flatnonzero(np.concatenate([[True], positions[1:] != positions[:-1]]))
    return positions[starts], np.diff(starts, append=len(positions))


def _phrase(part: Part, phrase: tuple[tuple[str, int], ...]) -> Positions:
    """Return the texts that have the words of a phrase at the same distances."""
    numbers = [part.segment.find(word) for word, _ in phrase]
    if not phrase or None in numbers:
        return np.empty(0, np.int64)
    found: Positions | None = None
    wide = np.int64(2**31)
    for number, (_, place) in zip(numbers, phrase, strict=True):
        assert number is not None, "every word was found"
        rows, places = part.segment.occurrences(number)
        # Where the phrase would have to begin; a beginning before the text is none in another.
        begins = rows * wide + places.astype(np.int64) - place + phrase[-1][1]
        found = begins if found is None else found[np.isin(found, begins)]
    assert found is not None, "a phrase has words"
    return part.present(found // wide)
