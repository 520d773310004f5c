"""Compare columns and constants exactly, whatever their types.

Nothing compares with null. Numbers of different widths compare by value, never by a cast that would
lose digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query_tree import ComparisonOperator

Operand: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar
Mask: TypeAlias = npt.NDArray[np.bool_]

_COMPARE: Mapping[ComparisonOperator, tuple[Callable[..., Any], Callable[..., Any]]] = (
    MappingProxyType(
        {
            ComparisonOperator.EQ: (pc.equal, np.equal),
            ComparisonOperator.NE: (pc.not_equal, np.not_equal),
            ComparisonOperator.LT: (pc.less, np.less),
            ComparisonOperator.LE: (pc.less_equal, np.less_equal),
            ComparisonOperator.GT: (pc.greater, np.greater),
            ComparisonOperator.GE: (pc.greater_equal, np.greater_equal),
        }
    )
)
"""The functions of Arrow and of NumPy."""
_MAX_EXACT_FLOAT = 2**53


def compare(left: Operand, operator: ComparisonOperator, right: Operand, rows: int) -> Mask:
    """Return where a comparison holds; a scalar stands for a column of itself."""
    one, other = _cast_to_common_type(left, right)
    if one.type != other.type and _is_number(one.type):
        return _compare_with_floats(one, operator, other, rows)
    return to_mask(_COMPARE[operator][0](one, other), rows)


def to_mask(column: Operand, rows: int) -> Mask:
    """Return a Boolean column as a mask; null does not match."""
    if isinstance(column, pa.Scalar):
        return np.full(rows, bool(column.as_py()))
    filled = pc.fill_null(column, False)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.bool_)


def repeat_scalar(value: pa.Scalar, rows: int) -> pa.Array:
    """Return a column of one value; Arrow itself cannot repeat a list zero times."""
    return pa.repeat(value, max(rows, 1)).slice(0, rows)


def _cast_to_common_type(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Return both in one type in which they compare by value, if there is one."""
    one, other = left.type, right.type
    if pa.types.is_date64(one) or pa.types.is_date64(other):
        return timestamps_to_integers(left), timestamps_to_integers(right)
    if one == other or not (_is_number(one) and _is_number(other)):
        return left, right
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        wide = pa.decimal128(20) if pa.uint64() in (one, other) else pa.int64()
        return pc.cast(left, wide), pc.cast(right, wide)
    return _as_float(left), _as_float(right)


def _as_float(operand: Operand) -> Operand:
    """Return numbers as 64-bit floats, unless these would lose digits."""
    return pc.cast(operand, pa.float64(), safe=False) if _is_exact(operand) else operand


def timestamps_to_integers(operand: Operand) -> Operand:
    """Return instants as milliseconds, everything else as it is."""
    if not pa.types.is_date64(operand.type):
        return operand
    if isinstance(operand, pa.Scalar):
        return pa.repeat(operand, 1).view(pa.int64())[0]
    if isinstance(operand, pa.ChunkedArray):
        return pa.chunked_array([chunk.view(pa.int64()) for chunk in operand.chunks], pa.int64())
    return operand.view(pa.int64())


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _is_exact(operand: Operand) -> bool:
    """Return whether a 64-bit float holds every value."""
    if pa.types.is_floating(operand.type):
        return True
    if isinstance(operand, pa.Scalar):
        value = operand.as_py()
        return value is None or abs(value) <= _MAX_EXACT_FLOAT
    limits = pc.min_max(operand).as_py()
    return limits["min"] is None or max(abs(limits["min"]), abs(limits["max"])) <= _MAX_EXACT_FLOAT


def _compare_with_floats(
    left: Operand, operator: ComparisonOperator, right: Operand, rows: int
) -> Mask:
    """Compare integers that 64-bit floats cannot hold with floats, on whichever side they are."""
    integers, floats, sign = _broadcast(left, rows), _broadcast(right, rows), 1
    if pa.types.is_floating(left.type):
        integers, floats, sign = floats, integers, -1
    valid = np.asarray(integers.is_valid()) & np.asarray(floats.is_valid())
    order = np.zeros(rows, np.int8)
    order[valid] = _compare_integers_with_floats(
        integers.filter(pa.array(valid)).to_numpy(zero_copy_only=False),
        floats.filter(pa.array(valid)).to_numpy(zero_copy_only=False),
    )
    held: Mask = valid & _COMPARE[operator][1](sign * order, 0)
    return held


def _broadcast(operand: Operand, rows: int) -> pa.Array:
    if isinstance(operand, pa.Scalar):
        return repeat_scalar(operand, rows)
    return operand.combine_chunks() if isinstance(operand, pa.ChunkedArray) else operand


def _compare_integers_with_floats(
    integers: npt.NDArray[Any], floats: npt.NDArray[np.float64]
) -> npt.NDArray[np.int8]:
    """Return -1, 0 or 1 where an integer is less than, equal to or greater than a float.

    Rounding keeps the order, so it decides except where both become equal; there the float is whole
    and its value is an integer.
    """
    rounded = integers.astype(np.float64)
    order = (rounded > floats).astype(np.int8) - (rounded < floats).astype(np.int8)
    for place in np.flatnonzero((order == 0) & (np.abs(floats) >= _MAX_EXACT_FLOAT)):
        integer, whole = int(integers[place]), int(floats[place])
        order[place] = (integer > whole) - (integer < whole)
    return order
