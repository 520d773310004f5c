"""How many examples generated tests draw: a fixed slice in the suite, more in `make soak`."""

from __future__ import annotations

import os

EFFORT = int(os.environ.get("EFFORT") or 1)
"""Times the slice of the suite."""


def examples(count: int) -> int:
    """Return how many examples to draw where the suite draws `count`."""
    return count * EFFORT
