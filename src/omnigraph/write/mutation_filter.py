"""Apply the predicates of a mutation to rows, committed and pending alike.

The mask decides. The filter only keeps Lance from reading rows that cannot pass. Both compare with
a value the column can hold: a test against any other is first turned into one that means the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.storage.row_lookup import sql_literals
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_column

_COMPARE: Mapping[ComparisonOperator, Callable[..., Any]] = MappingProxyType(
    {
        ComparisonOperator.EQ: pc.equal,
        ComparisonOperator.NE: pc.not_equal,
        ComparisonOperator.LT: pc.less,
        ComparisonOperator.LE: pc.less_equal,
        ComparisonOperator.GT: pc.greater,
        ComparisonOperator.GE: pc.greater_equal,
    }
)
_MAX_F32: float = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


@dataclass(frozen=True, slots=True)
class PropertyTest:
    """`property operator value`, where the value is known; compared with null, nothing passes."""

    column: str
    type: PropertyType
    operator: ComparisonOperator
    value: Any

    def mask(self, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
        """Return which rows pass."""
        column = rows[self.column]
        match self._exact():
            case None:
                return pa.array([False] * rows.num_rows, pa.bool_())
            case ComparisonOperator.NE, None:
                return column.is_valid()
            case operator, value:
                [scalar] = to_column([value], self.type)
                return pc.fill_null(_COMPARE[operator](column, scalar), False)

    def filter(self) -> str:
        """Return a filter that lets through the rows that pass."""
        match self._exact():
            case None:
                return "false"
            case ComparisonOperator.NE, None:
                return f"`{self.column}` IS NOT NULL"
            case operator, value:
                [literal] = sql_literals(to_column([value], self.type))
                return f"`{self.column}` {operator} {literal}"

    def equals(self) -> Any:  # noqa: ANN401 - whatever the type holds
        """Return the one value that passes, or None when there may be others or none."""
        exact = self._exact()
        return exact[1] if exact is not None and exact[0] is ComparisonOperator.EQ else None

    def _exact(self) -> tuple[ComparisonOperator, Any] | None:
        """Return an equal test whose value the column can hold, or None when nothing passes.

        `!= None` is a test that everything but null passes.
        """
        operator, value = self.operator, self.value
        if value is None or isinstance(value, list):
            return None
        near = _nearest_representable(value, self.type) if self.type.numeric else value
        if near == value:
            return operator, near
        match operator:
            case ComparisonOperator.EQ:
                return None
            case ComparisonOperator.NE:
                return operator, None
            case ComparisonOperator.LT | ComparisonOperator.LE:
                return ComparisonOperator.LT if near > value else ComparisonOperator.LE, near
            case _:
                return ComparisonOperator.GE if near > value else ComparisonOperator.GT, near


def _nearest_representable(value: float, type_: PropertyType) -> float:
    """Return a value of a type with none of the type between it and a finite number."""
    if type_.spec.bounds is not None:
        low, high = type_.spec.bounds
        return min(max(floor(value), low), high)
    number = float(value)
    if type_.scalar is not Scalar.F32:
        return number
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return _MAX_F32 if number > 0 else -_MAX_F32
    return rounded


def filter_rows(rows: pa.Table, tests: Sequence[PropertyTest]) -> pa.Table:
    """Return the rows that pass every test."""
    for test in tests:
        rows = rows.filter(test.mask(rows))
    return rows


def to_filter_sql(tests: Sequence[PropertyTest]) -> str:
    """Return one filter for all tests."""
    return " AND ".join(test.filter() for test in tests)
