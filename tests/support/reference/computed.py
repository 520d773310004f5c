"""Values that are computed from other values of a row, with plain Python numbers and texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from math import isinf
from typing import Any

from omnigraph.lang import query_tree as qt
from omnigraph.lang.query_tree import ArithmeticOperator
from omnigraph.types import Scalar
from tests.support.reference.model import OutOfRangeError, Row, World

_DECIMALS = (Scalar.F32, Scalar.F64)


def substring(text: str, start: int, *length: int) -> str:
    """Return the characters whose places, from 1, are from start on and before its end."""
    return "".join(
        character
        for place, character in enumerate(text, 1)
        if place >= start and (not length or place < start + length[0])
    )


def _part(name: str) -> Callable[[date | datetime], int]:
    return lambda time: int(getattr(time, name))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "substring": substring,
    **{name: _part(name) for name in ("year", "month", "day", "hour", "minute", "second")},
}
"""Functions that are null beside a null."""


def call(name: str, given: Sequence[Any]) -> Any:
    """Return what a function gives."""
    return None if None in given else FUNCTIONS[name](*given)


def calculate(operator: ArithmeticOperator, left: Any, right: Any, *, decimal: bool) -> Any:
    """Return the result of an operator; null beside a null and for a division by zero."""
    if left is None or right is None:
        return None
    if operator in (ArithmeticOperator.DIVIDE, ArithmeticOperator.REMAINDER) and right == 0:
        return None
    if decimal:
        return _decimal(operator, float(left), float(right))
    match operator:
        case ArithmeticOperator.ADD:
            found = left + right
        case ArithmeticOperator.SUBTRACT:
            found = left - right
        case ArithmeticOperator.MULTIPLY:
            found = left * right
        case _:
            found = abs(left) % abs(right) * (-1 if left < 0 else 1)
    return in_range(found)


def in_range(number: Any) -> Any:
    """Refuse an integer that I64 does not hold."""
    if not -(2**63) <= number < 2**63:
        raise OutOfRangeError(f"{number} is not an I64")
    return number


def _decimal(operator: ArithmeticOperator, left: float, right: float) -> float:
    match operator:
        case ArithmeticOperator.ADD:
            found = left + right
        case ArithmeticOperator.SUBTRACT:
            found = left - right
        case ArithmeticOperator.MULTIPLY:
            found = left * right
        case _:
            found = left / right
    if isinf(found) and not isinf(left) and not isinf(right):
        raise OutOfRangeError(f"{left} {operator} {right} is not an F64")
    return found


# --- types -------------------------------------------------------------------------------------


def scalars(expr: qt.Expr, row: Row, world: World) -> set[Scalar]:
    """Return the types of the numbers an expression is made of, where they matter."""
    match expr:
        case qt.Literal(scalar=scalar):
            return {scalar}
        case qt.ListLiteral(items=items):
            return {s for item in items for s in scalars(item, row, world)}
        case qt.PropertyAccess(variable=variable, property=name):
            found = row[variable.name].type.lookup(name.text)
            assert found is not None
            return {found.type.scalar}
        case qt.Variable(name=name) if name in world.parameter_types:
            return {world.parameter_types[name].scalar}
        case qt.ArithmeticExpression(operator=ArithmeticOperator.DIVIDE):
            return {Scalar.F64}
        case qt.ArithmeticExpression(left=left, right=right):
            both = scalars(left, row, world) | scalars(right, row, world)
            return {Scalar.F64} if both & {*_DECIMALS} else {Scalar.I64}
        case qt.CaseExpression(branches=branches, otherwise=otherwise):
            values = [branch.value for branch in branches]
            values += [] if otherwise is None else [otherwise]
            return {common(values, row, world)}
        case qt.CallExpression(function=function, arguments=arguments):
            if function.text == "coalesce":
                return {common(arguments, row, world)}
            return {Scalar.I64}
        case _:
            return {Scalar.STRING}


def common(values: Sequence[qt.Expr], row: Row, world: World) -> Scalar:
    """Return the type that several expressions have in common."""
    found = {scalar for expr in values for scalar in scalars(expr, row, world)}
    if len(found) == 1:
        return found.pop()
    return Scalar.F64 if found & {*_DECIMALS} else Scalar.I64


def converted(found: Any, scalar: Scalar) -> Any:
    """Return a value in a type that it shares with others."""
    if isinstance(found, list):
        return [converted(item, scalar) for item in found]
    if isinstance(found, bool) or not isinstance(found, int | float):
        return found
    if scalar in _DECIMALS:
        return float(found)
    return in_range(found) if scalar is Scalar.I64 else found
