"""Distinct numbers in order, by sorting: the hash table of `numpy.unique` takes far longer."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]
_Number = TypeVar("_Number", bound=np.generic)


def distinct_values(numbers: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return each number once, ascending."""
    if len(numbers) < 2:
        return numbers
    numbers = np.sort(numbers)
    is_new = np.empty(len(numbers), np.bool_)
    is_new[0] = True
    np.not_equal(numbers[1:], numbers[:-1], out=is_new[1:])
    return numbers[is_new]


def distinct_pairs(rows: Positions, nodes: Positions, width: int) -> tuple[Positions, Positions]:
    """Return each pair once, in order; nodes are less than `width`."""
    keys = distinct_values(rows * width + nodes)
    rows = keys // max(width, 1)
    return rows, keys - rows * width
