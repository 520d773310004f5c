"""Typed queries: `ReadPlan` and `MutationPlan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from omnigraph.plan.expressions import Compare, EntityKind, Expression
from omnigraph.plan.join_order import JoinChoice
from omnigraph.plan.operators import OutputColumn, ResultOperator
from omnigraph.types import PropertyType

ENTITY = "entity"
"""The variable by which the tests of a mutation speak of the entity they test."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter."""

    name: str
    type: PropertyType

    def to_json(self) -> dict[str, Any]:
        """Return the wire descriptor of the parameter."""
        return {"name": self.name, **describe_type(self.type)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """A read query, typed and lowered to operators."""

    name: str
    parameters: tuple[Parameter, ...]
    root: ResultOperator
    columns: tuple[OutputColumn, ...]
    choices: tuple[JoinChoice, ...] = ()
    """Where its patterns start, and why; empty while it is not planned by cost."""
    description: str | None = None
    instruction: str | None = None
    check: str | None = None
    """What a row of the result means, if the query must return none."""


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Insert a node; a keyed one replaces the node of the same key."""

    type_name: str
    values: Mapping[str, Expression]
    keyed: bool


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """Insert an edge between two nodes named by id; a keyed one replaces that of the same key."""

    type_name: str
    src: Expression
    dst: Expression
    values: Mapping[str, Expression]
    keyed: bool


@dataclass(frozen=True, slots=True)
class Update:
    """Assign properties of every entity that passes all tests."""

    kind: EntityKind
    type_name: str
    values: Mapping[str, Expression]
    tests: tuple[Compare, ...]

    def __post_init__(self) -> None:
        if not self.values or not self.tests:
            raise ValueError("an update assigns something to entities it tests")


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete every entity that passes all tests; edges of a deleted node go with it."""

    kind: EntityKind
    type_name: str
    tests: tuple[Compare, ...]

    def __post_init__(self) -> None:
        if not self.tests:
            raise ValueError("a delete tests its entities")


PlannedStatement: TypeAlias = InsertNode | InsertEdge | Update | Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationPlan:
    """A mutation: statements in order, either all constructive or all deletes."""

    name: str
    parameters: tuple[Parameter, ...]
    statements: tuple[PlannedStatement, ...]
    description: str | None = None
    instruction: str | None = None
    check: str | None = None
    """What a row of the result means, if the query must return none."""

    def __post_init__(self) -> None:
        if not self.statements:
            raise ValueError("a mutation has statements")
        if len({isinstance(statement, Delete) for statement in self.statements}) > 1:
            raise ValueError("a mutation never mixes inserts/updates and deletes")


QueryPlan: TypeAlias = ReadPlan | MutationPlan


def describe_type(type_: PropertyType) -> dict[str, Any]:
    """Return the wire descriptor of a type: kind, item_kind, vector_dim, nullable."""
    facts: dict[str, Any] = {"kind": "list" if type_.is_list else type_.spec.wire}
    if type_.is_list:
        facts["item_kind"] = type_.spec.wire
    if type_.dimension is not None:
        facts["vector_dim"] = type_.dimension
    facts["nullable"] = type_.nullable
    return facts
