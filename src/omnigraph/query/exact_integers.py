"""Exact integer arithmetic: 64-bit arrays where results fit, arrays of Python integers beyond.

Whether a result fits is decided from the largest values before anything is multiplied or added.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.storage.columns import Positions

MAX_EXACT_FLOAT = 2**53
"""Below this a 64-bit float holds every integer."""
MAX_I64 = 2**63 - 1
_LOW_BITS = 32
"""Bits of the lower half of a 64-bit integer."""

Weights: TypeAlias = npt.NDArray[Any]
"""Integers: an array of 64-bit ones, or of Python integers where those would overflow."""


def exact_product(one: Weights, other: Weights) -> Weights:
    """Return the products of two arrays, number by number."""
    if max_magnitude(one) * max_magnitude(other) > MAX_I64:
        one, other = one.astype(object), other.astype(object)
    products: Weights = one * other
    return products


def exact_addition(one: Weights, other: Weights) -> Weights:
    """Return the sums of two arrays, number by number."""
    if max_magnitude(one) + max_magnitude(other) > MAX_I64:
        one, other = one.astype(object), other.astype(object)
    sums: Weights = one + other
    return sums


def exact_sum(values: Weights) -> int:
    """Return the sum of all values."""
    if values.dtype == object:
        return int(values.sum())
    high, low = _split_halves(values)
    return (int(high.sum()) << _LOW_BITS) + int(low.sum())


def sum_by_group(groups: Positions, values: Weights, count: int) -> Weights:
    """Return the sum of the values of each group; groups are numbered from 0 to `count` - 1."""
    bound = len(values) * max_magnitude(values)
    if bound < MAX_EXACT_FLOAT:
        return np.bincount(groups, values.astype(np.float64), count).astype(np.int64)
    if values.dtype == object:
        return _add_by_group(groups, values, np.zeros(count, object))
    if bound <= MAX_I64:
        return _add_by_group(groups, values.astype(np.int64), np.zeros(count, np.int64))
    high, low = (
        _add_by_group(groups, half, np.zeros(count, np.int64)) for half in _split_halves(values)
    )
    sums: Weights = (high.astype(object) << _LOW_BITS) + low.astype(object)
    return sums


def sum_neighbour_weights(weights: Weights, starts: Positions, nodes: npt.NDArray[Any]) -> Weights:
    """Return for each node the sum of the weights of its neighbours.

    The neighbours of node `i` stand in `nodes` from `starts[i]` up to `starts[i + 1]`.
    """
    degree = int(np.diff(starts).max(initial=0))
    # Running totals may wrap around: their differences are right as long as these fit.
    kind = np.int64 if max_magnitude(weights) * degree <= MAX_I64 else object
    running = np.zeros(len(nodes) + 1, kind)
    np.cumsum(weights[nodes].astype(kind, copy=False), out=running[1:])
    sums: Weights = np.diff(running[starts])
    return sums


def max_magnitude(values: Weights) -> int:
    """Return the largest magnitude; 0 of no values."""
    if not len(values):
        return 0
    return max(abs(int(values.min())), abs(int(values.max())))


def as_floats(values: Weights) -> npt.NDArray[np.float64]:
    """Return integers as the nearest 64-bit floats."""
    if values.dtype == object:
        return np.array([float(value) for value in values], np.float64)
    return values.astype(np.float64)


def _split_halves(values: Weights) -> tuple[Positions, Positions]:
    """Return the upper and the lower 32 bits; sums of either fit 64 bits."""
    wide = values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
    return (wide >> _LOW_BITS).astype(np.int64), (wide & (2**_LOW_BITS - 1)).astype(np.int64)


def _add_by_group(groups: Positions, values: Weights, totals: Weights) -> Weights:
    np.add.at(totals, groups, values)
    return totals
