"""Push predicates down to storage, to skip rows that cannot match.

Spark evaluates every predicate itself, so only predicates with the same result in storage are
pushed down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.pipeline.connector.filters import FilterCondition
from omnigraph.plan.expressions import (
    Compare,
    Constant,
    IsIn,
    ParameterRef,
    Predicate,
    PropertyRef,
)
from omnigraph.query.expressions import Constants
from omnigraph.types import PropertyType, Scalar

_OPERATOR_NAMES: Mapping[ComparisonOperator, str] = MappingProxyType(
    {
        ComparisonOperator.EQ: "=",
        ComparisonOperator.LT: "<",
        ComparisonOperator.LE: "<=",
        ComparisonOperator.GT: ">",
        ComparisonOperator.GE: ">=",
    }
)


def pushdown_conditions(
    predicates: Iterable[Predicate], variable: str, constants: Constants
) -> Iterator[FilterCondition]:
    """Yield what storage may leave out entities of a variable by."""
    for predicate in predicates:
        match predicate:
            case Compare(
                left=PropertyRef(variable=of, property=name, type=type_),
                operator=sign,
                right=Constant() | ParameterRef() as right,
            ) if of == variable and sign in _OPERATOR_NAMES:
                value = constants.value(right)
                if _is_exact(value, type_):
                    yield name, _OPERATOR_NAMES[sign], value
            case IsIn(
                operand=PropertyRef(variable=of, property=name, type=type_),
                choices=Constant() | ParameterRef() as choices,
            ) if of == variable:
                values = constants.value(choices) or []
                if values and all(_is_exact(value, type_) for value in values):
                    yield name, "in", list(values)
            case _:
                continue


def _is_exact(value: Any, type_: PropertyType) -> bool:  # noqa: ANN401 - a value of any type
    """Return whether a value converts exactly to the type, without rounding or truncation."""
    if type_.is_list:
        return False
    if type_.text:
        return isinstance(value, str)
    if type_.scalar is Scalar.DATE:
        return isinstance(value, date) and not isinstance(value, datetime)
    if type_.spec.bounds is None or isinstance(value, bool) or not isinstance(value, int):
        return False
    low, high = type_.spec.bounds
    return low <= value <= high
