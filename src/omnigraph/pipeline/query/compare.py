"""Compare values as the query language does: numbers by value, whatever their widths.

Spark would cast both sides to a float if one is a float; that loses digits of large integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.pipeline.query.values import literal
from omnigraph.types import PropertyType, Scalar

_SIGNS: Mapping[ComparisonOperator, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ComparisonOperator.EQ: operator.eq,
        ComparisonOperator.NE: operator.ne,
        ComparisonOperator.LT: operator.lt,
        ComparisonOperator.LE: operator.le,
        ComparisonOperator.GT: operator.gt,
        ComparisonOperator.GE: operator.ge,
    }
)
_MIRRORED: Mapping[ComparisonOperator, ComparisonOperator] = MappingProxyType(
    {
        ComparisonOperator.EQ: ComparisonOperator.EQ,
        ComparisonOperator.NE: ComparisonOperator.NE,
        ComparisonOperator.LT: ComparisonOperator.GT,
        ComparisonOperator.LE: ComparisonOperator.GE,
        ComparisonOperator.GT: ComparisonOperator.LT,
        ComparisonOperator.GE: ComparisonOperator.LE,
    }
)
_EXACT = 2**53
_WIDE = "decimal(20,0)"


@dataclass(frozen=True, slots=True)
class SparkOperand:
    """One side of a comparison; of a constant, the value is known."""

    column: Column
    type: PropertyType
    value: Any = None

    @classmethod
    def of(cls, value: Any, type_: PropertyType) -> SparkOperand:  # noqa: ANN401 - of the type
        """Return a constant."""
        return cls(literal(value, type_), type_, value)

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point number."""
        return self.type.scalar in (Scalar.F32, Scalar.F64)

    @property
    def is_exact(self) -> bool:
        """Return whether a 64-bit float represents every value exactly."""
        if self.value is not None:
            return bool(abs(self.value) < _EXACT)
        return self.type.scalar in (Scalar.I32, Scalar.U32)


def compare(left: SparkOperand, sign: ComparisonOperator, right: SparkOperand) -> Column:
    """Return where a comparison holds; nothing compares with null."""
    if not (left.type.numeric and right.type.numeric):
        return _sign(left.column, sign, right.column)
    if left.is_float and not right.is_float:
        return compare(right, _MIRRORED[sign], left)
    if left.is_float:
        return _sign(left.column.cast("double"), sign, right.column.cast("double"))
    if not right.is_float:
        wide = _WIDE if Scalar.U64 in (left.type.scalar, right.type.scalar) else "bigint"
        return _sign(left.column.cast(wide), sign, right.column.cast(wide))
    if left.is_exact or right.is_exact:
        return _sign(left.column.cast("double"), sign, right.column.cast("double"))
    return _compare_with_float(left.column, sign, right.column.cast("double"))


def _sign(left: Column, sign: ComparisonOperator, right: Column) -> Column:
    held: Column = _SIGNS[sign](left, right)
    return held


def _compare_with_float(integer: Column, sign: ComparisonOperator, number: Column) -> Column:
    """Compare any integer with any float.

    Rounding keeps the order, so it decides except where both become equal; there the float is whole
    and can be converted to an integer. One beyond every integer is greater.
    """
    rounded, exact, whole = integer.cast("double"), integer.cast(_WIDE), _whole(number)
    tied = rounded == number
    if sign is ComparisonOperator.EQ:
        return tied & F.coalesce(exact == whole, F.lit(False))
    if sign is ComparisonOperator.NE:
        return (rounded != number) | (tied & F.coalesce(exact != whole, F.lit(True)))
    strict = {
        ComparisonOperator.LE: ComparisonOperator.LT,
        ComparisonOperator.GE: ComparisonOperator.GT,
    }.get(sign, sign)
    beyond = F.lit(strict is ComparisonOperator.LT)
    return _sign(rounded, strict, number) | (tied & F.coalesce(_sign(exact, sign, whole), beyond))


def _whole(number: Column) -> Column:
    """Return a whole float as an integer; null when no integer of ours is that large."""
    low, high = F.lit(float(2**63)), F.lit(float(2**64))
    upper = (number - low).try_cast("bigint").cast(_WIDE) + literal(2**63, _U64)
    lower = number.try_cast("bigint").cast(_WIDE)
    return F.when(number < low, lower).when(number < high, upper)


_U64 = PropertyType(Scalar.U64)
