"""This module compares values exactly, whatever their types: columns and constants.

Nothing compares with null. Numbers of different widths compare by value, never by a cast that would
lose digits. A constant that meets 32-bit floats is rounded like them first, so that what was
written is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query_tree import Operator

Operand: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar
Mask: TypeAlias = npt.NDArray[np.bool_]

_COMPARE: Mapping[Operator, Callable[..., Any]] = MappingProxyType(
    {
        Operator.EQ: pc.equal,
        Operator.NE: pc.not_equal,
        Operator.LT: pc.less,
        Operator.LE: pc.less_equal,
        Operator.GT: pc.greater,
        Operator.GE: pc.greater_equal,
    }
)
_EXACT = 2**53


def compare(left: Operand, operator: Operator, right: Operand, rows: int) -> Mask:
    """Return where a comparison holds; a scalar stands for a column of itself."""
    one, other = _alike(left, right)
    return to_mask(_COMPARE[operator](one, other), rows)


def to_mask(found: Operand, rows: int) -> Mask:
    """Return a Boolean column as a mask; null is no match."""
    if isinstance(found, pa.Scalar):
        return np.full(rows, bool(found.as_py()))
    filled = pc.fill_null(found, False)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.bool_)


def _alike(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Return both in one type in which they compare by value."""
    one, other = left.type, right.type
    if pa.types.is_date64(one) or pa.types.is_date64(other):
        return as_number(left), as_number(right)
    if one == other or not (_is_number(one) and _is_number(other)):
        return left, right
    if pa.types.is_float32(one) and isinstance(right, pa.Scalar):
        return left, _rounded(right)
    if pa.types.is_float32(other) and isinstance(left, pa.Scalar):
        return _rounded(left), right
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        wide = pa.decimal128(20) if pa.uint64() in (one, other) else pa.int64()
        return pc.cast(left, wide), pc.cast(right, wide)
    if _is_exact(left) and _is_exact(right):
        return pc.cast(left, pa.float64(), safe=False), pc.cast(right, pa.float64(), safe=False)
    return _as_decimal(left), _as_decimal(right)


def as_number(operand: Operand) -> Operand:
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


def _rounded(constant: pa.Scalar) -> pa.Scalar:
    """Return a constant as a 32-bit float; one that is too large stays larger than all of them."""
    value = constant.as_py()
    if value is None:
        return pa.scalar(None, pa.float32())
    with np.errstate(over="ignore"):
        return pa.scalar(float(np.float32(value)), pa.float32())


def _is_exact(operand: Operand) -> bool:
    """Tell whether a 64-bit float holds every value."""
    if pa.types.is_floating(operand.type):
        return True
    if isinstance(operand, pa.Scalar):
        value = operand.as_py()
        return value is None or abs(value) <= _EXACT
    limits = pc.min_max(operand).as_py()
    return limits["min"] is None or max(abs(limits["min"]), abs(limits["max"])) <= _EXACT


def _as_decimal(operand: Operand) -> Operand:
    """Return numbers as decimals wide enough for integers above 2^53 beside any usual fraction."""
    wide = pa.decimal256(76, 30)
    return pc.cast(operand, wide, safe=False)
