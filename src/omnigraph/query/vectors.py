"""This module measures distances between vectors, and finds few vectors that may be the nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import Metric
from omnigraph.storage.columns import Positions

Floats = npt.NDArray[np.float64]
ORDINARY = (1e-18, 1e18)
"""Lengths of vectors whose products neither overflow nor vanish in 32 bits."""
_UNIT = 2.0**-24
_BLOCK = 65_536


def matrix(column: pa.Array, size: int) -> Floats:
    """Return vectors as rows of a matrix; a null is a row without numbers."""
    found = np.full((len(column), size), np.nan)
    items = column.drop_null().flatten().to_numpy(zero_copy_only=False)
    found[np.asarray(column.is_valid())] = items.reshape(-1, size)
    return found


def _products(one: Floats, other: Floats) -> Floats:
    """Return the product of each row of one with that of the other."""
    found: Floats = np.einsum("ij,ij->i", one, other)
    return found


def distances(metric: Metric, vectors: Floats, queries: Floats) -> Floats:
    """Return how far each vector is from its query, or from the only one; no number for none.

    The rows of either may be no numbers. A vector without length has no direction.
    """
    wanted = np.broadcast_to(queries, vectors.shape)
    match metric:
        case Metric.L2:
            apart = vectors - wanted
            return _products(apart, apart)
        case Metric.DOT:
            return 1 - _products(vectors, wanted)
        case Metric.COSINE:
            products = _products(vectors, wanted)
            lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(queries, axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(lengths > 0, 1 - products / lengths, np.nan)
        case _ as unreachable:
            assert_never(unreachable)


def items_of(column: pa.Array, size: int) -> npt.NDArray[np.float32]:
    """Return the vectors of a column as rows of a matrix, not copied; what a null has is noise."""
    values: npt.NDArray[np.float32] = column.values.to_numpy(zero_copy_only=False)
    return values.reshape(-1, size)[column.offset : column.offset + len(column)]


def lengths_of(column: pa.Array, size: int) -> Floats:
    """Return the length of each vector; a null has none."""
    items = items_of(column, size)
    found = np.empty(len(items))
    for start in range(0, len(items), _BLOCK):
        block = items[start : start + _BLOCK].astype(np.float64)
        found[start : start + _BLOCK] = np.sqrt(_products(block, block))
    if column.null_count:
        found[np.asarray(column.is_null())] = np.nan
    return found


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of one property by position, with their lengths; a null has no length."""

    items: npt.NDArray[np.float32]
    lengths: Floats

    def bounds(
        self, metric: Metric, query: Floats, positions: Positions | None
    ) -> tuple[Floats, Floats]:
        """Return a distance no vector is nearer than, and one none is farther than.

        The products are those of 32-bit numbers, in whatever order they are added. Rounding the
        query and `d` products and sums moves the product of `v` and `q` by at most (d + 2) u |v||q|
        and terms of higher order, where u = 2^-24; six more u cover those, and what 64-bit
        arithmetic adds, for any dimension there is. The query is scaled to length one, so that
        nothing overflows or vanishes for vectors of ordinary length; of others nothing is said.
        """
        items, lengths = self.items, self.lengths
        if positions is not None:
            items, lengths = items[positions], lengths[positions]
        scale = float(np.linalg.norm(query))
        unit = (query / scale if scale > 0 else query).astype(np.float32)
        with np.errstate(all="ignore"):
            products = (items @ unit).astype(np.float64) * scale
            error = (len(query) + 8) * _UNIT * scale * lengths
            match metric:
                case Metric.COSINE:
                    guess = 1 - products / (lengths * scale)
                    error /= lengths * scale
                case Metric.L2:
                    squares = lengths * lengths + scale * scale
                    guess = squares - 2 * products
                    error = 2 * error + squares * 1e-12
                case Metric.DOT:
                    guess = 1 - products
                    error += np.abs(guess) * 1e-12
                case _ as unreachable:
                    assert_never(unreachable)
            low, high = guess - error, guess + error
        odd = ((lengths < ORDINARY[0]) & (lengths > 0)) | (lengths > ORDINARY[1])
        if odd.any():
            low[odd], high[odd] = -np.inf, np.inf
        return low, high


def possibly_first(low: Floats, high: Floats, count: int) -> Positions:
    """Return the rows that may be among the first by a value known to lie between two others.

    Rows whose bounds are no numbers have no value.
    """
    there = np.flatnonzero(~np.isnan(high))
    if len(there) <= count:
        return there
    last = np.partition(high[there], count - 1)[count - 1] if count else -np.inf
    return there[low[there] <= last]
