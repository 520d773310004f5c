"""The rows that flow between operators: positions of entities by variable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from omnigraph.query.exact_integers import (
    MAX_I64,
    Weights,
    exact_product,
    exact_sum,
    sum_by_group,
)
from omnigraph.storage.columns import Positions

OUTER_ROW = "#row"
"""The column that remembers which outer row a row of a block belongs to."""


NO_ENTITY = -1
"""The position in a row that has no entity for an optional variable."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of bindings: for each variable the position of its entity.

    `weights` say how often each row counts, when rows that differ only in unused variables were
    not made.
    """

    rows: int
    positions: Mapping[str, Positions] = field(default_factory=dict)
    weights: Weights | None = None

    @property
    def total(self) -> int:
        """How many rows count."""
        return self.rows if self.weights is None else exact_sum(self.weights)

    def take(self, index: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Frame:
        """Return chosen rows, by number or by mask; a range of them is not copied."""
        columns = {name: values[index] for name, values in self.positions.items()}
        weights = None if self.weights is None else self.weights[index]
        if isinstance(index, slice):
            rows = len(range(*index.indices(self.rows)))
        else:
            rows = int(np.count_nonzero(index)) if index.dtype == np.bool_ else len(index)
        return Frame(rows, columns, weights)

    def with_columns(self, columns: Mapping[str, Positions]) -> Frame:
        """Return the same rows with more variables."""
        return Frame(self.rows, {**self.positions, **columns}, self.weights)

    def only(self, names: Collection[str]) -> Frame:
        """Return the same rows without variables that are not needed."""
        kept = {n: v for n, v in self.positions.items() if n in names or n == OUTER_ROW}
        return Frame(self.rows, kept, self.weights)

    def weighed(self, counts: npt.NDArray[np.int64]) -> Frame:
        """Return the rows that count, each with its weight multiplied."""
        weights = counts if self.weights is None else exact_product(self.weights, counts)
        there = weights > 0
        if there.all():
            return Frame(self.rows, self.positions, weights)
        return Frame(self.rows, self.positions, weights).take(there)

    def repeated(self, times: int) -> Frame:
        """Return each row as if it were there a number of times."""
        kind = np.int64 if times <= MAX_I64 else object
        return self.weighed(np.full(self.rows, times, kind))

    def sums_by(self, positions: Positions, count: int) -> Weights:
        """Return how often rows count by position."""
        if self.weights is None:
            return np.bincount(positions, minlength=count)
        return sum_by_group(positions, self.weights, count)

    def merged(self) -> Frame:
        """Return equal rows once, each with the sum of their weights."""
        keys, bound = np.zeros(self.rows, np.int64), 1
        for values in self.positions.values():
            width = int(values.max(initial=NO_ENTITY)) - NO_ENTITY + 1
            bound *= width
            if bound > MAX_I64:
                return self
            keys = keys * width + (values - NO_ENTITY)
        _, first, groups = np.unique(keys, return_index=True, return_inverse=True)
        if len(first) == self.rows:
            return self
        return replace(self.take(first), weights=self.sums_by(groups, len(first)))

    @classmethod
    def joined(cls, frames: Sequence[Frame]) -> Frame:
        """Return the rows of some frames of the same variables, one after the other."""
        if len(frames) == 1:
            return frames[0]
        names, weights = frames[0].positions, None
        columns = {n: np.concatenate([f.positions[n] for f in frames]) for n in names}
        if any(frame.weights is not None for frame in frames):
            weights = np.concatenate(
                [np.ones(f.rows, np.int64) if f.weights is None else f.weights for f in frames]
            )
        return cls(sum(frame.rows for frame in frames), columns, weights)
