"""The types of a state with their properties and numbers of entities: `graph.types`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.notebook.graphs import types_html


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSummary:
    """A node or edge type of a state.

    `properties` are the types of the properties as the schema language writes them, those of the
    key first. `source` and `target` are the node types that an edge connects.
    """

    kind: Literal["node", "edge"]
    name: str
    count: int
    properties: Mapping[str, str]
    source: str | None = None
    target: str | None = None

    def __repr__(self) -> str:
        ends = f": {self.source} -> {self.target}" if self.kind == "edge" else ""
        return f"<{self.kind} {self.name}{ends}, {self.count:,}>"


class TypeList(list[TypeSummary]):
    """Node types and then edge types, each by name."""

    def __init__(self, facts: Iterable[Mapping[str, Any]]) -> None:
        self._facts = list(facts)
        super().__init__(_summary(one) for one in self._facts)

    def _repr_html_(self) -> str:
        return types_html(self._facts)


def _summary(facts: Mapping[str, Any]) -> TypeSummary:
    return TypeSummary(
        kind=facts["kind"],
        name=facts["name"],
        count=facts["rows"],
        properties={one["name"]: one["type"] for one in facts["properties"]},
        source=facts.get("src"),
        target=facts.get("dst"),
    )
