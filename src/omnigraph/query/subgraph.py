"""The part of a graph that the pattern of a query matches: nodes, and edges between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from omnigraph.catalog import Catalog
from omnigraph.commit.model import CommitId, Snapshot
from omnigraph.errors import InvalidInput
from omnigraph.lang import Code, QueryError, print_queries, read_queries, report_for_text
from omnigraph.lang import query_tree as qt
from omnigraph.lang.source import Name
from omnigraph.notebook.results import subgraph_html
from omnigraph.plan import ReadPlan, compile_query
from omnigraph.plan.expressions import EntityKind
from omnigraph.plan.operators import PlanOperator, Union, operator_inputs, walk_operators
from omnigraph.query.graph_view import GraphView
from omnigraph.query.neighbours import RunQuery, display_property, short_label
from omnigraph.types import Scalar

MAX_NODES = 2000
"""Nodes of a subgraph, at most and by default."""
_MAX_ROWS = 20_000
_Key = tuple[str, str]
_Bindings = Mapping[str, tuple[EntityKind, str]]
"""Variables with their kinds and types."""


class LinkKind(StrEnum):
    """What a traversal found: an edge in its direction, one in either, or a path of several."""

    EDGE = "edge"
    UNDIRECTED = "undirected"
    PATH = "path"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgraphNode:
    """A node of a subgraph; `label` is the text that people know it by."""

    type: str
    id: str
    label: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"type": self.type, "id": self.id, "label": self.label}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgraphEdge:
    """What connects two nodes of a subgraph; `id` is known where the query names the edge."""

    kind: LinkKind
    type: str
    id: str | None
    src_type: str
    src: str
    dst_type: str
    dst: str

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        members = ("type", "id", "src_type", "src", "dst_type", "dst")
        return {"kind": str(self.kind), **{name: getattr(self, name) for name in members}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph:
    """Nodes and edges of one state; `truncated` if the pattern matches more."""

    commit_id: CommitId
    nodes: tuple[SubgraphNode, ...]
    edges: tuple[SubgraphEdge, ...]
    truncated: bool

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "graph_commit_id": self.commit_id,
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [edge.to_json() for edge in self.edges],
            "truncated": self.truncated,
        }

    def view(self) -> GraphView:
        """Return a view for notebooks, which shows it on a canvas where it can."""
        return GraphView(self.to_json())

    def _repr_html_(self) -> str:
        return subgraph_html(self.to_json())


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The variables of a match with their types, and the traversals between them."""

    nodes: Mapping[str, str]
    edges: tuple[str, ...]
    traversals: tuple[qt.TraversalClause, ...]


def read_subgraph(
    snapshot: Snapshot, source: str, name: str | None, limit: int | None, run: RunQuery
) -> Subgraph:
    """Return what the pattern of a query matches, whatever the query returns of it.

    `run` runs a query on the same state. Nodes inside of `not` and `exists` are not part of it.
    """
    limit = MAX_NODES if limit is None else limit
    if not 1 <= limit <= MAX_NODES:
        message = f"`limit` is between 1 and {MAX_NODES:,}, not {limit}"
        raise InvalidInput(message, code="limit_invalid", limit=limit)
    plan = compile_query(snapshot.catalog, source, name)
    if not isinstance(plan, ReadPlan):
        raise InvalidInput("a mutation matches no subgraph", code="not_a_read_query")
    found = _Found(snapshot, limit)
    for query, bindings in _typed_queries(_declaration(source, plan.name), plan.root):
        pattern = _pattern(query, bindings, snapshot.catalog)
        if pattern.nodes:
            found.add(pattern, run(_text(query, pattern, snapshot.catalog), {}).rows)
    return found.subgraph()


def _declaration(source: str, name: str) -> qt.QueryDecl:
    report = report_for_text(source, "<query>", Code.QUERY_UNREADABLE)
    tree = read_queries(report)
    report.raise_errors(QueryError)
    return next(query for query in tree.queries if query.name.text == name)


def _typed_queries(
    query: qt.QueryDecl, root: PlanOperator
) -> Iterator[tuple[qt.QueryDecl, _Bindings]]:
    """Yield a query for each choice of types of its interfaces, with what its variables are."""
    inputs = next((o.inputs for _, o in walk_operators(root) if isinstance(o, Union)), (root,))
    for source in inputs:
        bindings = _bindings(source)
        yield _with_types(query, bindings), bindings


def _with_types(query: qt.QueryDecl, bindings: _Bindings) -> qt.QueryDecl:
    """Return a query that binds its variables to the types of a choice."""
    assert isinstance(query.body, qt.ReadBody), "it was compiled as a read"
    clauses = (
        replace(clause, type_name=replace(clause.type_name, text=bindings[clause.variable.name][1]))
        if isinstance(clause, qt.BindingClause) and clause.variable.name in bindings
        else clause
        for clause in query.body.clauses
    )
    return replace(query, body=replace(query.body, clauses=tuple(clauses)))


def _bindings(operator: PlanOperator) -> _Bindings:
    """Return the variables that a plan binds, with their kinds and types."""
    found: dict[str, tuple[EntityKind, str]] = {}
    for source in operator_inputs(operator):
        found |= _bindings(source)
    for binding in getattr(operator, "variables", {}).values():
        found[binding.name] = binding.kind, binding.type_name
    return found


