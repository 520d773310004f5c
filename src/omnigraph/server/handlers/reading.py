"""This module answers what is read."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from omnigraph.errors import InvalidInput
from omnigraph.server.readiness import not_ready
from omnigraph.server.request import RequestContext, json_response
from omnigraph.server.streaming import NDJSON, stream_ndjson, stream_response
from omnigraph.service import operations, wire

ARROW = "application/vnd.apache.arrow.stream"
_LINES = "application/x-ndjson"


async def health(_: RequestContext) -> Response:
    """Say that the server is ready, even while all threads are busy."""
    return json_response(msgspec.json.encode(operations.health()))


async def ready(asked: RequestContext) -> Response:
    """Report whether the storage of the graphs answers."""
    graphs = asked.service.registry.graphs
    count = await asked.front.readiness.count(graphs.values())
    if not count:
        raise not_ready("the storage of the graphs does not answer", count, len(graphs))
    refused = asked.front.readiness.revision_refused
    told = operations.ready(count, len(graphs), asked.service.revision, refused)
    return json_response(msgspec.json.encode(told))


async def graphs(asked: RequestContext) -> Response:
    """List graphs."""
    return await asked.answer(lambda: operations.list_graphs(asked.service, asked.actor))


async def snapshot(asked: RequestContext) -> Response:
    """Show a state."""
    visit, branch, at = asked.visit, asked.one("branch"), asked.one("snapshot")
    schema = asked.one("schema") == "true"
    return await asked.answer(lambda: operations.snapshot(visit, branch, at, schema=schema))


async def query(asked: RequestContext) -> Response:
    """Answer a query: as one object, or as the rows alone if the caller accepts only those."""
    request = await asked.json(wire.QueryRequest)
    try:
        return await answer_query(asked, request)
    except InvalidInput as error:
        if error.code != "query_not_a_read":
            raise
        place = f"/graphs/{asked.path('graph_id')}/mutate"
        facts = error.details
        raise InvalidInput(
            f"{error.message}; send it to {place}", code=error.code, **facts
        ) from error


async def answer_query(asked: RequestContext, request: wire.QueryRequest) -> Response:
    """Send the rows as JSON, as an Arrow stream or as lines, by what the caller accepts."""
    visit = asked.visit
    accepted = asked.request.headers.get("accept", "")
    if ARROW in accepted:
        return await _rows(asked, request, ARROW)
    if _LINES in accepted and "application/json" not in accepted:
        return await _rows(asked, request, NDJSON)
    return await asked.answer(lambda: operations.query(visit, request))


async def _rows(asked: RequestContext, request: wire.QueryRequest, media: str) -> Response:
    visit = asked.visit
    found = await asked.read(lambda: operations.stream(visit, request))
    headers = {
        "content-type": media,
        "Omnigraph-Query-Name": found.name,
        "Omnigraph-Graph-Commit": found.graph_commit_id,
        "Omnigraph-Row-Count": str(found.row_count),
    }
    make = found.arrow_chunks if media == ARROW else found.json_chunks
    return await stream_response(asked, make, headers)


async def read(asked: RequestContext) -> Response:
    """Answer a query as older clients ask it."""
    visit, request = asked.visit, await asked.json(wire.ReadRequest)
    return await asked.answer(lambda: operations.query(visit, request.modern()).legacy())


async def export(asked: RequestContext) -> Response:
    """Send every entity."""
    visit = asked.visit
    try:
        request = await asked.json(wire.ExportRequest)
    except InvalidInput as error:
        if error.code == "body_invalid":
            raise InvalidInput(error.message, code="export_invalid") from error
        raise
    return await stream_ndjson(asked, lambda: operations.export(visit, request))


async def queries(asked: RequestContext) -> Response:
    """List stored queries."""
    visit = asked.visit
    return await asked.answer(lambda: operations.list_queries(visit))


async def schema(asked: RequestContext) -> Response:
    """Show the schema."""
    visit = asked.visit
    return await asked.answer(lambda: operations.get_schema(visit))


async def branches(asked: RequestContext) -> Response:
    """List branches."""
    visit = asked.visit
    return await asked.answer(lambda: operations.list_branches(visit))


async def commits(asked: RequestContext) -> Response:
    """List commits."""
    visit, branch, author = asked.visit, asked.one("branch"), asked.one("actor")
    limit = asked.number("limit")
    return await asked.answer(lambda: operations.list_commits(visit, branch, limit, author))


async def commit(asked: RequestContext) -> Response:
    """Show a commit."""
    visit, commit_id = asked.visit, asked.path("commit_id")
    return await asked.answer(lambda: operations.get_commit(visit, commit_id))
