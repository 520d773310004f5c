"""What expressions and conditions mean for one row."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any, assert_never

from omnigraph.lang import query_tree as qt
from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.types import Scalar, parse_date, parse_datetime
from tests.support.reference import computed, text
from tests.support.reference.model import Row, World
from tests.support.reference.paths import PATHS, path

PREDICATES: Mapping[str, Callable[..., bool]] = {
    "search": text.search,
    "fuzzy": text.fuzzy,
    "match_text": text.match_text,
}


def value(expr: qt.Expr, row: Row, world: World) -> Any:
    """Return the value of an expression that speaks of one row alone."""
    match expr:
        case qt.Literal():
            return constant(expr)
        case qt.ListLiteral(items=items):
            return [constant(item) for item in items if isinstance(item, qt.Literal)]
        case qt.Variable(name=name):
            return world.parameters[name] if name in world.parameters else row[name].id
        case qt.PropertyAccess(variable=variable, property=name):
            entity = row[variable.name]
            return entity.id if name.text == "id" else entity.properties.get(name.text)
        case qt.CallExpression(function=function, arguments=arguments):
            if function.text == "now":
                return world.now
            if function.text in PATHS:
                return path(expr, row, world)
            if function.text == "coalesce":
                return _first_present(arguments, row, world)
            given = [value(argument, row, world) for argument in arguments]
            if function.text in computed.FUNCTIONS:
                return computed.call(function.text, given)
            # Text or query is null: nothing is found.
            return None not in given and PREDICATES[function.text](*given)
        case qt.ArithmeticExpression(left=left, operator=sign, right=right):
            sides = value(left, row, world), value(right, row, world)
            is_decimal = Scalar.F64 in computed.scalars(expr, row, world)
            return computed.calculate(sign, *sides, decimal=is_decimal)
        case qt.CaseExpression():
            return _case(expr, row, world)
        case qt.AliasRef():
            raise AssertionError("an alias stands in `order` only")
        case qt.EdgePathExpression():
            raise AssertionError("a way along edges has no value")
        case _ as unreachable:
            assert_never(unreachable)


def _first_present(values: Sequence[qt.Expr], row: Row, world: World) -> Any:
    scalar = computed.common(values, row, world)
    for expr in values:
        found = value(expr, row, world)
        if found is not None:
            return computed.converted(found, scalar)
    return None


def _case(case: qt.CaseExpression, row: Row, world: World) -> Any:
    [scalar] = computed.scalars(case, row, world)
    for branch in case.branches:
        if holds(branch.condition, row, world):
            return computed.converted(value(branch.value, row, world), scalar)
    if case.otherwise is None:
        return None
    return computed.converted(value(case.otherwise, row, world), scalar)


def shown(expr: qt.Expr, row: Row, world: World) -> Any:
    """Return the value of an expression as a column: a list of numbers has one type."""
    found = value(expr, row, world)
    if isinstance(expr, qt.ListLiteral) and any(isinstance(item, float) for item in found):
        return [float(item) for item in found]
    return found


def constant(literal: qt.Literal) -> Any:
    """Return the value a literal means."""
    if literal.scalar is Scalar.DATE:
        return parse_date(str(literal.value))
    if literal.scalar is Scalar.DATE_TIME:
        return parse_datetime(str(literal.value))
    return literal.value


# --- conditions --------------------------------------------------------------------------------


def holds(condition: qt.Condition, row: Row, world: World) -> bool:
    """Return whether a condition is true; unknown is as good as false, as nothing negates it."""
    match condition:
        case qt.ComparisonCondition(left=left, operator=sign, right=right):
            return compare(sign, *operands(left, right, row, world))
        case qt.NullCondition(operand=operand, negated=negated):
            return (value(operand, row, world) is None) != negated
        case qt.MembershipCondition(operand=operand, choices=choices):
            wanted, offered = operands(operand, choices, row, world)
            return compare(ComparisonOperator.CONTAINS, offered, wanted)
        case qt.CallCondition(call=call):
            return bool(value(call, row, world))
        case qt.AndCondition(conditions=parts):
            return all(holds(part, row, world) for part in parts)
        case qt.OrCondition(conditions=parts):
            return any(holds(part, row, world) for part in parts)
        case _ as unreachable:
            assert_never(unreachable)


def operands(left: qt.Expr, right: qt.Expr, row: Row, world: World) -> tuple[Any, Any]:
    """Return both sides; a decimal literal beside an F32 property is rounded to F32."""
    one, other = value(left, row, world), value(right, row, world)
    if _is_f32(right, row):
        one = _rounded(left, one)
    if _is_f32(left, row):
        other = _rounded(right, other)
    return one, other


def _is_f32(expr: qt.Expr, row: Row) -> bool:
    if not isinstance(expr, qt.PropertyAccess):
        return False
    found = row[expr.variable.name].type.lookup(expr.property.text)
    return found is not None and found.type.scalar is Scalar.F32


def _rounded(written: qt.Expr, number: Any) -> Any:
    if isinstance(written, qt.Literal) and isinstance(number, float):
        return round_to_f32(number)
    if isinstance(written, qt.ListLiteral):
        return [round_to_f32(item) if isinstance(item, float) else item for item in number]
    return number


def round_to_f32(number: float) -> float:
    """Return the nearest 32-bit float, or the number itself when it is too large for one."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return number
    return rounded


# Python compares int with float by exact value, and text by code point, which is the order of
# its UTF-8 bytes.
_SIGNS: Mapping[ComparisonOperator, Callable[[Any, Any], bool]] = {
    ComparisonOperator.EQ: operator.eq,
    ComparisonOperator.NE: operator.ne,
    ComparisonOperator.LT: operator.lt,
    ComparisonOperator.LE: operator.le,
    ComparisonOperator.GT: operator.gt,
    ComparisonOperator.GE: operator.ge,
    ComparisonOperator.STARTS_WITH: str.startswith,
}


def compare(sign: ComparisonOperator, left: Any, right: Any) -> bool:
    """Return whether a comparison is true; with a null on either side it is not."""
    if left is None or right is None:
        return False
    if sign is ComparisonOperator.CONTAINS:
        if isinstance(left, str):
            return right in left
        return any(item is not None and item == right for item in left)
    return _SIGNS[sign](left, right)


# --- JSON --------------------------------------------------------------------------------------


def to_json(found: Any) -> Any:
    """Return a value as results show it."""
    if isinstance(found, datetime):
        return found.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + (
            f"{found.microsecond // 1000:03d}Z"
        )
    if isinstance(found, date):
        return found.isoformat()
    if isinstance(found, list | tuple):
        return [to_json(item) for item in found]
    if isinstance(found, float) and not isfinite(found):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(float(found))]
    return found
