"""Rewrite rules: better plans with the same answers.

A rule is a pure function from row operators to row operators; `REWRITE_RULES` is folded over the
tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from omnigraph.plan.expressions import And, Predicate, predicate_variables
from omnigraph.plan.operators import (
    Aggregate,
    AntiJoin,
    Cross,
    Distinct,
    ExistsJoin,
    Expand,
    Filter,
    OptionalJoin,
    OuterRow,
    Project,
    ResultOperator,
    RowOperator,
    Scan,
    SemiJoin,
    SliceColumns,
    SliceRows,
    SortColumns,
    SortRows,
    Union,
)

RewriteRule: TypeAlias = Callable[[RowOperator], RowOperator]


def push_filters_down(rows: RowOperator) -> RowOperator:
    """Move every filter to the operator that first binds all it speaks of."""
    match rows:
        case Filter(input=source, predicate=predicate):
            pushed = push_filters_down(source)
            for part in _conjuncts(predicate):
                pushed = _push_predicate(pushed, part)
            return pushed
        case Expand() | SemiJoin() | SortRows() | SliceRows():
            return replace(rows, input=push_filters_down(rows.input))
        case Cross(left=left, right=right):
            return Cross(push_filters_down(left), push_filters_down(right))
        case Union(inputs=inputs):
            return Union(tuple(map(push_filters_down, inputs)))
        case AntiJoin(input=source, inner=inner):
            return AntiJoin(push_filters_down(source), push_filters_down(inner))
        case ExistsJoin(input=source, inner=inner):
            return ExistsJoin(push_filters_down(source), push_filters_down(inner))
        case OptionalJoin(input=source, inner=inner):
            return OptionalJoin(push_filters_down(source), push_filters_down(inner))
        case Scan() | OuterRow():
            return rows


def _conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    if isinstance(predicate, And):
        return tuple(part for inner in predicate.parts for part in _conjuncts(inner))
    return (predicate,)


def _push_predicate(rows: RowOperator, predicate: Predicate) -> RowOperator:
    """Attach one predicate as low as its variables allow."""
    needed = predicate_variables(predicate)
    match rows:
        case Scan(predicates=predicates):
            return replace(rows, predicates=(*predicates, predicate))
        case Expand() if needed and needed <= set(rows.input.variables):
            return replace(rows, input=_push_predicate(rows.input, predicate))
        case Expand(dst=dst) if needed == {dst.name}:
            return replace(rows, predicates=(*rows.predicates, predicate))
        case SemiJoin() | AntiJoin() | ExistsJoin() | OptionalJoin() if needed <= set(
            rows.input.variables
        ):
            return replace(rows, input=_push_predicate(rows.input, predicate))
        case Cross(left=left, right=right):
            if needed <= set(left.variables):
                return Cross(_push_predicate(left, predicate), right)
            if needed <= set(right.variables):
                return Cross(left, _push_predicate(right, predicate))
            return Filter(rows, predicate)
        case Filter(input=source, predicate=other):
            below = _push_predicate(source, predicate)
            stuck = isinstance(below, Filter) and below.input is source
            return Filter(rows, predicate) if stuck else Filter(below, other)
        case _:
            return Filter(rows, predicate)


REWRITE_RULES: tuple[RewriteRule, ...] = (push_filters_down,)


def rewrite(root: ResultOperator) -> ResultOperator:
    """Apply every rule to the rows under a result."""
    match root:
        case Project(input=rows) | Aggregate(input=rows):
            for rule in REWRITE_RULES:
                rows = rule(rows)
            return replace(root, input=rows)
        case Distinct() | SortColumns() | SliceColumns():
            return replace(root, input=rewrite(root.input))
