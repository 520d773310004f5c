"""This module cuts text into words, exactly as Lance's text indexes do."""

from __future__ import annotations

from lance import tokenize


def words(text: str) -> tuple[tuple[str, int], ...]:
    """Return the words of a text as stems, each with its position."""
    return tuple((token.text, token.position) for token in tokenize(text))
