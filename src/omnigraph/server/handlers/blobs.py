"""This module answers with blobs, or a range of one."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from starlette.responses import Response

from omnigraph.errors import InvalidInput
from omnigraph.server.request import RequestContext
from omnigraph.server.responses import (
    BlobDelivery,
    BlobRequestHeaders,
    blob_identity_headers,
    error_response,
    plan_delivery,
)
from omnigraph.server.streaming import stream_response
from omnigraph.service import operations, wire

_REQUIRED = ("entity", "type", "id", "property")
_OPTIONAL = ("branch", "snapshot")
_BYTES = {"Content-Type": "application/octet-stream"}


async def get_blob(asked: RequestContext) -> Response:
    """Send a blob, or say where it is."""
    opened = await _opened(asked)
    delivery = _delivered(opened, BlobRequestHeaders.of(asked.request.headers))
    if isinstance(delivery, Response):
        return delivery
    if delivery.status not in (200, 206):
        return Response(status_code=delivery.status, headers=delivery.headers)
    headers = {**delivery.headers, **_BYTES}
    blob, (start, end) = opened.blob, delivery.range
    if start == end:
        return Response(b"", headers=headers)
    return await stream_response(asked, lambda: blob.chunks(start, end), headers, delivery.status)


async def head_blob(asked: RequestContext) -> Response:
    """Say what there is; ranges are not looked at."""
    opened = await _opened(asked)
    delivery = _delivered(opened, BlobRequestHeaders.of(asked.request.headers, ranges=False))
    if isinstance(delivery, Response):
        return delivery
    headers = {**delivery.headers, **(_BYTES if delivery.status == 200 else {})}
    return Response(status_code=delivery.status, headers=headers)


def _delivered(
    opened: operations.OpenedBlob, asking: BlobRequestHeaders
) -> BlobDelivery | Response:
    """Decide how to deliver; a refusal tells which blob it is about, too."""
    snapshot = {"Omnigraph-Snapshot-Id": opened.commit_id}
    try:
        found = plan_delivery(opened.blob, asking)
    except InvalidInput as error:
        return error_response(error, headers={**snapshot, **blob_identity_headers(opened.blob)})
    return replace(found, headers={**snapshot, **found.headers})


async def _opened(asked: RequestContext) -> operations.OpenedBlob:
    visit = asked.visit
    given = {name: asked.one(name) for name in (*_REQUIRED, *_OPTIONAL)}
    missing = [f"`{name}`" for name in _REQUIRED if given[name] is None]
    if missing:
        raise InvalidInput(f"{', '.join(missing)} must be given", code="parameter_missing")
    try:
        wanted = msgspec.convert(given, wire.BlobQuery)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"bad selector: {error}", code="parameter_invalid") from error
    return await asked.read(lambda: operations.open_blob(visit, wanted))
