"""This module decides which texts a query of words finds, and how relevant they are.

An index may only propose candidates: its answers depend on what it covers, ours must not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import fsum, log
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from omnigraph.storage.columns import Positions
from omnigraph.storage.text import words

K1, B = 1.2, 0.75
"""How much repetition and length of a text matter to its relevance."""
DEFAULT_EDITS = 2


@dataclass
class Texts:
    """The texts of one property, by position, cut into words when first looked at."""

    column: pa.Array
    _words: dict[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """How much memory this takes, roughly."""
        return int(self.column.nbytes) * 8

    def at(self, position: int) -> tuple[tuple[str, int], ...]:
        """Return the words of the text at a position; null has none."""
        found = self._words.get(position)
        if found is None:
            text = self.column[position].as_py()
            found = self._words[position] = () if text is None else words(text)
        return found

    @cached_property
    def postings(self) -> dict[str, dict[int, int]]:
        """How often each word stands in each text that has it."""
        found: dict[str, dict[int, int]] = {}
        for position in range(len(self.column)):
            for word, times in Counter(word for word, _ in self.at(position)).items():
                found.setdefault(word, {})[position] = times
        return found

    @cached_property
    def lengths(self) -> dict[int, int]:
        """How many words each text has that has any."""
        counts = ((position, len(self.at(position))) for position in range(len(self.column)))
        return {position: count for position, count in counts if count}

    def relevance(self, query: str) -> dict[int, float]:
        """Return the BM25 score of every text that has a word of the query.

        The statistics are those of all texts of the property, whatever else a query asks. A word
        that stands twice in the query counts twice.
        """
        total = len(self.lengths)
        if not total:
            return {}
        average = sum(self.lengths.values()) / total
        parts: dict[int, list[float]] = {}
        for word, _ in words(query):
            having = self.postings.get(word, {})
            rarity = log(1 + (total - len(having) + 0.5) / (len(having) + 0.5))
            for position, times in having.items():
                length = K1 * (1 - B + B * self.lengths[position] / average)
                score = rarity * times * (K1 + 1) / (times + length)
                parts.setdefault(position, []).append(score)
        return {position: fsum(scores) for position, scores in parts.items()}

    def holds(self, test: str, query: str, edits: int, positions: Positions) -> np.ndarray:
        """Tell for each position whether a text predicate holds."""
        decide = _TESTS[test]
        phrase = words(query)
        wanted, back = np.unique(positions, return_inverse=True)
        held = [decide(self.at(int(position)), phrase, edits) for position in wanted]
        return np.array(held, np.bool_)[back] if len(wanted) else np.zeros(0, np.bool_)


_Words = tuple[tuple[str, int], ...]


def _search(text: _Words, phrase: _Words, _: int) -> bool:
    """Tell whether a text has any word of the query."""
    return not {word for word, _ in text}.isdisjoint(word for word, _ in phrase)


def _match_text(text: _Words, phrase: _Words, _: int) -> bool:
    """Tell whether a text has the words of the query at the same distances."""
    if not phrase:
        return False
    first, start = phrase[0]
    found = set(text)
    return any(
        all((other, at - start + place) in found for other, place in phrase)
        for word, at in found
        if word == first
    )


def _fuzzy(text: _Words, phrase: _Words, edits: int) -> bool:
    """Tell whether a word of the text is close to a word of the query."""
    wanted = {word for word, _ in phrase}
    return any(_edits(one, other) <= edits for one in wanted for other, _ in text)


@lru_cache(maxsize=65_536)
def _edits(one: str, other: str) -> int:
    """Count the letters to insert, remove or replace."""
    before = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]


_TESTS: Mapping[str, Callable[[_Words, _Words, int], bool]] = MappingProxyType(
    {"search": _search, "match_text": _match_text, "fuzzy": _fuzzy}
)
