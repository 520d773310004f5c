"""This module reads: queries, snapshots, history, schema, exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec
from msgspec import UNSET

from omnigraph.commit.model import Commit, Snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.policy.permissions import PolicyAction
from omnigraph.query.limits import QueryLimit
from omnigraph.query.result import ResultStream
from omnigraph.service import wire
from omnigraph.service.auth import AuthMode
from omnigraph.service.operations.targets import branch_name, known_branch, state
from omnigraph.service.session import GraphService, GraphSession
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__

_ShapeT = TypeVar("_ShapeT")
_NumberT = TypeVar("_NumberT", int, float)
CELL_BYTES = 100
"""What a value of an answer takes, about, while it is made."""


def shaped(facts: object, shape: type[_ShapeT]) -> _ShapeT:
    """Return facts in their shape on the wire."""
    return msgspec.convert(facts, shape)


def health() -> wire.HealthOutput:
    """Say that the server is ready."""
    return wire.HealthOutput(
        status="ok", version=__version__, internal_schema_version=INTERNAL_SCHEMA_VERSION
    )


def ready(
    count: int, graphs: int, revision: int | None = None, refused: int | None = None
) -> wire.ReadyOutput:
    """Report of how many graphs the storage answers, and which revision of a cluster is served."""
    return wire.ReadyOutput(
        status="ready",
        graphs=graphs,
        graphs_ready=count,
        cluster_revision=revision,
        cluster_revision_refused=refused,
    )


def list_graphs(service: GraphService, actor: str | None) -> wire.GraphListResponse:
    """List the graphs that are served."""
    service.require(actor, PolicyAction.GRAPH_LIST)
    graphs = sorted(service.registry.graphs.items())
    return wire.GraphListResponse(
        graphs=[wire.GraphInfo(graph_id=name, uri=served.graph.uri) for name, served in graphs]
    )


def default_graph(service: GraphService, actor: str | None) -> wire.GraphInfo:
    """Return the only graph of a server; an open server has no callers to hide it from."""
    if service.state is not AuthMode.OPEN:
        service.require(actor, PolicyAction.GRAPH_LIST)
    if len(service.registry.graphs) != 1:
        message = f"the server has {len(service.registry.graphs)} graphs; name one of them"
        raise NotFound(message, code="graph_ambiguous")
    [(name, served)] = service.registry.graphs.items()
    return wire.GraphInfo(graph_id=name, uri=served.graph.uri)


def snapshot(
    visit: GraphSession, branch: str | None = None, at: str | None = None, *, schema: bool = False
) -> wire.SnapshotOutput:
    """Show which version of each dataset a state is made of, and under which schema if asked."""
    found = state(visit, branch, at)
    output = snapshot_output(found)
    if schema:
        output.schema_source = found.schema_source
    return output


def snapshot_output(found: Snapshot) -> wire.SnapshotOutput:
    """Return the wire form of a state."""
    datasets = []
    for key, entry in found.entries().items():
        kind, _, name = key.partition(":")
        path = f"{kind}s/{entry.type_id:016x}-{entry.incarnation:016x}"
        datasets.append(
            wire.SnapshotDatasetOutput(
                entity_kind=wire.EntityKindOutput(kind),
                type_name=name,
                dataset_path=path,
                published_dataset_version=entry.version,
                entity_count=entry.rows,
            )
        )
    return wire.SnapshotOutput(
        graph_branch=found.branch,
        graph_manifest_version=found.manifest_version,
        internal_schema_version=INTERNAL_SCHEMA_VERSION,
        datasets=datasets,
        graph_commit_id=found.commit_id,
    )


def query(visit: GraphSession, request: wire.QueryRequest) -> wire.ReadOutput:
    """Answer a query."""
    at = state(visit, request.branch, request.snapshot)
    found = visit.graph.query(
        request.query,
        request.params,
        name=request.name,
        at=at,
        timeout=least(request.timeout_seconds, visit.service.seconds),
        memory=least(request.memory_bytes, visit.service.memory),
    )
    check_answer(len(found), len(found.columns), visit.service.memory)
    branch = None if request.snapshot is not None else branch_name(request.branch)
    return wire.ReadOutput(
        query_name=found.name,
        target=wire.ReadTargetOutput(branch=branch, snapshot=request.snapshot),
        row_count=len(found),
        columns=found.columns or UNSET,
        rows=found.rows,
        graph_commit_id=found.graph_commit_id,
    )


def check_answer(rows: int, columns: int, memory: int | None) -> None:
    """Raise QueryLimit when rows do not fit one object, which is made before it is sent."""
    if memory is not None and rows * (columns + 1) * CELL_BYTES > memory:
        message = (
            f"the answer has {rows:,} rows, too many for one JSON object; ask for a page with "
            "`limit`, or for rows as they come with `Accept: application/x-ndjson`"
        )
        raise QueryLimit(message, code="query_memory", operator="Answer", limit=memory)


def stream(visit: GraphSession, request: wire.QueryRequest) -> ResultStream:
    """Answer a query whose rows are taken some at a time."""
    at = state(visit, request.branch, request.snapshot)
    return visit.graph.stream(
        request.query,
        request.params,
        name=request.name,
        at=at,
        timeout=least(request.timeout_seconds, visit.service.seconds),
        memory=least(request.memory_bytes, visit.service.memory),
    )


def least(asked: _NumberT | None, allowed: _NumberT | None) -> _NumberT | None:
    """Return what a caller asks for, as far as it is allowed."""
    known = [number for number in (asked, allowed) if number is not None]
    return min(known, default=None)


def get_schema(visit: GraphSession) -> wire.SchemaOutput:
    """Return the accepted schema."""
    visit.require(PolicyAction.READ)
    return wire.SchemaOutput(schema_source=visit.graph.schema.source)


def list_commits(
    visit: GraphSession,
    branch: str | None = None,
    limit: int | None = None,
    author: str | None = None,
) -> wire.CommitListOutput:
    """List the history of a branch, newest first; with `author`, the commits of that actor."""
    name = branch_name(branch)
    visit.require(PolicyAction.READ, name)
    commits = visit.graph.commits.list(name, limit=limit, actor=author)
    return wire.CommitListOutput(commits=[commit_output(commit) for commit in commits])


def get_commit(visit: GraphSession, commit_id: str) -> wire.CommitOutput:
    """Return one commit."""
    visit.require(PolicyAction.READ)
    return commit_output(visit.graph.commits.get(commit_id))


def commit_output(commit: Commit) -> wire.CommitOutput:
    """Return the wire form of a commit."""
    return shaped(commit.to_json(), wire.CommitOutput)


def export(visit: GraphSession, request: wire.ExportRequest) -> Iterator[str]:
    """Return every entity as one line of JSON, without the line end; types are known at once."""
    if request.snapshot is not None:
        at = state(visit, request.branch, request.snapshot)
        visit.require(PolicyAction.EXPORT, at.branch)
        return _named(visit.graph.export(at, types=request.type_names))
    name = branch_name(request.branch)
    visit.require(PolicyAction.EXPORT, name)
    return _named(visit.graph.export(known_branch(visit, name), types=request.type_names))


def _named(lines: Iterator[str]) -> Iterator[str]:
    """Go on with lines; a type there is none of is a wrong request, not something missing."""
    try:
        yield from lines
    except NotFound as error:
        if error.code != "unknown_type":
            raise
        raise InvalidInput(error.message, code=error.code, **error.details) from error
