"""Made-up vectors in plain numbers, as the specification words them: the judge of `mock`."""

from __future__ import annotations

from math import hypot

import numpy as np

MOCK = {"kind": "mock"}
"""The profile of graphs whose vectors are made up."""


def mock_vector(text: str, dimension: int) -> list[float]:
    """Return the unit vector of a text."""
    seed = 14695981039346656037
    for byte in text.encode():
        seed = (seed ^ byte) * 1099511628211 % 2**64
    values = []
    for _ in range(dimension):
        seed = (seed ^ (seed << 13)) % 2**64
        seed ^= seed >> 7
        seed = (seed ^ (seed << 17)) % 2**64
        values.append(float(np.float32(seed / (2**64 - 1)) * np.float32(2) - np.float32(1)))
    return [float(np.float32(value / hypot(*values))) for value in values]
