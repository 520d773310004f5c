"""What the interpreter reads and gives: a plain graph, rows of entities, an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from omnigraph.catalog import Catalog, EdgeType, NodeType
from omnigraph.types import PropertyType, Scalar

Properties: TypeAlias = Mapping[str, Any]
"""Values by property name; absent is null. Dates are `date`, instants UTC `datetime`."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge as data."""

    id: str
    src: str
    dst: str
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlainGraph:
    """A graph as data: nodes by type and id, edges by type."""

    nodes: Mapping[str, Mapping[str, Properties]]
    edges: Mapping[str, Sequence[Edge]] = field(default_factory=dict)


class Entity(NamedTuple):
    """What a variable stands for in one row."""

    type: NodeType | EdgeType
    id: str
    properties: Properties


Row: TypeAlias = dict[str, Entity]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything a query is asked about: schema, data, bound parameters, the instant."""

    catalog: Catalog
    graph: PlainGraph
    parameters: Mapping[str, Any] = field(default_factory=dict)
    parameter_types: Mapping[str, PropertyType] = field(default_factory=dict)
    now: datetime = datetime(2024, 5, 1, 12, tzinfo=UTC)
    embed: Callable[[str, int], Sequence[float]] | None = None

    def nodes(self, type_: NodeType) -> list[Entity]:
        """Return all nodes of a type."""
        found = self.graph.nodes.get(type_.name, {})
        return [Entity(type_, id_, properties) for id_, properties in found.items()]

    def node(self, type_name: str, id_: str) -> Entity:
        """Return a node that exists."""
        return Entity(self.catalog.nodes[type_name], id_, self.graph.nodes[type_name][id_])


ID_TYPE = PropertyType(Scalar.STRING)


class Inexact(float):
    """A number an engine may give with a difference of up to `slack`.

    A `noisy` one depends on the order in which others are added, so that two which should be equal
    may differ, too.
    """

    slack: float
    noisy: bool

    def __new__(cls, value: float, slack: float, *, noisy: bool = False) -> Inexact:
        """Return the number with what is known about it."""
        made = super().__new__(cls, value)
        made.slack, made.noisy = slack, noisy
        return made


class RefusedError(Exception):
    """A query that type-checks, but may not run with these parameters."""


class OutOfRangeError(RefusedError):
    """A computed number leaves its range.

    An engine that does not need the row for the answer may give one.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All result rows, before they are cut; rows with equal sort keys may stand in any order."""

    columns: tuple[str, ...]
    complete: Sequence[Mapping[str, Any]]
    keys: Sequence[tuple[Any, ...]]
    ordered: bool
    offset: int = 0
    limit: int | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows after `offset` and `limit`."""
        end = None if self.limit is None else self.offset + self.limit
        return [dict(row) for row in self.complete[self.offset : end]]
