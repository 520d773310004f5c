"""This module guesses how many rows operators yield, from counts alone."""

from __future__ import annotations

from math import inf
from typing import assert_never

from omnigraph.catalog import TypeKind
from omnigraph.commit.model import Snapshot
from omnigraph.lang.query_tree import Operator as Word
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Compare, IsIn, Predicate
from omnigraph.plan.hops import Direction

EQUAL, OTHER = 0.05, 0.3
"""The share of rows a test for equality, or another one, is guessed to let through."""
MANY_HOPS = 64
"""Hops after which further ones change a guess no more."""


def estimate(operator: op.Operator, snapshot: Snapshot) -> float:
    """Return about how many rows an operator yields; parameters are not looked at."""
    match operator:
        case op.Scan(binding=binding, predicates=predicates):
            return _rows(snapshot, TypeKind.NODE, binding.type_name) * _share(predicates)
        case op.OuterRow():
            return 1.0
        case op.Expand(input=source, predicates=predicates):
            reached = estimate(source, snapshot) * _fan_out(operator, snapshot)
            return reached * _share(predicates)
        case op.Close(input=source):
            nodes = _rows(snapshot, TypeKind.NODE, operator.variables[operator.dst].type_name)
            return estimate(source, snapshot) * min(1.0, _fan_out(operator, snapshot) / nodes)
        case op.Cross(left=left, right=right):
            return estimate(left, snapshot) * estimate(right, snapshot)
        case op.Filter(input=source, predicate=predicate):
            return estimate(source, snapshot) * _share((predicate,))
        case op.AntiJoin(input=source):
            return estimate(source, snapshot) * (1 - OTHER)
        case op.SliceRows(input=source) | op.SliceColumns(input=source):
            rows = estimate(source, snapshot)
            return min(rows, operator.limit) if isinstance(operator.limit, int) else rows
        case op.Aggregate(input=source, keys=keys):
            return max(1.0, estimate(source, snapshot) ** 0.5) if keys else 1.0
        case op.SortRows() | op.SortColumns() | op.Project() | op.Distinct():
            return estimate(operator.input, snapshot)
        case _ as unreachable:
            assert_never(unreachable)


def _rows(snapshot: Snapshot, kind: TypeKind, name: str) -> float:
    return max(1.0, float(snapshot.entry(f"{kind}:{name}").rows))


def _share(predicates: tuple[Predicate, ...]) -> float:
    share = 1.0
    for predicate in predicates:
        is_equal = isinstance(predicate, Compare) and predicate.operator is Word.EQ
        share *= EQUAL if is_equal or isinstance(predicate, IsIn) else OTHER
    return share


def _fan_out(step: op.Expand | op.Close, snapshot: Snapshot) -> float:
    """Return how many nodes one node reaches on average, never more than there are."""
    edge = snapshot.catalog.edges[step.edge]
    edges = _rows(snapshot, TypeKind.EDGE, step.edge)
    start, end = (edge.dst, edge.src) if step.direction is Direction.IN else (edge.src, edge.dst)
    one = edges / _rows(snapshot, TypeKind.NODE, start)
    if step.direction is Direction.BOTH:
        one *= 2
    most = _rows(snapshot, TypeKind.NODE, end)
    hops = range(step.hops.minimum, step.hops.maximum + 1)[:MANY_HOPS]
    return min(most, sum(_power(one, hop) for hop in hops))


def _power(base: float, exponent: int) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return inf
