"""This module shows how a query is answered: operators, what was guessed, what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from omnigraph.commit.model import Snapshot
from omnigraph.plan import ReadPlan
from omnigraph.plan import operators as op
from omnigraph.plan.explain import describe_operator
from omnigraph.query.estimate import estimate
from omnigraph.query.execute import Actual


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a plan, with how deep it stands in the tree."""

    depth: int
    operator: str
    estimated_rows: int
    actual: Actual | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the step as plain JSON values."""
        facts: dict[str, Any] = {
            "depth": self.depth,
            "operator": self.operator,
            "estimated_rows": self.estimated_rows,
        }
        if self.actual is not None:
            facts["rows"] = self.actual.rows
            facts["seconds"] = round(self.actual.seconds, 6)
        return facts

    def __str__(self) -> str:
        about = f"~{self.estimated_rows:,} rows"
        if self.actual is not None:
            about = f"{self.actual.rows:,} rows, {self.actual.seconds * 1000:.1f} ms; {about}"
        return f"{'  ' * self.depth}{self.operator}  ({about})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query is answered, top down."""

    name: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain JSON values."""
        return {"query_name": self.name, "steps": [step.to_json() for step in self.steps]}


def explain_plan(
    plan: ReadPlan, snapshot: Snapshot, trace: Mapping[int, Actual] | None = None
) -> Explanation:
    """Return the operators of a plan; `trace` is what a run of it noted."""
    steps = (
        Step(
            depth,
            describe_operator(operator),
            ceil(estimate(operator, snapshot)),
            (trace or {}).get(id(operator)),
        )
        for depth, operator in op.walk(plan.root)
    )
    return Explanation(plan.name, tuple(steps))
