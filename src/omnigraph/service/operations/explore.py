"""Operations for exploring a graph: schema as data, lint, completion, neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from omnigraph.catalog import Annotation, EdgeType, InterfaceType, NodeType, Property
from omnigraph.catalog.model import (
    Definition,
    Index,
    Unique,
    constraint_text,
    definition_kind,
    type_constraints,
)
from omnigraph.commit.model import Snapshot
from omnigraph.errors import InvalidInput
from omnigraph.lang import Code, Diagnostic, Severity, report_for_text
from omnigraph.plan import QueryLint, lint_queries
from omnigraph.plan.completion import complete_query
from omnigraph.query.neighbours import display_property, edge_word
from omnigraph.service import wire
from omnigraph.service.operations.access import READ_STATE, state
from omnigraph.service.operations.answers import to_answer
from omnigraph.service.operations.operation import operation
from omnigraph.service.operations.paths import JSON_ERRORS
from omnigraph.service.operations.queries import least
from omnigraph.service.session import GraphSession

_FILE = "<query>"


@operation(
    name="getSchemaModel",
    route="GET /schema/model",
    tag="schema",
    summary="Return the types of a state with their properties and counts",
    access=READ_STATE,
    extension=True,
    example={"branch": "main"},
)
def schema_model(session: GraphSession, request: wire.StateQuery) -> wire.SchemaModelOutput:
    """Return the schema of a state as data: for diagrams, forms and generated code."""
    at = state(session, request.branch, request.snapshot)
    counts = {key: entry.rows for key, entry in at.entries().items()}
    return wire.SchemaModelOutput(
        graph_branch=at.branch,
        graph_commit_id=at.commit_id,
        types=[_type_output(type_, counts) for type_ in at.catalog.definitions()],
    )


def _type_output(type_: Definition, counts: Mapping[str, int]) -> wire.SchemaTypeOutput:
    kind = definition_kind(type_)
    edge = type_ if isinstance(type_, EdgeType) else None
    node = type_ if isinstance(type_, NodeType) else None
    return wire.SchemaTypeOutput(
        kind=str(kind),
        name=type_.name,
        description=_description(() if isinstance(type_, InterfaceType) else type_.annotations),
        entity_count=counts.get(f"{kind}:{type_.name}", 0),
        key=[] if isinstance(type_, InterfaceType) else list(type_.key),
        interfaces=list(node.interfaces) if node else [],
        properties=[_property_output(type_, p) for p in type_.properties.values()],
        constraints=[constraint_text(c) for c in type_constraints(type_)],
        src=edge.src if edge else None,
        dst=edge.dst if edge else None,
        cardinality=str(edge.cardinality) if edge else None,
        display=display_property(node) if node else None,
        word=edge_word(edge) if edge else None,
    )


def _property_output(type_: Definition, property_: Property) -> wire.SchemaPropertyOutput:
    constraints = type_constraints(type_)
    name = property_.name
    return wire.SchemaPropertyOutput(
        name=name,
        type=property_.type.base_text,
        nullable=property_.type.nullable,
        key=not isinstance(type_, InterfaceType) and name in type_.key,
        unique=any(isinstance(c, Unique) and c.columns == (name,) for c in constraints),
        indexed=any(isinstance(c, Index) and name in c.columns for c in constraints),
        description=_description(property_.annotations),
    )


def _description(annotations: Iterable[Annotation]) -> str | None:
    return next((a.value for a in annotations if a.name == "description"), None)


@operation(
    name="lintQueries",
    route="POST /lint",
    summary="Check the text of queries against the schema of a state",
    errors=(*JSON_ERRORS, 503),
    access=READ_STATE,
    extension=True,
    example={"query": "query people() { match { $p: Person } return { $p.nam } }"},
)
def lint(session: GraphSession, request: wire.LintRequest) -> wire.LintOutput:
    """Return every error and warning with its place and a hint, and the queries of the text.

    Mistakes of the text are part of the answer, which has status 200.
    """
    at = state(session, request.branch, request.snapshot)
    report = report_for_text(request.query, _FILE, Code.QUERY_UNREADABLE)
    [linted] = lint_queries([report], at.catalog)
    # What a file of queries never updates says nothing about one that is being written.
    found = [d for d in linted.diagnostics if d.severity is not Severity.INFO]
    return wire.LintOutput(
        status="ok" if linted.ok else "error",
        queries=[_query_output(query) for query in linted.results],
        diagnostics=sorted((_diagnostic_output(d) for d in found), key=lambda d: d.start),
    )


def _query_output(query: QueryLint) -> wire.LintedQueryOutput:
    parameters = [] if query.plan is None else [p.to_json() for p in query.plan.parameters]
    return wire.LintedQueryOutput(
        name=query.name,
        mutation=query.is_mutation,
        status="error" if query.errors else "ok",
        params=msgspec.convert(parameters, list[wire.ParamDescriptor]),
        operation=query.operation,
    )


def _diagnostic_output(diagnostic: Diagnostic) -> wire.DiagnosticOutput:
    facts: dict[str, Any] = diagnostic.to_json()
    place = facts.get("span", {})
    return wire.DiagnosticOutput(
        **{name: facts[name] for name in ("code", "severity", "message", "hint")},
        **{name: place.get(name, 0) for name in ("start", "end")},
        **{name: place.get(name, 1) for name in ("line", "column")},
    )


@operation(
    name="completeQuery",
    route="POST /complete",
    summary="List the words that may stand at a position of a query",
    errors=(*JSON_ERRORS, 503),
    access=READ_STATE,
    extension=True,
    example={"query": "match { $p: Person } return { $p.", "position": 33},
)
def complete(session: GraphSession, request: wire.CompleteRequest) -> wire.CompletionOutput:
    """Return types, edges, properties, variables, functions and keywords, for editors.

    The text may be unfinished or invalid.
    """
    at: Snapshot = state(session, request.branch, request.snapshot)
    if request.position > len(request.query):
        message = (
            f"`position` is {request.position}, beyond the {len(request.query)} characters of "
            "`query`"
        )
        raise InvalidInput(message, code="position_invalid", position=request.position)
    completion = complete_query(request.query, request.position, at.catalog)
    return to_answer(completion.to_json(), wire.CompletionOutput)


@operation(
    name="getNeighbours",
    route="GET /neighbours",
    summary="List the neighbours of a node by edge type and direction",
    access=READ_STATE,
    extension=True,
    example={"type": "Person", "id": "ada", "limit": 20},
)
def neighbours(session: GraphSession, request: wire.NeighboursQuery) -> wire.NeighboursOutput:
    """Return for each edge type and direction the number of edges, and the nodes at their ends.

    A group has at most `limit` neighbours by ID, by default 1,000.
    """
    at = state(session, request.branch, request.snapshot)
    found = session.graph.neighbours(request.type, request.id, at, limit=request.limit)
    return to_answer(found.to_json(), wire.NeighboursOutput)


@operation(
    name="getSubgraph",
    route="POST /subgraph",
    summary="Return the nodes and edges that the pattern of a query matches",
    errors=(*JSON_ERRORS, 429, 503),
    access=READ_STATE,
    extension=True,
    example={"query": "match { $a: Person  $a knows $b } return { $a.name }", "limit": 500},
)
def subgraph(session: GraphSession, request: wire.SubgraphRequest) -> wire.SubgraphOutput:
    """Return what a query is about as a graph, for a drawing.

    What the query returns, its order and its limit do not matter; `limit` is the number of nodes,
    by default and at most 2,000.
    """
    found = session.graph.subgraph(
        request.query,
        request.params,
        name=request.name,
        at=state(session, request.branch, request.snapshot),
        limit=request.limit,
        timeout=least(request.timeout_seconds, session.service.seconds),
        memory=least(request.memory_bytes, session.service.memory),
    )
    return to_answer(found.to_json(), wire.SubgraphOutput)
