"""This module answers what changes something."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import Response

from omnigraph.server.handlers.reading import answer_query
from omnigraph.server.request import (
    RequestContext,
    content_type,
    expected_commit,
    read_body,
    refuse_condition,
    unsupported_media_type,
)
from omnigraph.server.settings import MAX_LOAD_BYTES
from omnigraph.service import operations, wire
from omnigraph.service.wire.decode import decode_optional

_LINES = "application/x-ndjson"


async def mutate(asked: RequestContext) -> Response:
    """Run a mutation."""
    refuse_condition(asked.request, f"{_graph(asked)}/mutate/if-graph-commit")
    visit, request = asked.visit, await asked.json(wire.ChangeRequest)
    return await asked.change(lambda: operations.mutate(visit, request))


async def mutate_if(asked: RequestContext) -> Response:
    """Run a mutation if the branch is where the caller thinks."""
    visit, commit_id = asked.visit, expected_commit(asked.request)
    request = await asked.json(wire.ChangeRequest)
    return await asked.change(lambda: operations.mutate(visit, request, commit_id))


async def invoke(asked: RequestContext) -> Response:
    """Run a stored query."""
    name = asked.path("name")
    refuse_condition(asked.request, f"{_graph(asked)}/queries/{name}/if-graph-commit")
    return await _invoked(asked, name, None)


async def invoke_if(asked: RequestContext) -> Response:
    """Run a stored mutation if the branch is where the caller thinks."""
    return await _invoked(asked, asked.path("name"), expected_commit(asked.request))


async def _invoked(asked: RequestContext, name: str, commit_id: str | None) -> Response:
    visit = asked.visit
    request = decode_optional(await asked.body(), wire.InvokeStoredQueryRequest)
    invocation = operations.Invocation(name, request, commit_id)
    resolved = await asked.call(lambda: operations.resolve(visit, invocation))
    if isinstance(resolved, wire.QueryRequest):
        return await answer_query(asked, resolved)
    return await asked.change(lambda: operations.mutate(visit, resolved, commit_id))


async def load(asked: RequestContext) -> Response:
    """Load records."""
    visit, request = asked.visit, await asked.json(wire.IngestRequest, MAX_LOAD_BYTES)
    return await asked.change(lambda: operations.load(visit, request))


async def load_lines(asked: RequestContext) -> Response:
    """Load lines; whether the caller may is asked before they are read."""
    visit = asked.visit
    plain = operations.LoadRequest.of(asked.one("branch"), asked.one("from"), asked.one("mode"))
    partial = asked.one("partial") == "true"
    request = replace(
        plain,
        message=asked.one("message"),
        partial=partial,
        vectors_from=asked.one("vectors_from"),
    )
    await asked.call(lambda: operations.authorise_load(visit, request))
    if content_type(asked.request) != _LINES:
        raise unsupported_media_type(_LINES)
    seconds = asked.front.limits.body
    data = await read_body(asked.request, MAX_LOAD_BYTES, seconds, "graph_batch_request_bytes")
    return await asked.change(lambda: operations.load_lines(visit, request, data))


async def apply_schema(asked: RequestContext) -> Response:
    """Change the schema."""
    visit, request = asked.visit, await asked.json(wire.SchemaApplyRequest)
    return await asked.change(lambda: operations.apply_schema(visit, request))


async def create_branch(asked: RequestContext) -> Response:
    """Make a branch."""
    visit, request = asked.visit, await asked.json(wire.BranchCreateRequest)
    return await asked.change(lambda: operations.create_branch(visit, request))


async def delete_branch(asked: RequestContext) -> Response:
    """Delete a branch."""
    visit, name = asked.visit, asked.path("branch")
    return await asked.change(lambda: operations.delete_branch(visit, name))


async def merge_branches(asked: RequestContext) -> Response:
    """Merge a branch."""
    visit, request = asked.visit, await asked.json(wire.BranchMergeRequest)
    return await asked.change(lambda: operations.merge_branches(visit, request))


def _graph(asked: RequestContext) -> str:
    return f"/graphs/{asked.path('graph_id')}"
