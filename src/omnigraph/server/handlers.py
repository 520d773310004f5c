"""Handlers of the routes that the generic one does not fit, by the name operations declare."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import msgspec
from starlette.responses import Response

from omnigraph.errors import InvalidInput
from omnigraph.server.readiness import not_ready
from omnigraph.server.request import (
    RequestContext,
    content_type,
    json_response,
    read_body,
    unsupported_media_type,
)
from omnigraph.server.responses import (
    BlobDelivery,
    BlobRequestHeaders,
    blob_identity_headers,
    error_response,
    plan_delivery,
)
from omnigraph.server.routes import (
    HttpRoute,
    OperationHandler,
    check_condition,
    handle_operation,
    read_parameters,
    read_request,
    to_request,
)
from omnigraph.server.settings import MAX_LOAD_BYTES
from omnigraph.server.sign_in import handle_session, handle_sign_in, handle_sign_out
from omnigraph.server.streaming import NDJSON, stream_response
from omnigraph.service import wire
from omnigraph.service.operations import AnyOperation
from omnigraph.service.operations.blobs import OpenedBlob
from omnigraph.service.operations.mutations import mutate, mutate_if
from omnigraph.service.operations.queries import query, stream
from omnigraph.service.operations.server import ready_output
from omnigraph.service.operations.stored import resolve

ARROW = "application/vnd.apache.arrow.stream"
_LINES = "application/x-ndjson"
_BYTES = {"Content-Type": "application/octet-stream"}


async def handle_ready(_: AnyOperation, context: RequestContext) -> Response:
    """Probe the storage of all graphs."""
    graphs = context.service.registry.graphs
    count = await context.app.readiness.count(graphs.values())
    if not count:
        raise not_ready("the storage of the graphs does not answer", count, len(graphs))
    refused = context.app.readiness.revision_refused
    answer = ready_output(count, len(graphs), context.service.revision, refused)
    return json_response(msgspec.json.encode(answer))


async def handle_graph_ready(_: AnyOperation, context: RequestContext) -> Response:
    """Probe the storage of one graph."""
    registered = context.session.registered
    if not await context.app.readiness.is_ready(registered):
        raise not_ready(f"the storage of graph '{registered.id}' does not answer", 0, 1)
    return json_response(msgspec.json.encode(ready_output(1, 1)))


async def handle_query(_: AnyOperation, context: RequestContext) -> Response:
    """Answer with one object, or with the rows alone if the caller accepts only those."""
    request = await context.json(wire.QueryRequest)
    try:
        return await _answer_query(context, request)
    except InvalidInput as error:
        if error.code != "query_not_a_read":
            raise
        path = f"/graphs/{context.path('graph_id')}/mutate"
        message = f"{error.message}; send it to {path}"
        raise InvalidInput(message, code=error.code, **error.details) from error


async def _answer_query(context: RequestContext, request: wire.QueryRequest) -> Response:
    """Send the rows as JSON, as an Arrow stream or as lines, by what the caller accepts."""
    session = context.session
    accepted = context.request.headers.get("accept", "")
    if ARROW in accepted:
        return await _stream_rows(context, request, ARROW)
    if _LINES in accepted and "application/json" not in accepted:
        return await _stream_rows(context, request, NDJSON)
    return await context.answer(lambda: query(session, request))


async def _stream_rows(context: RequestContext, request: wire.QueryRequest, media: str) -> Response:
    session = context.session
    rows = await context.run_cancellable_read(lambda: stream(session, request))
    headers = {
        "content-type": media,
        "Omnigraph-Query-Name": rows.name,
        "Omnigraph-Graph-Commit": rows.graph_commit_id,
        "Omnigraph-Row-Count": str(rows.row_count),
    }
    make = rows.arrow_chunks if media == ARROW else rows.json_chunks
    return await stream_response(context, make, headers)


async def handle_invoke(operation: AnyOperation, context: RequestContext) -> Response:
    """Run a stored query as a read, or a stored mutation as a write."""
    check_condition(operation, context)
    session, request = context.session, await read_request(operation, context)
    resolved = await context.run_read(lambda: resolve(session, request))
    if isinstance(resolved, wire.QueryRequest):
        return await _answer_query(context, resolved)
    if isinstance(request, wire.ConditionalStoredQueryQuery):
        change = wire.ConditionalChangeQuery(if_commit=request.if_commit, body=resolved)
        return await context.run_write(lambda: mutate_if(session, change))
    return await context.run_write(lambda: mutate(session, resolved))


async def handle_load_lines(operation: AnyOperation, context: RequestContext) -> Response:
    """Check the permission before the body is read, which may be large."""
    session = context.session
    request: wire.LoadLinesQuery = to_request(
        operation, {**read_parameters(operation, context), "data": b""}
    )
    await context.run_read(lambda: operation.access.check(session, request))
    if content_type(context.request) != _LINES:
        raise unsupported_media_type(_LINES)
    seconds = context.app.limits.body
    request.data = await read_body(
        context.request, MAX_LOAD_BYTES, seconds, "graph_batch_request_bytes"
    )
    return await context.run_write(lambda: operation(session, request))


async def handle_blob(operation: AnyOperation, context: RequestContext) -> Response:
    """Send a blob or a range of it, its headers alone for HEAD, or redirect to its URI."""
    session, has_body = context.session, operation.method != "HEAD"
    request = to_request(operation, read_parameters(operation, context))
    opened: OpenedBlob = await context.run_cancellable_read(lambda: operation(session, request))
    delivery = _plan_delivery(
        opened, BlobRequestHeaders.of(context.request.headers, ranges=has_body)
    )
    if isinstance(delivery, Response):
        return delivery
    headers = {**delivery.headers, **(_BYTES if delivery.status in (200, 206) else {})}
    blob, (start, end) = opened.blob, delivery.range
    if start == end or not has_body:
        return Response(status_code=delivery.status, headers=headers)
    return await stream_response(context, lambda: blob.chunks(start, end), headers, delivery.status)


def _plan_delivery(opened: OpenedBlob, headers: BlobRequestHeaders) -> BlobDelivery | Response:
    """Decide how to deliver a blob; an error response has its identity headers, too."""
    snapshot = {"Omnigraph-Snapshot-Id": opened.commit_id}
    try:
        delivery = plan_delivery(opened.blob, headers)
    except InvalidInput as error:
        return error_response(error, headers={**snapshot, **blob_identity_headers(opened.blob)})
    return replace(delivery, headers={**snapshot, **delivery.headers})


async def handle_running(operation: AnyOperation, context: RequestContext) -> Response:
    """Answer also while all threads for reads are busy: that is when it is needed."""
    session, request = context.session, await read_request(operation, context)
    answer = await asyncio.to_thread(operation, session, request)
    return json_response(msgspec.json.encode(answer))


HANDLERS: Mapping[str | None, OperationHandler] = {
    None: handle_operation,
    "ready": handle_ready,
    "graph_ready": handle_graph_ready,
    "query": handle_query,
    "invoke": handle_invoke,
    "load_lines": handle_load_lines,
    "blob": handle_blob,
    "running": handle_running,
    "sign_in": handle_sign_in,
    "session": handle_session,
    "sign_out": handle_sign_out,
}


def operation_routes(operations: Sequence[AnyOperation]) -> list[HttpRoute]:
    """Return the routes of all operations that have a path."""
    return [
        HttpRoute(
            method=operation.method,
            path=operation.path,
            handle=partial(HANDLERS[operation.handler], operation),
            operation=operation.name,
            writes=operation.writes,
            public=operation.public,
            change_errors=operation.change_errors,
            successor=operation.successor,
        )
        for operation in operations
        if operation.path is not None
    ]
