"""The neighbours of one node, by edge type and direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.catalog import AcceptedType, EdgeType, NodeType, TypeKind
from omnigraph.commit.model import CommitId, Snapshot
from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.notebook.results import neighbours_html
from omnigraph.query.entities import find_types
from omnigraph.query.result import Result
from omnigraph.types import Scalar

MAX_NEIGHBOURS = 1000
"""Neighbours returned for an edge type and direction, at most."""
_MAX_LABEL = 200
_DISPLAY_NAMES = ("name", "title", "label", "display_name", "full_name")
RunQuery = Callable[[str, dict[str, Any]], Result]


class EdgeDirection(StrEnum):
    """Whether an edge leaves a node or arrives at it."""

    OUT = "out"
    IN = "in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """The other end of one edge; `label` is the text that people know the node by."""

    id: str
    label: str | None
    edge_id: str

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"id": self.id, "label": self.label, "edge_id": self.edge_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourGroup:
    """The edges of one type that leave a node, or arrive at it.

    `type` is that of the other ends, `count` the number of edges, of which `neighbours` has the
    first ones by ID.
    """

    edge: str
    direction: EdgeDirection
    type: str
    count: int
    neighbours: tuple[Neighbour, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "edge": self.edge,
            "direction": str(self.direction),
            "type": self.type,
            "count": self.count,
            "neighbours": [neighbour.to_json() for neighbour in self.neighbours],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The neighbours of one node in one state, by edge type; a node without edges has none."""

    commit_id: CommitId
    groups: tuple[NeighbourGroup, ...]

    def __iter__(self) -> Iterator[NeighbourGroup]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        groups = [group.to_json() for group in self.groups]
        return {"graph_commit_id": self.commit_id, "groups": groups}

    def _repr_html_(self) -> str:
        return neighbours_html(self.to_json())


def display_property(node: NodeType) -> str | None:
    """Return the String property that people know nodes of a type by, if there is one."""
    texts = [
        name
        for name, property_ in node.properties.items()
        if property_.type.scalar is Scalar.STRING
        and not property_.type.is_list
        and property_.type.enum_values is None
    ]
    named = next((name for name in _DISPLAY_NAMES if name in texts), None)
    unkeyed = next((name for name in texts if name not in node.key), None)
    return named or unkeyed or next(iter(texts), None)


def edge_word(edge: EdgeType) -> str:
    """Return the word for an edge type in a query: `CallsAt` is `callsAt`."""
    word = edge.name[:1].lower() + edge.name[1:]
    return "nOT" if word == "not" else word


def read_neighbours(
    snapshot: Snapshot, type_name: str, id_: str, limit: int | None, run: RunQuery
) -> Neighbours:
    """Return the neighbours of a node; `run` runs a query with parameters on the same state."""
    type_ = _node_type(snapshot, type_name)
    limit = MAX_NEIGHBOURS if limit is None else limit
    if not 1 <= limit <= MAX_NEIGHBOURS:
        message = f"`limit` is between 1 and {MAX_NEIGHBOURS:,}, not {limit}"
        raise InvalidInput(message, code="limit_invalid", limit=limit)
    groups = (
        _read_group(snapshot, type_.name, (edge, direction), {"id": id_, "limit": limit}, run)
        for edge in snapshot.catalog.incident_edges(type_.name)
        for direction, end in ((EdgeDirection.OUT, edge.src), (EdgeDirection.IN, edge.dst))
        if end == type_.name
    )
    return Neighbours(
        commit_id=snapshot.commit_id, groups=tuple(group for group in groups if group.count)
    )


def _node_type(snapshot: Snapshot, type_name: str) -> AcceptedType:
    types = find_types(snapshot, type_name)
    for type_ in types:
        if type_.kind is TypeKind.NODE:
            return type_
    hint = did_you_mean(type_name, snapshot.catalog.nodes)
    message = f"{type_name} is an edge type: neighbours are those of a node"
    raise InvalidInput(f"{message}; {hint}" if hint else message, code="not_a_node_type")


def _read_group(
    snapshot: Snapshot,
    type_name: str,
    group: tuple[EdgeType, EdgeDirection],
    parameters: dict[str, Any],
    run: RunQuery,
) -> NeighbourGroup:
    edge, direction = group
    other = edge.dst if direction is EdgeDirection.OUT else edge.src
    ends = ("$n", "$m") if direction is EdgeDirection.OUT else ("$m", "$n")
    bound = f"$n: {type_name} {{ id: $id }}  {ends[0]} $e:{edge_word(edge)} {ends[1]}"
    display = display_property(snapshot.catalog.nodes[other])
    label = "" if display is None else f", $m.{display} as label"
    [counted] = run(
        f"query count($id: String) {{ match {{ {bound} }} return {{ count($e.id) as edges }} }}",
        {"id": parameters["id"]},
    ).rows
    rows = run(
        f"query neighbours($id: String, $limit: I64) {{ match {{ {bound} }} "
        f"return {{ $m.id as id, $e.id as edge_id{label} }} "
        "order { id, edge_id } limit $limit }",
        parameters,
    ).rows
    return NeighbourGroup(
        edge=edge.name,
        direction=direction,
        type=other,
        count=counted["edges"],
        neighbours=tuple(
            Neighbour(id=row["id"], edge_id=row["edge_id"], label=short_label(row.get("label")))
            for row in rows
        ),
    )


def short_label(label: str | None) -> str | None:
    """Return the text of a label, cut if it is long."""
    return label if label is None or len(label) <= _MAX_LABEL else f"{label[:_MAX_LABEL]}…"
