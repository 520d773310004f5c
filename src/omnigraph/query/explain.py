"""Show how a query runs: its operators, their estimates, and the measured values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from omnigraph.catalog import TypeKind
from omnigraph.commit.model import Snapshot
from omnigraph.notebook.results import explanation_html
from omnigraph.plan import ReadPlan
from omnigraph.plan import operators as op
from omnigraph.plan.cardinality import Estimator
from omnigraph.plan.explain import describe_operator
from omnigraph.plan.expressions import (
    Expression,
    FunctionCall,
    is_call,
    property_refs,
    subexpressions,
)
from omnigraph.plan.functions import FunctionArgumentKind, FunctionKind
from omnigraph.plan.join_order import JoinChoice
from omnigraph.query.column_cache import ColumnCache
from omnigraph.query.exact_integers import MAX_I64
from omnigraph.query.executor import OperatorStats
from omnigraph.query.vector_search import NearestVectors


@dataclass(frozen=True, slots=True)
class ExplainedOperator:
    """One operator of a plan, with how deep it stands in the tree."""

    depth: int
    operator: str
    estimated_rows: int
    actual: OperatorStats | None = None
    index: str | None = None
    """The property whose index may be searched for the nearest, which may miss a few."""

    def to_json(self) -> dict[str, Any]:
        """Return the step as plain JSON values."""
        facts: dict[str, Any] = {
            "depth": self.depth,
            "operator": self.operator,
            "estimated_rows": self.estimated_rows,
        }
        if self.index is not None:
            facts["index"] = self.index
        if self.actual is not None:
            facts["rows"] = self.actual.rows
            facts["seconds"] = round(self.actual.seconds, 6)
            facts["reads"] = self.actual.reads
            facts["examined"] = self.actual.examined
            if self.actual.ways:
                facts["expand"] = list(self.actual.ways)
        return facts

    def __str__(self) -> str:
        about = f"~{self.estimated_rows:,} rows"
        if self.actual is not None:
            actual = self.actual
            spent = f"{actual.seconds * 1000:.1f} ms, {actual.reads} reads"
            if actual.examined:
                spent += f", {actual.examined:,} examined"
            about = f"{actual.rows:,} rows, {spent}; {about}"
            if actual.ways:
                about += f"; by {' and '.join(actual.ways)}"
        if self.index is not None:
            about += f"; by the index of {self.index}"
        return f"{'  ' * self.depth}{self.operator}  ({about})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query is answered, top down."""

    name: str
    steps: tuple[ExplainedOperator, ...]
    choices: tuple[JoinChoice, ...] = ()
    """Where each connected part of the pattern starts, and why."""
    spilled_bytes: int = 0
    """What was written to a temporary file for want of memory."""

    def __str__(self) -> str:
        lines = [*map(str, self.steps), *map(show_choice, self.choices)]
        if self.spilled_bytes:
            lines.append(f"Temporary file: {self.spilled_bytes:,} bytes")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain JSON values."""
        facts: dict[str, Any] = {
            "query_name": self.name,
            "steps": [step.to_json() for step in self.steps],
        }
        if self.choices:
            facts["choices"] = [_choice_to_json(choice) for choice in self.choices]
        if self.spilled_bytes:
            facts["spilled_bytes"] = self.spilled_bytes
        return facts

    def _repr_html_(self) -> str:
        return explanation_html(self.to_json())


def show_choice(choice: JoinChoice) -> str:
    """Return as a line of text where a part of the pattern starts, and the costs of all starts."""
    costs = sorted(choice.costs.items(), key=lambda cost: cost[1])
    shown = ", ".join(f"${name} ~{cost:,.0f}" for name, cost in costs)
    return f"Starts at ${choice.chosen}: {choice.reason}; cost by start: {shown}"


def _choice_to_json(choice: JoinChoice) -> dict[str, Any]:
    return {
        "start": choice.chosen,
        "written_start": choice.written,
        "reason": choice.reason,
        "costs": {name: round(cost, 1) for name, cost in choice.costs.items()},
    }


def explain_plan(
    plan: ReadPlan,
    snapshot: Snapshot,
    store: ColumnCache,
    estimator: Estimator,
    trace: Mapping[int, OperatorStats] | None = None,
    spilled_bytes: int = 0,
) -> Explanation:
    """Return the operators of a plan; `trace` is what a run of it noted, and spilled."""
    steps = (
        ExplainedOperator(
            depth,
            describe_operator(operator),
            ceil(min(estimator.rows(operator), MAX_I64)),
            (trace or {}).get(id(operator)),
            _order_index(operator, snapshot, store),
        )
        for depth, operator in op.walk_operators(plan.root)
    )
    return Explanation(plan.name, tuple(steps), plan.choices, spilled_bytes)


def _order_index(operator: op.PlanOperator, snapshot: Snapshot, store: ColumnCache) -> str | None:
    """Return the property whose index may be searched to sort rows."""
    if not isinstance(operator, op.SortRows):
        return None
    for call in (c for key in operator.keys for c in _vector_rankings(key.expression)):
        reference = next(property_refs(call))
        binding = operator.variables[reference.variable]
        table = store.table(snapshot, TypeKind(binding.kind), binding.type_name)
        if NearestVectors(store, table, reference.property).has_index():
            return f"{binding.type_name}.{reference.property}"
    return None


def _vector_rankings(expression: Expression) -> Iterator[FunctionCall]:
    """Yield the calls that rank vectors by one query for all rows."""
    for call in subexpressions(expression):
        if isinstance(call, FunctionCall) and is_call(call, FunctionKind.RANK):
            property_, *_ = call.function.arguments
            is_vector = property_.kind is FunctionArgumentKind.VECTOR_PROPERTY
            if is_vector and len(list(property_refs(call))) == 1:
                yield call
