"""This module makes vectors out of thin air: always the same for a text, near to nothing else.

They let tests and examples run without any model. The numbers are fixed for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.embed.provider import Matrix, Role, check_texts, unit_vectors

_BASIS, _PRIME, _WORD = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class MockProvider:
    """Draws a vector by xorshift64, seeded with the FNV-1a hash of the text."""

    model: str = ""

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text."""
        check_texts(texts)
        rows = [_drawn(text, dimension) for text in texts]
        return unit_vectors(np.reshape(rows, (-1, dimension)), texts, dimension, self.model)


def _drawn(text: str, dimension: int) -> list[float]:
    state = _hash(text)
    drawn = []
    for _ in range(dimension):
        state ^= (state << 13) & _WORD
        state ^= state >> 7
        state ^= (state << 17) & _WORD
        drawn.append(float(np.float32(state / _WORD) * np.float32(2) - np.float32(1)))
    return drawn


def _hash(text: str) -> int:
    found = _BASIS
    for byte in text.encode():
        found = ((found ^ byte) * _PRIME) & _WORD
    return found