def _pattern(query: qt.QueryDecl, bindings: _Bindings, catalog: Catalog) -> _Pattern:
    assert isinstance(query.body, qt.ReadBody), "it was compiled as a read"
    clauses = list(_visible(query.body.clauses))
    traversals = tuple(c for c in clauses if isinstance(c, qt.TraversalClause))
    names = [c.variable.name for c in clauses if isinstance(c, qt.BindingClause)]
    names += [end.name for c in traversals for end in (c.src, c.dst)]
    kinds = {name: bindings[name] for name in names if name in bindings}
    nodes = {
        name: type_name
        for name, (kind, type_name) in kinds.items()
        if kind is EntityKind.NODE and type_name in catalog.nodes
    }
    edges = [c.edge_variable.name for c in traversals if c.edge_variable is not None]
    named = tuple(dict.fromkeys(name for name in edges if name in bindings))
    return _Pattern(nodes, named, traversals)


def _visible(clauses: tuple[qt.MatchClause, ...]) -> Iterator[qt.MatchClause]:
    """Yield the clauses whose variables the rows have."""
    for clause in clauses:
        if isinstance(clause, qt.OptionalClause):
            yield from _visible(clause.clauses)
        elif not isinstance(clause, qt.NegationClause | qt.ExistsClause):
            yield clause


def _text(query: qt.QueryDecl, pattern: _Pattern, catalog: Catalog) -> str:
    """Return the query with the IDs and labels of its variables as its result."""
    assert isinstance(query.body, qt.ReadBody), "it was compiled as a read"
    projections = []
    for index, (variable, type_name) in enumerate(pattern.nodes.items()):
        projections.append(_projection(variable, "id", f"n{index}"))
        display = display_property(catalog.nodes[type_name])
        if display is not None:
            projections.append(_projection(variable, display, f"l{index}"))
    for index, variable in enumerate(pattern.edges):
        projections.append(_projection(variable, "id", f"e{index}"))
    body = replace(
        query.body,
        projections=tuple(projections),
        distinct=True,
        orderings=(),
        limit=qt.Literal(scalar=Scalar.I64, value=_MAX_ROWS),
        offset=None,
    )
    named = replace(query, body=body, name=replace(query.name, text="subgraph"))
    return print_queries(qt.QueryTree((replace(named, is_anonymous=False),)))


def _projection(variable: str, property_: str, alias: str) -> qt.Projection:
    access = qt.PropertyAccess(variable=qt.Variable(name=variable), property=Name(property_))
    return qt.Projection(expr=access, alias=Name(alias))


class _Found:
    """Nodes and edges of rows, no more nodes than a limit."""

    def __init__(self, snapshot: Snapshot, limit: int) -> None:
        self.snapshot = snapshot
        self.limit = limit
        self.nodes: dict[_Key, SubgraphNode] = {}
        self.edges: dict[tuple[Any, ...], SubgraphEdge] = {}
        self.truncated = False

    def add(self, pattern: _Pattern, rows: list[dict[str, Any]]) -> None:
        """Add what the rows of a pattern have."""
        self.truncated |= len(rows) >= _MAX_ROWS
        for row in rows:
            for index, type_name in enumerate(pattern.nodes.values()):
                self._add_node(type_name, row[f"n{index}"], row.get(f"l{index}"))
            for edge in _edges(self.snapshot.catalog, pattern, row):
                ends = {(edge.src_type, edge.src), (edge.dst_type, edge.dst)}
                if ends <= self.nodes.keys():
                    self.edges[edge.type, edge.id, edge.src, edge.dst, edge.kind] = edge

    def _add_node(self, type_name: str, id_: str | None, label: str | None) -> None:
        if id_ is None or (type_name, id_) in self.nodes:
            return
        if len(self.nodes) >= self.limit:
            self.truncated = True
            return
        node = SubgraphNode(type=type_name, id=id_, label=short_label(label))
        self.nodes[type_name, id_] = node

    def subgraph(self) -> Subgraph:
        """Return all of it."""
        return Subgraph(
            commit_id=self.snapshot.commit_id,
            nodes=tuple(self.nodes.values()),
            edges=tuple(self.edges.values()),
            truncated=self.truncated,
        )


def _edges(catalog: Catalog, pattern: _Pattern, row: dict[str, Any]) -> Iterator[SubgraphEdge]:
    """Yield what the traversals of a row connect; those of anonymous or missing nodes are not."""
    places = {name: index for index, name in enumerate(pattern.nodes)}
    for clause in pattern.traversals:
        type_ = catalog.edge(clause.edge.text)
        ends = [clause.src.name, clause.dst.name]
        if type_ is None or any(end not in places for end in ends):
            continue
        if pattern.nodes[ends[0]] != type_.src:
            ends.reverse()
        src, dst = (row[f"n{places[end]}"] for end in ends)
        if src is None or dst is None:
            continue
        named = None if clause.edge_variable is None else clause.edge_variable.name
        yield SubgraphEdge(
            kind=_kind(clause),
            type=type_.name,
            id=row[f"e{pattern.edges.index(named)}"] if named in pattern.edges else None,
            src_type=pattern.nodes[ends[0]],
            src=src,
            dst_type=pattern.nodes[ends[1]],
            dst=dst,
        )


def _kind(clause: qt.TraversalClause) -> LinkKind:
    if clause.hops is not None and (clause.hops.minimum, clause.hops.maximum) != (1, 1):
        return LinkKind.PATH
    return LinkKind.UNDIRECTED if clause.undirected else LinkKind.EDGE
