"""Operations that read: queries, snapshots, entities, exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec import UNSET

from omnigraph.commit.model import Snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.policy.permissions import PolicyAction
from omnigraph.query.limits import QueryLimit
from omnigraph.query.result import ResultStream
from omnigraph.service import wire
from omnigraph.service.operations import tool_arguments
from omnigraph.service.operations.access import READ_STATE, branch_name, known_branch, state
from omnigraph.service.operations.answers import to_answer
from omnigraph.service.operations.links import Link, from_answer
from omnigraph.service.operations.operation import NDJSON, Access, Tool, operation
from omnigraph.service.operations.paths import JSON_ERRORS
from omnigraph.service.session import GraphSession
from omnigraph.version import INTERNAL_SCHEMA_VERSION

_NumberT = TypeVar("_NumberT", int, float)
CELL_BYTES = 100
"""Memory of one value of an answer while it is encoded, estimated."""
_EXAMPLE = {
    "query": "query people($min: I64) { match { $p: Person } where $p.age >= $min "
    "return { $p.name } }",
    "params": {"min": 30},
    "branch": "main",
}


@operation(
    name="cluster_query",
    route="POST /query",
    summary="Run a query",
    errors=(*JSON_ERRORS, 429, 503),
    access=READ_STATE,
    example=_EXAMPLE,
    handler="query",
    other_media=("application/vnd.apache.arrow.stream", NDJSON),
    links=tuple(
        Link(name, {wire.IF_GRAPH_COMMIT: from_answer("graph_commit_id")})
        for name in ("cluster_mutate_if_graph_commit", "cluster_invoke_query_if_graph_commit")
    ),
    tools=(
        Tool(
            name="query",
            description="Read: run a query in the query language.",
            arguments=tool_arguments.QueryArguments,
            adapter="query",
        ),
    ),
)
def query(session: GraphSession, request: wire.QueryRequest) -> wire.ReadOutput:
    """Run a query on a branch, or on the state that a commit ID, tag or time names.

    With `Accept: application/vnd.apache.arrow.stream` or `application/x-ndjson` the rows are
    streamed, which has no limit of size.
    """
    result = session.graph.query(request.query, request.params, **_options(session, request))
    check_answer(len(result), len(result.columns), session.service.memory)
    branch = None if request.snapshot is not None else branch_name(request.branch)
    return wire.ReadOutput(
        query_name=result.name,
        target=wire.ReadTargetOutput(branch=branch, snapshot=request.snapshot),
        row_count=len(result),
        columns=result.columns or UNSET,
        rows=result.rows,
        graph_commit_id=result.graph_commit_id,
    )


def check_answer(rows: int, columns: int, memory: int | None) -> None:
    """Raise QueryLimit when rows do not fit one JSON object, which is encoded before it is sent."""
    if memory is not None and rows * (columns + 1) * CELL_BYTES > memory:
        message = (
            f"the answer has {rows:,} rows, too many for one JSON object; read a page with "
            "`limit`, or stream the rows with `Accept: application/x-ndjson`"
        )
        raise QueryLimit(message, code="query_memory", operator="Answer", limit=memory)


@operation(
    name="cluster_read",
    route="POST /read",
    summary="Run a query",
    errors=(*JSON_ERRORS, 429, 503),
    access=READ_STATE,
    successor="query",
    tools=(
        Tool(
            name="read",
            description="The same as `query`.",
            arguments=tool_arguments.QueryArguments,
            adapter="query",
        ),
    ),
)
def read(session: GraphSession, request: wire.ReadRequest) -> wire.LegacyReadOutput:
    """Run a query, with the names of members of older clients."""
    return query(session, request.modern()).legacy()


def stream(session: GraphSession, request: wire.QueryRequest) -> ResultStream:
    """Run a query whose rows are read in batches; the check is that of `query`."""
    query.access.check(session, request)
    return session.graph.stream(request.query, request.params, **_options(session, request))


def _options(
    session: GraphSession, request: wire.QueryRequest | wire.ExplainRequest
) -> dict[str, Any]:
    """Return which state a query reads, and its limits: at most those of the server."""
    return {
        "name": request.name,
        "at": state(session, request.branch, request.snapshot),
        "timeout": least(request.timeout_seconds, session.service.seconds),
        "memory": least(request.memory_bytes, session.service.memory),
    }


def least(requested: _NumberT | None, allowed: _NumberT | None) -> _NumberT | None:
    """Return the limit a caller requests, at most the limit of the server."""
    limits = [number for number in (requested, allowed) if number is not None]
    return min(limits, default=None)


@operation(
    name="explain",
    route="POST /explain",
    summary="Show the plan of a query",
    errors=(*JSON_ERRORS, 429, 503),
    access=READ_STATE,
    extension=True,
    example=_EXAMPLE,
    tools=(
        Tool(
            name="explain",
            description="Show the plan of a query, step by step, and what it costs.",
            arguments=tool_arguments.ExplainArguments,
        ),
    ),
)
def explain(session: GraphSession, request: wire.ExplainRequest) -> wire.ExplainOutput:
    """Return the operators of a query; with `analyze` run it, and return rows and times."""
    options = _options(session, request)
    explanation = session.graph.explain(
        request.query, request.params, analyze=request.analyze, **options
    )
    return to_answer(explanation.to_json(), wire.ExplainOutput)


@operation(
    name="cluster_getSnapshot",
    route="GET /snapshot",
    tag="snapshots",
    summary="List the dataset versions of a state",
    access=READ_STATE,
    example={"branch": "main"},
    tools=(
        Tool(
            name="snapshot",
            description="List the types of a branch with their number of entities and versions.",
            arguments=tool_arguments.BranchArguments,
            pages="datasets",
        ),
    ),
)
def snapshot(session: GraphSession, request: wire.SnapshotQuery) -> wire.SnapshotOutput:
    """Return the version of each dataset that a state consists of.

    With `schema=true` the answer has the text of the schema, too.
    """
    resolved = state(session, request.branch, request.snapshot)
    output = snapshot_output(resolved)
    if request.schema:
        output.schema_source = resolved.schema_source
    return output


def snapshot_output(resolved: Snapshot) -> wire.SnapshotOutput:
    """Return the wire form of a state."""
    datasets = []
    for key, entry in resolved.entries().items():
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
        graph_branch=resolved.branch,
        graph_manifest_version=resolved.manifest_version,
        internal_schema_version=INTERNAL_SCHEMA_VERSION,
        datasets=datasets,
        graph_commit_id=resolved.commit_id,
    )


@operation(
    name="getEntity",
    route="GET /entity",
    summary="Return one entity",
    access=READ_STATE,
    extension=True,
    example={"type": "Person", "id": "ada"},
)
def entity(session: GraphSession, request: wire.EntityQuery) -> wire.EntityOutput:
    """Return a node or an edge of a state by its ID; `entity` is null when it does not exist."""
    at = state(session, request.branch, request.snapshot)
    return wire.EntityOutput(entity=session.graph.entity_at(request.type, request.id, at))


def _check_export(session: GraphSession, request: wire.ExportRequest) -> None:
    if request.snapshot is not None:
        at = state(session, request.branch, request.snapshot)
        session.require(PolicyAction.EXPORT, at.branch)
    else:
        session.require(PolicyAction.EXPORT, branch_name(request.branch))


@operation(
    name="cluster_export",
    route="POST /export",
    summary="Export every entity as one line of JSON",
    errors=(400, 404, 408, 409, 413, 415, 503),
    access=Access((PolicyAction.EXPORT,), _check_export, "on the branch"),
    example={"branch": "main", "type_names": ["Person"]},
    invalid_body_code="export_invalid",
)
def export(session: GraphSession, request: wire.ExportRequest) -> Iterator[str]:
    """Return every entity of a state, or of some of its types, as lines that `load` reads."""
    if request.snapshot is not None:
        at = state(session, request.branch, request.snapshot)
        return _checked_types(session.graph.export(at, types=request.type_names))
    name = known_branch(session, branch_name(request.branch))
    return _checked_types(session.graph.export(name, types=request.type_names))


def _checked_types(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines; an unknown type is an invalid request, not a missing resource."""
    try:
        yield from lines
    except NotFound as error:
        if error.code != "unknown_type":
            raise
        raise InvalidInput(error.message, code=error.code, **error.details) from error
