"""Bodies of operations for editors and other programs that people explore a graph with."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from omnigraph.service.wire.parameters import FromQuery, Marker, ParameterLocation
from omnigraph.service.wire.requests import EntityQuery, QueryRequest, WireCount, WireUInt64
from omnigraph.service.wire.responses import ParamDescriptor


class StateQuery(Struct, kw_only=True):
    """A state of a graph."""

    branch: FromQuery[str | None] = None
    snapshot: FromQuery[str | None] = None


class SchemaPropertyOutput(Struct, kw_only=True):
    """A property of a type, as people read it; `type` is written as in a schema, without `?`."""

    name: str
    type: str
    nullable: bool
    key: bool
    unique: bool
    indexed: bool
    description: str | None


class SchemaTypeOutput(Struct, kw_only=True):
    """A type with its properties and its number of entities; an interface has none.

    `src` and `dst` are the node types that an edge connects. `display` is the property that people
    know a node by, `word` how an edge is written in a query.
    """

    kind: str
    name: str
    description: str | None
    entity_count: WireUInt64
    key: list[str]
    interfaces: list[str]
    properties: list[SchemaPropertyOutput]
    constraints: list[str]
    src: str | None
    dst: str | None
    cardinality: str | None
    display: str | None
    word: str | None


class SchemaModelOutput(Struct, kw_only=True):
    """The types of a state: interfaces, nodes and edges, each by name."""

    graph_branch: str
    graph_commit_id: str
    types: list[SchemaTypeOutput]


class LintRequest(Struct, kw_only=True):
    """The text of queries, and the state whose schema they are for."""

    query: str
    branch: str | None = None
    snapshot: str | None = None


class LintedQueryOutput(Struct, kw_only=True):
    """A query of a text; `operation` is what it returns, reads and writes, if it is valid."""

    name: str
    mutation: bool
    status: str
    params: list[ParamDescriptor]
    operation: Any


class DiagnosticOutput(Struct, kw_only=True):
    """An error or a warning; `start` and `end` are offsets in characters of the text."""

    code: str
    severity: str
    message: str
    hint: str | None
    start: WireCount
    end: WireCount
    line: WireCount
    column: WireCount


class LintOutput(Struct, kw_only=True):
    """The queries of a text, and everything that is to be said about it, in its order."""

    status: str
    queries: list[LintedQueryOutput]
    diagnostics: list[DiagnosticOutput]


class CompleteRequest(Struct, kw_only=True):
    """An unfinished query and a position in it, in characters."""

    query: str
    position: WireCount
    branch: str | None = None
    snapshot: str | None = None


class CompletionItemOutput(Struct, kw_only=True):
    """A word that may stand at the position."""

    label: str
    kind: str
    detail: str | None
    about: str | None


class CompletionOutput(Struct, kw_only=True):
    """The words that may replace the text from `start` up to the position."""

    start: WireCount
    items: list[CompletionItemOutput]


class NeighboursQuery(EntityQuery, kw_only=True):
    """A node of a state; `limit` is for each edge type and direction."""

    limit: Annotated[int | None, Marker(ParameterLocation.QUERY, schema=WireCount)] = None


class NeighbourOutput(Struct, kw_only=True):
    """The node at the other end of an edge."""

    id: str
    label: str | None
    edge_id: str


class NeighbourGroupOutput(Struct, kw_only=True):
    """The edges of one type that leave a node (`out`) or arrive at it (`in`)."""

    edge: str
    direction: str
    type: str
    count: WireCount
    neighbours: list[NeighbourOutput]


class NeighboursOutput(Struct, kw_only=True):
    """The neighbours of a node, by edge type and direction; empty groups are left out."""

    graph_commit_id: str
    groups: list[NeighbourGroupOutput]


class SubgraphRequest(QueryRequest, kw_only=True):
    """A query whose pattern is to be drawn, with at most `limit` nodes."""

    limit: int | None = None


class SubgraphNodeOutput(Struct, kw_only=True):
    """A node of a subgraph."""

    type: str
    id: str
    label: str | None


class SubgraphEdgeOutput(Struct, kw_only=True):
    """What connects two nodes: an `edge`, one in either direction (`undirected`), or a `path`."""

    kind: str
    type: str
    id: str | None
    src_type: str
    src: str
    dst_type: str
    dst: str


class SubgraphOutput(Struct, kw_only=True):
    """The nodes and edges that a pattern matches; `truncated` if there are more."""

    graph_commit_id: str
    nodes: list[SubgraphNodeOutput]
    edges: list[SubgraphEdgeOutput]
    truncated: bool
