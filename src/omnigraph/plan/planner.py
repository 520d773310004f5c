"""Plan a query by cost: rewrite rules that use statistics, each with the same answers.

`rewrite_rules` holds those that need none. Filters are pushed down again after the order of steps
was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from omnigraph.plan import operators as op
from omnigraph.plan.cardinality import Estimator
from omnigraph.plan.expressions import (
    Expression,
    ParameterRef,
    is_call,
    subexpressions,
)
from omnigraph.plan.functions import FunctionKind
from omnigraph.plan.join_order import JoinChoice, JoinOrder, split_region
from omnigraph.plan.query_plan import ReadPlan
from omnigraph.plan.rewrite_rules import push_filters_down
from omnigraph.plan.statistics import GraphStatistics

DEFAULT_LIMIT = 100
"""The number of rows a limit is taken for that a parameter gives."""


def plan_by_cost(plan: ReadPlan, statistics: GraphStatistics) -> ReadPlan:
    """Return a plan with the same answers that is estimated to be cheapest.

    Where a query ranks what it finds, the order of rows decides between equal ranks: such a plan
    starts where it was written to.
    """
    if any(is_call(e, FunctionKind.RANK) for e in plan_expressions(plan.root)):
        return plan
    planner = Planner(Estimator(statistics))
    root = planner.result(plan.root)
    return replace(plan, root=root, choices=tuple(planner.choices))


def plan_expressions(root: op.PlanOperator) -> Iterator[Expression]:
    """Yield every expression that a plan computes for a result or an order."""
    for _, operator in op.walk_operators(root):
        for expression in op.operator_expressions(operator):
            yield from subexpressions(expression)


@dataclass(frozen=True, slots=True)
class Planner:
    """What rules know about a plan, and what they chose."""

    estimator: Estimator
    choices: list[JoinChoice] = field(default_factory=list)

    def result(self, root: op.ResultOperator) -> op.ResultOperator:
        """Apply every rule to the rows under a result."""
        match root:
            case op.Project(input=rows) | op.Aggregate(input=rows):
                for rule in COST_RULES:
                    rows = rule(rows, self)
                return replace(root, input=rows)
            case op.Distinct() | op.SortColumns() | op.SliceColumns():
                below = self.result(root.input)
                return replace(root, input=below)


CostRule: TypeAlias = Callable[[op.RowOperator, Planner], op.RowOperator]


# --- scans and steps ---------------------------------------------------------------------------


def order_joins(rows: op.RowOperator, planner: Planner) -> op.RowOperator:
    """Order the scans and steps of a pattern and of its blocks."""
    return _ordered(rows, planner, None)


def _ordered(rows: op.RowOperator, planner: Planner, wanted: int | None) -> op.RowOperator:
    """Order scans and steps, when `wanted` rows are enough."""
    region = split_region(rows)
    if region is not None:
        made, choices = JoinOrder(region, planner.estimator, wanted).chosen()
        planner.choices.extend(choices)
        return push_filters_down(made)
    match rows:
        case op.AntiJoin() | op.ExistsJoin() | op.OptionalJoin():
            source = _ordered(rows.input, planner, wanted)
            return type(rows)(source, _ordered(rows.inner, planner, None))
        case op.SliceRows(limit=limit):
            return replace(rows, input=_ordered(rows.input, planner, _wanted(limit)))
        case op.SortRows():
            return replace(rows, input=_ordered(rows.input, planner, None))
        case op.Union(inputs=inputs):
            return op.Union(tuple(_ordered(source, planner, wanted) for source in inputs))
        case op.Filter():
            return replace(rows, input=_ordered(rows.input, planner, wanted))
        case _:
            return rows


def _wanted(limit: op.SliceBound | None) -> int | None:
    return DEFAULT_LIMIT if isinstance(limit, ParameterRef) else limit


# --- blocks ------------------------------------------------------------------------------------


def push_blocks_down(rows: op.RowOperator, planner: Planner) -> op.RowOperator:
    """Move `not` and `exists` blocks to where all they look at is bound and rows are fewest."""
    return _blocks_pushed(rows, planner.estimator)


def _blocks_pushed(rows: op.RowOperator, estimator: Estimator) -> op.RowOperator:
    match rows:
        case op.AntiJoin() | op.ExistsJoin():
            source = _blocks_pushed(rows.input, estimator)
            inner = _blocks_pushed(rows.inner, estimator)
            return _push_block(type(rows), source, inner, estimator)
        case op.OptionalJoin():
            return replace(
                rows,
                input=_blocks_pushed(rows.input, estimator),
                inner=_blocks_pushed(rows.inner, estimator),
            )
        case op.Scan() | op.OuterRow():
            return rows
        case op.Cross(left=left, right=right):
            return op.Cross(_blocks_pushed(left, estimator), _blocks_pushed(right, estimator))
        case op.Union(inputs=inputs):
            return op.Union(tuple(_blocks_pushed(source, estimator) for source in inputs))
        case _:
            return replace(rows, input=_blocks_pushed(rows.input, estimator))


def _push_block(
    kind: type[op.AntiJoin | op.ExistsJoin],
    rows: op.RowOperator,
    inner: op.RowOperator,
    estimator: Estimator,
) -> op.RowOperator:
    """Attach a block as low as its variables allow, if that does not test more rows."""
    used = op.used_variables(inner) & set(op.outer_variables(inner))
    if used:
        match rows:
            case op.Cross(left=left, right=right):
                if used <= set(left.variables):
                    return op.Cross(_push_block(kind, left, inner, estimator), right)
                if used <= set(right.variables) and not op.outer_variables(left):
                    return op.Cross(left, _push_block(kind, right, inner, estimator))
            case op.Expand() | op.SemiJoin() | op.OptionalJoin() if used <= set(
                rows.input.variables
            ) and estimator.rows(rows.input) <= estimator.rows(rows):
                return replace(rows, input=_push_block(kind, rows.input, inner, estimator))
            case _:
                pass
    return kind(rows, op.narrow_outer(inner, set(rows.variables)))


# --- limits ------------------------------------------------------------------------------------


def push_limits_down(rows: op.RowOperator, _: Planner) -> op.RowOperator:
    """Make no more rows of the sides of a cross product, or before an optional block, than asked.

    Each row of one side, or before the block, gives at least one row, in the same order.
    """
    match rows:
        case op.SliceRows(input=source, limit=limit, offset=offset):
            most = _most(limit, offset)
            if most is None or not isinstance(source, op.Cross | op.OptionalJoin):
                return rows
            return replace(rows, input=_limited(source, most))
        case _:
            return rows


def _most(limit: op.SliceBound | None, offset: op.SliceBound | None) -> op.SliceBound | None:
    """Return how many rows are looked at, if that is known without computing."""
    if limit is None or offset is None:
        return limit
    return limit + offset if isinstance(limit, int) and isinstance(offset, int) else None


def _limited(rows: op.RowOperator, most: op.SliceBound) -> op.RowOperator:
    match rows:
        case op.Cross(left=left, right=right) if not op.outer_variables(left):
            return op.Cross(_limited(left, most), _limited(right, most))
        case op.OptionalJoin():
            return replace(rows, input=_limited(rows.input, most))
        case _:
            return op.SliceRows(rows, most, None)


COST_RULES: tuple[CostRule, ...] = (order_joins, push_blocks_down, push_limits_down)
"""Applied one after the other; none depends on another one."""
