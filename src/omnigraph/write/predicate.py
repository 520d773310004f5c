"""This module applies the tests of a mutation to rows, committed and pending alike.

The mask decides. The filter only keeps Lance from reading rows that cannot pass, so a test that has
no exact filter simply has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query_tree import Operator
from omnigraph.storage.literals import sql_literals
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.column import to_column

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


@dataclass(frozen=True, slots=True)
class Test:
    """`property operator value`, where the value is known; compared with null, nothing passes."""

    column: str
    type: PropertyType
    operator: Operator
    value: Any

    def mask(self, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
        """Return which rows pass."""
        if self.value is None or isinstance(self.value, list):
            return pa.array([False] * rows.num_rows, pa.bool_())
        column, value = _comparable(rows[self.column], self.type, self.value)
        return pc.fill_null(_COMPARE[self.operator](column, value), False)

    def filter(self, column: str) -> str | None:
        """Return a filter that lets through at least the rows that pass, or None."""
        if self.value is None or isinstance(self.value, list):
            return "false"
        if self.type.spec.integer and not isinstance(self.value, int):
            return None
        try:
            [literal] = sql_literals(to_column([self.value], self.type))
        except (pa.ArrowInvalid, OverflowError, ValueError):
            return None
        return f"`{column}` {self.operator} {literal}"


def _comparable(
    column: pa.ChunkedArray,
    type_: PropertyType,
    value: Any,  # noqa: ANN401 - whatever the type holds
) -> tuple[pa.ChunkedArray, pa.Scalar]:
    """Return a column and a value in types that compare exactly."""
    if type_.scalar is Scalar.DATE_TIME:
        numbers = pa.chunked_array([c.view(pa.int64()) for c in column.chunks], pa.int64())
        return numbers, to_column([value], type_).view(pa.int64())[0]
    if type_.numeric:
        wide = pa.float64() if isinstance(value, float) else _integer(value, column.type)
        return pc.cast(column, wide, safe=False), pa.scalar(value, wide)
    return column, to_column([value], type_)[0]


def _integer(value: int, type_: pa.DataType) -> pa.DataType:
    """Return an integer type that holds both a value and a column, or the widest float."""
    if not pa.types.is_integer(type_):
        return pa.float64()
    if pa.types.is_uint64(type_):
        return pa.uint64() if 0 <= value < 2**64 else pa.float64()
    return pa.int64() if -(2**63) <= value < 2**63 else pa.float64()


def passing(rows: pa.Table, tests: Sequence[Test]) -> pa.Table:
    """Return the rows that pass every test."""
    for test in tests:
        rows = rows.filter(test.mask(rows))
    return rows


def filter_text(tests: Sequence[Test], names: Mapping[str, str]) -> str | None:
    """Return one filter for all tests that have one; `names` are the physical columns."""
    parts = [text for test in tests if (text := test.filter(names[test.column])) is not None]
    return " AND ".join(parts) if parts else None
