"""Match texts to the words of a query, and score them by BM25.

An index may only propose candidates: its answers depend on what it covers, ours must not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.distinct import distinct_values
from omnigraph.query.inverted_index import TextSegment
from omnigraph.query.ranking import Scores, SparseScores
from omnigraph.storage.columns import Positions
from omnigraph.storage.text_analyzer import tokenize_text

K1, B = 1.2, 0.75
"""How much repetition and length of a text matter to its relevance."""
DEFAULT_EDITS = 2
LOOKUP_RATIO = 8
"""A word that occurs this many times as often as there are candidate texts is looked up in each."""
_ROUNDING_SLACK = 1 + 1e-6
"""What sums are made larger by, so that rounding leaves nothing out."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SegmentView:
    """A segment in one version: the position of each of its texts, -1 for one that is gone."""

    segment: TextSegment
    positions: Positions

    @cached_property
    def is_whole(self) -> bool:
        """Return whether all texts are there."""
        return not len(self.positions) or bool(self.positions.min() >= 0)

    def having(self, number: int) -> Positions:
        """Return the positions of the texts a word stands in, once for each time."""
        rows, _ = self.segment.occurrences(number)
        return self.present(rows)

    def documents(self, number: int) -> int:
        """Count the texts a word stands in."""
        if self.is_whole:
            return int(self.segment.documents[number])
        return len(distinct_values(self.having(number)))

    def times(self, number: int, positions: Positions) -> Positions:
        """Count how often a word stands in each of some texts."""
        there, _ = self.segment.occurrences(number)
        if len(there) < LOOKUP_RATIO * len(positions):
            counts = np.bincount(self.having(number), minlength=int(positions.max(initial=0)) + 1)
            return counts[positions]
        texts = self.rows[np.minimum(positions, len(self.rows) - 1)]
        return np.searchsorted(there, texts, "right") - np.searchsorted(there, texts, "left")

    @cached_property
    def rows(self) -> npt.NDArray[np.int32]:
        """Which of its texts stands at each position, -1 for none; the last is none."""
        rows = np.full(int(self.positions.max(initial=-1)) + 2, -1, np.int32)
        rows[self.positions] = np.arange(len(self.positions), dtype=np.int32)
        rows[-1] = -1
        return rows

    def present(self, rows: npt.NDArray[Any]) -> Positions:
        """Return the positions of texts, without those that are gone."""
        positions: Positions = self.positions[rows]
        return positions if self.is_whole else positions[positions >= 0]


