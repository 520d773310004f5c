"""Choose how edges are followed: by probing an index, or through adjacency arrays.

Costs are rough times in microseconds on a local disk. Only their order matters, and the answer is
the same either way.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from omnigraph.catalog import TypeKind
from omnigraph.commit.model import Snapshot
from omnigraph.lang.query_tree import ComparisonOperator as Word
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Compare, Direction, IsIn, Predicate

PROBE_COST, PROBED_NODE_COST, PROBED_EDGE_COST = 1500.0, 200.0, 200.0
"""Cost of one probe, of each node that is looked up, and of each edge in the result."""
SCANNED_EDGE_COST = 0.05
"""What it takes to look at an edge that no index covers."""
ARRAYS_BUILD_COST, ARRAYS_BUILD_EDGE_COST = 500.0, 0.4
"""What it takes to make arrays, and what each edge adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionCost:
    """What is known before edges are followed from some nodes."""

    frontier: int
    edges: int
    nodes: int
    """Nodes at the end that edges are followed from."""
    covered: float = 0.0
    """The share of edges an index covers."""
    arrays_at_hand: bool = False
    """Whether arrays are in memory or in files, or can be had from some that nearly fit."""
    spent: float = 0.0
    """What was spent on probes so far that arrays would have saved."""

    @property
    def probes_cost(self) -> float:
        """What it takes to find the edges through indexes, scanning what they do not cover."""
        matches = self.frontier * self.edges / max(1, self.nodes)
        looked_up = self.frontier * PROBED_NODE_COST + matches * PROBED_EDGE_COST
        return PROBE_COST + looked_up + (1 - self.covered) * self.edges * SCANNED_EDGE_COST

    @property
    def arrays_cost(self) -> float:
        """What it takes until arrays are there; following them takes no time."""
        return (
            0.0 if self.arrays_at_hand else ARRAYS_BUILD_COST + self.edges * ARRAYS_BUILD_EDGE_COST
        )

    @property
    def takes_arrays(self) -> bool:
        """Return whether arrays pay: now, or because probes have cost as much by now."""
        return self.arrays_cost <= self.probes_cost + self.spent


# ----------------------------------------------------------------------
# Cardinality estimates of operators, from row counts alone.


EQUALITY_SELECTIVITY, DEFAULT_SELECTIVITY = 0.05, 0.3
"""The share of rows a test for equality, or another one, is guessed to let through."""
MAX_ESTIMATED_HOPS = 64
"""Hops after which further ones change a guess no more."""


def estimate_rows(operator: op.PlanOperator, snapshot: Snapshot) -> float:
    """Return about how many rows an operator yields; parameters are not looked at."""
    match operator:
        case op.Scan(binding=binding, predicates=predicates):
            return _row_count(snapshot, TypeKind.NODE, binding.type_name) * _selectivity(predicates)
        case op.OuterRow():
            return 1.0
        case op.Expand(input=source, predicates=predicates):
            reached = estimate_rows(source, snapshot) * _fan_out(operator, snapshot)
            return reached * _selectivity(predicates)
        case op.SemiJoin(input=source):
            nodes = _row_count(snapshot, TypeKind.NODE, operator.variables[operator.dst].type_name)
            return estimate_rows(source, snapshot) * min(1.0, _fan_out(operator, snapshot) / nodes)
        case op.Union(inputs=inputs):
            return sum(estimate_rows(source, snapshot) for source in inputs)
        case op.Cross(left=left, right=right):
            return estimate_rows(left, snapshot) * estimate_rows(right, snapshot)
        case op.Filter(input=source, predicate=predicate):
            return estimate_rows(source, snapshot) * _selectivity((predicate,))
        case op.AntiJoin(input=source):
            return estimate_rows(source, snapshot) * (1 - DEFAULT_SELECTIVITY)
        case op.ExistsJoin(input=source):
            return estimate_rows(source, snapshot) * DEFAULT_SELECTIVITY
        case op.OptionalJoin(input=source, inner=inner):
            return estimate_rows(source, snapshot) * max(1.0, estimate_rows(inner, snapshot))
        case op.SliceRows(input=source) | op.SliceColumns(input=source):
            rows = estimate_rows(source, snapshot)
            return min(rows, operator.limit) if isinstance(operator.limit, int) else rows
        case op.Aggregate(input=source, keys=keys):
            return max(1.0, estimate_rows(source, snapshot) ** 0.5) if keys else 1.0
        case op.SortRows() | op.SortColumns() | op.Project() | op.Distinct():
            return estimate_rows(operator.input, snapshot)


def _row_count(snapshot: Snapshot, kind: TypeKind, name: str) -> float:
    return max(1.0, float(snapshot.entry(f"{kind}:{name}").rows))


def _selectivity(predicates: tuple[Predicate, ...]) -> float:
    share = 1.0
    for predicate in predicates:
        is_equal = isinstance(predicate, Compare) and predicate.operator is Word.EQ
        share *= (
            EQUALITY_SELECTIVITY if is_equal or isinstance(predicate, IsIn) else DEFAULT_SELECTIVITY
        )
    return share


def _fan_out(step: op.Expand | op.SemiJoin, snapshot: Snapshot) -> float:
    """Return how many nodes one node reaches on average, never more than there are."""
    edge = snapshot.catalog.edges[step.edge]
    edges = _row_count(snapshot, TypeKind.EDGE, step.edge)
    start, end = (edge.dst, edge.src) if step.direction is Direction.IN else (edge.src, edge.dst)
    one = edges / _row_count(snapshot, TypeKind.NODE, start)
    if step.direction is Direction.BOTH:
        one *= 2
    most = _row_count(snapshot, TypeKind.NODE, end)
    hops = range(step.hops.minimum, step.hops.maximum + 1)[:MAX_ESTIMATED_HOPS]
    return min(most, sum(_power(one, hop) for hop in hops))


def _power(base: float, exponent: int) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return inf
