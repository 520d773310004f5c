"""Statistics of a graph: what the planner knows about types without reading them.

They may lag behind the data. A wrong number makes a query slower, never its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.catalog import Catalog, TypeKind

REPLAN_FACTOR = 10.0
"""By which factor the number of entities of a type must change for a plan to be made again."""


@dataclass(frozen=True, slots=True)
class PropertyStatistics:
    """The values of a property: how many different ones, and the share of nulls."""

    distinct: int
    null_share: float = 0.0


@dataclass(frozen=True, slots=True)
class DegreeStatistics:
    """The nodes at one end of an edge type: how many have an edge, and the most edges of one."""

    nodes: int
    maximum: int


@dataclass(frozen=True, slots=True)
class TypeStatistics:
    """The entities of one type; `out` and `into` are of the ends of an edge type."""

    rows: int
    properties: Mapping[str, PropertyStatistics] = field(default_factory=dict)
    out: DegreeStatistics | None = None
    into: DegreeStatistics | None = None


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """Statistics by type, `node:Person` or `edge:Knows`; a type that is missing has no rows."""

    catalog: Catalog
    types: Mapping[str, TypeStatistics]

    def node(self, name: str) -> TypeStatistics:
        """Return the statistics of a node type."""
        return self.types.get(f"{TypeKind.NODE}:{name}", _UNKNOWN)

    def edge(self, name: str) -> TypeStatistics:
        """Return the statistics of an edge type."""
        return self.types.get(f"{TypeKind.EDGE}:{name}", _UNKNOWN)

    def property_of(self, kind: str, type_name: str, name: str) -> PropertyStatistics | None:
        """Return the statistics of a property, if it has any."""
        return self.types.get(f"{kind}:{type_name}", _UNKNOWN).properties.get(name)


_UNKNOWN = TypeStatistics(0)


def is_far_off(rows: int, now: int) -> bool:
    """Return whether a number of rows changed by an order of magnitude.

    >>> is_far_off(100, 900), is_far_off(100, 1_100), is_far_off(0, 5)
    (False, True, False)
    """
    low, high = sorted((rows + 1, now + 1))
    return high > low * REPLAN_FACTOR
