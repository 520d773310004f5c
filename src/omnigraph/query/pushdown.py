"""Decide which predicates of a scan storage can evaluate, and write them as a filter.

Only comparisons whose filter means exactly the same are pushed; the rest is evaluated here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.plan.expressions import (
    Compare,
    IsIn,
    Predicate,
    PropertyRef,
    is_constant,
)
from omnigraph.query.column_cache import TypeTable
from omnigraph.query.expressions import Evaluator
from omnigraph.storage.row_lookup import sql_literals
from omnigraph.types import PropertyType, entity_id
from omnigraph.types.arrow import to_column

_PUSHABLE_OPERATORS = (
    ComparisonOperator.EQ,
    ComparisonOperator.LT,
    ComparisonOperator.LE,
    ComparisonOperator.GT,
    ComparisonOperator.GE,
)


def scan_filter(
    predicates: Sequence[Predicate], table: TypeTable, evaluator: Evaluator
) -> tuple[str | None, list[Predicate]]:
    """Return a filter for storage, or None, and the predicates it does not answer."""
    pushed: list[str] = []
    left: list[Predicate] = []
    for predicate in predicates:
        text = _filter_sql(predicate, table, evaluator)
        if text is None:
            left.append(predicate)
        else:
            pushed.append(text)
    return (" AND ".join(pushed) if pushed else None), left


def key_lookup(
    predicates: Sequence[Predicate], table: TypeTable, evaluator: Evaluator
) -> tuple[str, list[Predicate]] | None:
    """Return the one id a whole key makes if predicates say what the key is, and other predicates.

    Few entities are sooner compared in memory.
    """
    if not table.members or table.is_small:
        return None
    members: dict[str, tuple[object, PropertyType]] = {}
    left: list[Predicate] = []
    for predicate in predicates:
        member = _key_member(predicate, table, evaluator)
        if member is None or member[0] in members:
            left.append(predicate)
        else:
            members[member[0]] = member[1]
    if set(members) != set(table.members):
        return None
    return entity_id([members[name] for name in table.members]), left


def _key_member(
    predicate: Predicate, table: TypeTable, evaluator: Evaluator
) -> tuple[str, tuple[object, PropertyType]] | None:
    """Return the key property that a predicate fixes, and its value, if IDs hold it exactly."""
    match predicate:
        case Compare(
            left=PropertyRef(property=name, type=type_), operator=ComparisonOperator.EQ, right=right
        ) if name in table.members and is_constant(right):
            value = evaluator.value(right)
            is_exact = isinstance(value, str) if type_.text else type(value) is int
            return (
                (name, (value, type_)) if is_exact and (type_.text or type_.spec.integer) else None
            )
        case _:
            return None


def _filter_sql(predicate: Predicate, table: TypeTable, evaluator: Evaluator) -> str | None:
    match predicate:
        case Compare(
            left=PropertyRef(property=name, type=type_) as left, operator=operator, right=right
        ):
            if operator not in _PUSHABLE_OPERATORS or not is_constant(right) or table.has(name):
                return None
            literals = exact_literals([evaluator.value_beside(right, left)], type_)
            return literals and f"`{name}` {operator} {literals}"
        case IsIn(operand=PropertyRef(property=name, type=type_) as operand, choices=choices):
            if table.has(name) or not is_constant(choices):
                return None
            literals = exact_literals(evaluator.value_beside(choices, operand) or [], type_)
            return literals and f"`{name}` IN ({literals})"
        case _:
            return None


def exact_literals(values: Sequence[object], type_: PropertyType) -> str | None:
    """Write values in the type of a column, or return None when they do not fit it exactly."""
    if not values or any(value is None for value in values):
        return None
    if type_.spec.integer and not all(isinstance(value, int) for value in values):
        return None
    try:
        column = to_column(values, type_)
        if type_.spec.numeric and column.to_pylist() != list(values):
            return None
        return ", ".join(sql_literals(column)) or None
    except (pa.ArrowInvalid, OverflowError, ValueError):
        return None
