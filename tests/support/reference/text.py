"""What the text functions mean, over plain strings.

The analyser is Lance's default one, asked directly: cut at every character that is neither letter
nor digit, drop words of 40 bytes and more, lower-case, stem as English, drop stop words, fold
accents to ASCII. A dropped word leaves its position empty. `tests/substrate/test_lance_text.py`
holds these functions against a full index.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import fsum, log

import numpy as np
from lance import tokenize

K1, B = 1.2, 0.75


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[tuple[str, int], ...]:
    """Return the words of a text as stems, each with its position."""
    return tuple((token.text, token.position) for token in tokenize(text))


def stems(text: str) -> list[str]:
    """Return the words of a text as stems, in order, repeated ones too."""
    return [word for word, _ in words(text)]


def search(text: str, query: str) -> bool:
    """Return whether a text has any word of the query."""
    return not set(stems(text)).isdisjoint(stems(query))


def match_text(text: str, query: str) -> bool:
    """Return whether a text has the words of the query at the same distances."""
    phrase = words(query)
    if not phrase:
        return False
    first, start = phrase[0]
    found = set(words(text))
    return any(
        all((other, at - start + place) in found for other, place in phrase)
        for word, at in found
        if word == first
    )


def fuzzy(text: str, query: str, max_edits: int = 2) -> bool:
    """Return whether a word of the text is close to a word of the query."""
    return any(edits(a, b) <= max_edits for a in set(stems(query)) for b in set(stems(text)))


@lru_cache(maxsize=65536)
def edits(one: str, other: str) -> int:
    """Count the letters to insert, remove or replace; two swapped letters are two edits."""
    before = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]


def bm25(texts: Mapping[str, str | None], query: str) -> dict[str, float]:
    """Return the relevance of every text that has a word of the query.

    `texts` are those of all nodes of the type: the statistics are of the whole type, whatever
    else the query asks. Texts without words count nowhere. A word that stands twice in the query
    counts twice.
    """
    documents = {id_: stems(text) for id_, text in texts.items() if text is not None}
    documents = {id_: found for id_, found in documents.items() if found}
    if not documents:
        return {}
    average = sum(map(len, documents.values())) / len(documents)
    parts: dict[str, list[float]] = {}
    for word in stems(query):
        having = {id_: found.count(word) for id_, found in documents.items() if word in found}
        rarity = log(1 + (len(documents) - len(having) + 0.5) / (len(having) + 0.5))
        for id_, times in having.items():
            length = K1 * (1 - B + B * len(documents[id_]) / average)
            parts.setdefault(id_, []).append(rarity * times * (K1 + 1) / (times + length))
    return {id_: float(np.float32(fsum(scores))) for id_, scores in parts.items()}