@dataclass(frozen=True)
class TextIndex:
    """The texts of one property by position."""

    rows: int
    parts: tuple[SegmentView, ...]

    @classmethod
    def of(cls, column: pa.Array) -> TextIndex:
        """Return the texts of a column."""
        part = SegmentView(TextSegment.build([column]), np.arange(len(column)))
        return cls(len(column), (part,))

    @cached_property
    def nbytes(self) -> int:
        """How much memory this takes."""
        sizes = (part.segment.nbytes + part.positions.nbytes for part in self.parts)
        return sum(sizes) + self.rows * 4

    @cached_property
    def lengths(self) -> npt.NDArray[np.int32]:
        """How many words each text has."""
        lengths = np.zeros(self.rows, np.int32)
        for part in self.parts:
            there = part.positions >= 0
            lengths[part.positions[there]] = part.segment.lengths[there]
        return lengths

    @cached_property
    def statistics(self) -> tuple[int, float]:
        """How many texts have words, and how many words those have on average."""
        total = int(np.count_nonzero(self.lengths))
        return total, int(self.lengths.sum(dtype=np.int64)) / max(total, 1)

    # --- relevance -----------------------------------------------------------------------------

    def relevance(self, query: str) -> SparseScores:
        """Return the BM25 score of every text that has a word of the query.

        The statistics are those of all texts of the property, whatever else a query contains. A
        word that is twice in the query counts twice.
        """
        there = np.zeros(self.rows, np.bool_)
        for word in {word for word, _ in tokenize_text(query)}:
            for part, number in self.segments_with(word):
                there[part.having(number)] = True
        return self.scored(query, np.flatnonzero(there))

    def first(self, query: str, count: int) -> SparseScores:
        """Return texts among which are the most relevant, and their scores."""
        return self.scored(
            query, self._candidates(query, lambda guess: _kth_best_score(guess, count))
        )

    def above(self, query: str, score: float) -> SparseScores:
        """Return texts among which are all that have at least a score, and their scores."""
        return self.scored(query, self._candidates(query, lambda _: score))

    def _candidates(self, query: str, least: Callable[[Scores], float]) -> Positions:
        """Return texts among which are all whose scores are large enough.

        Words are looked up from the rarest on, until the others together are not enough for a text
        that has none of these.
        """
        words = sorted((self._documents(word), word) for word, _ in tokenize_text(query))
        most = [self._rarity(documents) * (K1 + 1) for documents, _ in words]
        texts: Positions = np.empty(0, np.int64)
        guess: Scores = np.empty(0)
        for number, (_, word) in enumerate(words):
            more, enough = sum(most[number:]) * _ROUNDING_SLACK, least(guess)
            if more < enough:
                return texts[(guess + more) * _ROUNDING_SLACK >= enough]
            positions = self._having(word)
            sums = np.zeros(self.rows)
            sums[texts] = guess
            sums[positions] += self._scores(word, positions)
            texts = np.flatnonzero(sums) if len(texts) else positions
            guess = sums[texts]
        return texts[guess * _ROUNDING_SLACK >= least(guess)]

    def scored(self, query: str, positions: Positions) -> SparseScores:
        """Return the scores of some texts; zero for those that have no word of the query.

        Scores are rounded to 32 bits: what differs by less is equally relevant, in whatever order
        parts were added.
        """
        scores = np.zeros(len(positions))
        for word, _ in tokenize_text(query):
            scores += self._scores(word, positions)
        return SparseScores(positions, scores.astype(np.float32).astype(np.float64))

    def _scores(self, word: str, positions: Positions) -> Scores:
        """Return what a word adds to the scores of some texts."""
        _, average = self.statistics
        times = np.zeros(len(positions))
        for part, number in self.segments_with(word):
            times += part.times(number, positions)
        length = K1 * (1 - B + B * self.lengths[positions] / average)
        return self._rarity(self._documents(word)) * times * (K1 + 1) / (times + length)

    def _rarity(self, documents: int) -> float:
        total, _ = self.statistics
        return log(1 + (total - documents + 0.5) / (documents + 0.5))

    def _documents(self, word: str) -> int:
        """Count the texts that have a word."""
        return sum(part.documents(number) for part, number in self.segments_with(word))

    def _having(self, word: str) -> Positions:
        """Return the texts that have a word, ascending."""
        positions = [part.having(number) for part, number in self.segments_with(word)]
        return distinct_values(np.concatenate([np.empty(0, np.int64), *positions]))

    def segments_with(self, word: str) -> Iterator[tuple[SegmentView, int]]:
        """Yield the segments that have a word, and its number there."""
        for part in self.parts:
            number = part.segment.find(word)
            if number is not None:
                yield part, number

    # --- predicates ----------------------------------------------------------------------------

    def holds(self, match: TextMatcher, query: str, edits: int) -> Mask:
        """Return for each text whether a text predicate holds."""
        mask = np.zeros(self.rows, np.bool_)
        for positions in match(self, query, edits):
            mask[positions] = True
        return mask


TextMatcher: TypeAlias = Callable[[TextIndex, str, int], Iterable[Positions]]
"""A text predicate: yields the positions of the texts that match a query."""


def match_any_word(texts: TextIndex, query: str, _edits: int) -> Iterable[Positions]:
    """Yield the texts that have any word of the query."""
    for word in _query_words(query):
        yield from (part.having(number) for part, number in texts.segments_with(word))


def match_phrase(texts: TextIndex, query: str, _edits: int) -> Iterable[Positions]:
    """Yield the texts that have the words of the query one after the other."""
    yield from (_match_phrase(part, tokenize_text(query)) for part in texts.parts)


def match_similar_words(texts: TextIndex, query: str, edits: int) -> Iterable[Positions]:
    """Yield the texts that have a word at most `edits` letters away from one of the query."""
    for word in _query_words(query):
        for part in texts.parts:
            for number in part.segment.close(word, edits):
                yield part.having(number)


def _query_words(query: str) -> set[str]:
    return {word for word, _ in tokenize_text(query)}


def _kth_best_score(scores: Scores, count: int) -> float:
    """Return the last of the `count` best scores; less than any when there are fewer."""
    enough = len(scores) >= count > 0
    return float(np.partition(scores, -count)[-count]) if enough else -np.inf


def _match_phrase(part: SegmentView, phrase: tuple[tuple[str, int], ...]) -> Positions:
    """Return the texts that have the words of a phrase at the same distances."""
    numbers = [part.segment.find(word) for word, _ in phrase]
    if not phrase or None in numbers:
        return np.empty(0, np.int64)
    starts: Positions | None = None
    wide = np.int64(2**31)
    for number, (_, place) in zip(numbers, phrase, strict=True):
        assert number is not None, "every word was found"
        rows, places = part.segment.occurrences(number)
        # Where the phrase would have to begin; a beginning before the text is none in another.
        begins = rows * wide + places.astype(np.int64) - place + phrase[-1][1]
        starts = begins if starts is None else starts[np.isin(starts, begins)]
    assert starts is not None, "a phrase has words"
    return part.present(starts // wide)
