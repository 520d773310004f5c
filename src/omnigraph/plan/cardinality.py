"""Estimate how many rows operators yield, from statistics; parameters are not looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, inf, prod, sqrt

from omnigraph.catalog import EdgeType, NodeType, Unique
from omnigraph.lang.query_tree import ComparisonOperator as Word
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    And,
    Binding,
    Compare,
    Constant,
    Direction,
    EntityKind,
    Expression,
    Hops,
    IsIn,
    IsNull,
    Or,
    Predicate,
    PredicateCall,
    PropertyRef,
    is_constant,
)
from omnigraph.plan.statistics import GraphStatistics, TypeStatistics
from omnigraph.types import Scalar

EQUALITY_SELECTIVITY, DEFAULT_SELECTIVITY, SEARCH_SELECTIVITY = 0.05, 0.3, 0.05
"""The share of rows that a test for equality, another one, or a text search keeps by default."""
NULL_SHARE = 0.1
"""The share of nulls in a nullable property without statistics."""
LIST_CHOICES = 5
"""The length of a list that a parameter gives."""
MAX_ESTIMATED_HOPS = 64
"""Hops after which further ones do not change an estimate."""

Bindings = Mapping[str, Binding]


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimates cardinalities over one set of statistics."""

    statistics: GraphStatistics

    def rows(self, operator: op.PlanOperator) -> float:
        """Return about how many rows an operator yields."""
        match operator:
            case op.Scan(binding=binding, predicates=predicates):
                return self.nodes(binding.type_name) * self.share(predicates, operator.variables)
            case op.OuterRow():
                return 1.0
            case op.Expand(input=source, predicates=predicates):
                reached = self.rows(source) * self.fan_out(
                    operator.edge, operator.direction, operator.hops
                )
                return reached * self.share(predicates, operator.variables)
            case op.SemiJoin(input=source):
                return self.rows(source) * self.connected(
                    operator.edge, operator.direction, operator.hops
                )
            case op.Union(inputs=inputs):
                return sum(map(self.rows, inputs))
            case op.Cross(left=left, right=right):
                return self.rows(left) * self.rows(right)
            case op.Filter(input=source, predicate=predicate):
                return self.rows(source) * self.share((predicate,), operator.variables)
            case op.AntiJoin(input=source, inner=inner):
                return self.rows(source) * max(0.02, 1 - self._found(inner))
            case op.ExistsJoin(input=source, inner=inner):
                return self.rows(source) * self._found(inner)
            case op.OptionalJoin(input=source, inner=inner):
                return self.rows(source) * max(1.0, self.rows(inner))
            case op.SliceRows(input=source) | op.SliceColumns(input=source):
                rows = self.rows(source)
                return min(rows, operator.limit) if isinstance(operator.limit, int) else rows
            case op.Aggregate(input=source, keys=keys):
                return self._groups(source, keys)
            case op.SortRows() | op.SortColumns() | op.Project() | op.Distinct():
                return self.rows(operator.input)

    # --- nodes and edges -----------------------------------------------------------------------

    def nodes(self, type_name: str) -> float:
        """Return how many nodes a type has, at least one."""
        return max(1.0, float(self.statistics.node(type_name).rows))

    def edges(self, type_name: str) -> float:
        """Return how many edges a type has, at least one."""
        return max(1.0, float(self.statistics.edge(type_name).rows))

    def fan_out(self, edge: str, direction: Direction, hops: Hops) -> float:
        """Return how many nodes one node reaches on average, never more than there are."""
        one = self._degree(edge, direction)
        most = self._reachable(edge, direction)
        spread = range(hops.minimum, hops.maximum + 1)[:MAX_ESTIMATED_HOPS]
        return min(most, sum(_power(one, hop) for hop in spread))

    def visited(self, edge: str, direction: Direction, hops: Hops) -> float:
        """Return how many edges are looked at to follow them from one node."""
        one = self._degree(edge, direction)
        if hops.is_single:
            return one
        spread = range(1, hops.maximum + 1)[:MAX_ESTIMATED_HOPS]
        both = 2 if direction is Direction.BOTH else 1
        return min(both * self.edges(edge), sum(_power(one, hop) for hop in spread))

    def connected(self, edge: str, direction: Direction, hops: Hops) -> float:
        """Return the share of pairs of nodes that edges connect."""
        _, end = self._ends(edge, direction)
        return min(1.0, self.fan_out(edge, direction, hops) / self.nodes(end))

    def _degree(self, edge: str, direction: Direction) -> float:
        start, _ = self._ends(edge, direction)
        one = self.edges(edge) / self.nodes(start)
        return 2 * one if direction is Direction.BOTH else one

    def _reachable(self, edge: str, direction: Direction) -> float:
        """Return how many nodes edges of a type lead to."""
        _, end = self._ends(edge, direction)
        known = self.statistics.edge(edge)
        degrees = known.out if direction is Direction.IN else known.into
        if degrees is None or direction is Direction.BOTH:
            return self.nodes(end)
        return max(1.0, min(self.nodes(end), degrees.nodes))

    def _ends(self, edge: str, direction: Direction) -> tuple[str, str]:
        """Return the node types that edges are followed from and lead to."""
        known = self.statistics.catalog.edges[edge]
        return (known.dst, known.src) if direction is Direction.IN else (known.src, known.dst)

    def _found(self, inner: op.RowOperator) -> float:
        """Return the share of outer rows for which a block finds something."""
        found = 1 - exp(-min(self.rows(inner), 50.0))
        step = _first_step(inner)
        if step is None or not step.hops.is_single or step.direction is Direction.BOTH:
            return found
        known = self.statistics.edge(step.edge)
        degrees = known.into if step.direction is Direction.IN else known.out
        if degrees is None:
            return found
        start, _ = self._ends(step.edge, step.direction)
        return min(found, degrees.nodes / self.nodes(start))

    def _groups(self, source: op.RowOperator, keys: Iterable[op.OutputColumn]) -> float:
        """Return the number of groups: the product of what the keys have of different values."""
        rows, counts = self.rows(source), [self._distinct(k, source.variables) for k in keys]
        if not counts:
            return 1.0
        if any(count is None for count in counts):
            return max(1.0, sqrt(rows))
        return max(1.0, min(rows, prod(count for count in counts if count is not None)))

    def _distinct(self, key: op.OutputColumn, bindings: Bindings) -> float | None:
        if not isinstance(key.expression, PropertyRef):
            return None
        share = self._equal_share(key.expression, bindings, default=None)
        return None if share is None else 1 / share

    # --- predicates ----------------------------------------------------------------------------

    def share(self, predicates: Iterable[Predicate], bindings: Bindings) -> float:
        """Return the share of rows that pass all tests."""
        return prod(self._share(predicate, bindings) for predicate in predicates)

    def _share(self, predicate: Predicate, bindings: Bindings) -> float:
        match predicate:
            case And(parts=parts):
                return self.share(parts, bindings)
            case Or(parts=parts):
                return 1 - prod(1 - self._share(part, bindings) for part in parts)
            case Compare(left=left, operator=Word.EQ, right=right):
                return self._equality(left, right, bindings)
            case Compare(left=left, operator=Word.NE, right=right):
                return 1 - self._equality(left, right, bindings)
            case Compare():
                return DEFAULT_SELECTIVITY
            case IsNull(operand=operand, negated=negated):
                nulls = self._null_share(operand, bindings)
                return 1 - nulls if negated else nulls
            case IsIn(operand=operand, choices=choices):
                count = LIST_CHOICES
                if isinstance(choices, Constant) and isinstance(choices.value, list):
                    count = len(choices.value)
                return min(0.5, count * self._equality(operand, choices, bindings))
            case PredicateCall():
                return SEARCH_SELECTIVITY

    def _equality(self, left: Expression, right: Expression, bindings: Bindings) -> float:
        """Return the share of rows in which two values are equal."""
        shares = [
            self._equal_share(side, bindings)
            for side in (left, right)
            if isinstance(side, PropertyRef)
        ]
        return min((share for share in shares if share is not None), default=EQUALITY_SELECTIVITY)

    def _equal_share(
        self, ref: PropertyRef, bindings: Bindings, default: float | None = EQUALITY_SELECTIVITY
    ) -> float | None:
        """Return the share of entities that have one value of a property."""
        binding = bindings.get(ref.variable)
        if binding is None or ref.type.is_list:
            return default
        known = self._type(binding)
        rows = max(1.0, float(known.rows))
        unique = _unique_members(self._definition(binding), ref.property)
        if unique:
            return float(rows ** (-1 / unique))
        values = known.properties.get(ref.property)
        if values is not None:
            return (1 - values.null_share) / max(1, min(values.distinct, rows))
        if ref.type.enum_values is not None:
            return 1 / len(ref.type.enum_values)
        return 0.5 if ref.type.scalar is Scalar.BOOL else default

    def _null_share(self, operand: Expression, bindings: Bindings) -> float:
        if not isinstance(operand, PropertyRef) or not operand.type.nullable:
            return NULL_SHARE if not isinstance(operand, PropertyRef) else 0.01
        binding = bindings.get(operand.variable)
        values = binding and self._type(binding).properties.get(operand.property)
        return values.null_share if values else NULL_SHARE

    def _type(self, binding: Binding) -> TypeStatistics:
        known = self.statistics
        is_node = binding.kind is EntityKind.NODE
        return known.node(binding.type_name) if is_node else known.edge(binding.type_name)

    def _definition(self, binding: Binding) -> NodeType | EdgeType:
        catalog = self.statistics.catalog
        if binding.kind is EntityKind.NODE:
            return catalog.nodes[binding.type_name]
        return catalog.edges[binding.type_name]

    def key_predicates(self, predicates: Iterable[Predicate], binding: Binding) -> bool:
        """Return whether tests say what the whole key of a node is."""
        key = set(self.statistics.catalog.nodes[binding.type_name].key)
        fixed = {
            p.left.property
            for p in predicates
            if isinstance(p, Compare)
            and p.operator is Word.EQ
            and isinstance(p.left, PropertyRef)
            and p.left.variable == binding.name
            and is_constant(p.right)
        }
        return bool(key) and key <= fixed


def _unique_members(definition: NodeType | EdgeType, name: str) -> int:
    """Return of how many properties the unique combination is that a property belongs to."""
    if name == "id":
        return 1
    tuples = [c.columns for c in definition.constraints if isinstance(c, Unique)]
    sizes = [len(columns) for columns in (definition.key, *tuples) if name in columns]
    return min(sizes, default=0)


def _first_step(inner: op.RowOperator) -> op.Expand | op.SemiJoin | None:
    """Return the step that a block begins with, at the outer row."""
    while True:
        below = op.operator_inputs(inner)
        if not below:
            return None
        if isinstance(inner, op.Expand | op.SemiJoin) and isinstance(below[0], op.OuterRow):
            return inner
        [inner, *_] = below  # type: ignore[assignment]  # the inputs of rows are rows


def _power(base: float, exponent: int) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return inf
