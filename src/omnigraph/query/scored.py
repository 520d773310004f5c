"""This module holds scores of few among many: most rows of a type have no score at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.storage.columns import Positions

Scores = npt.NDArray[np.float64]
FEW = 4096
"""So many positions are looked for one by one."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The entities of a type that have a score: their positions, ascending, and the scores."""

    positions: Positions
    scores: Scores

    def numbers(self, asked: Positions) -> Positions:
        """Return which of the scores each of some positions has; -1 for none."""
        if not len(self.positions) or not len(asked):
            return np.full(len(asked), -1)
        last = len(self.positions) - 1
        if len(asked) <= FEW:
            found = np.minimum(np.searchsorted(self.positions, asked), last)
            return np.where(self.positions[found] == asked, found, -1)
        number = np.full(max(int(self.positions[-1]), int(asked.max())) + 1, -1)
        number[self.positions] = np.arange(last + 1)
        return number[asked]

    def at(self, asked: Positions) -> Scores:
        """Return the score of each of some positions; no number where there is none."""
        return np.append(self.scores, np.nan)[self.numbers(asked)]
