"""Error responses, and how a blob is delivered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from starlette.responses import Response

from omnigraph.errors import InvalidInput
from omnigraph.query.entities import Blob
from omnigraph.service.errors import describe_error


def error_response(
    error: Exception, *, changes: bool = False, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer to an error; with `changes`, its body is that of the routes of changes."""
    failure = describe_error(error)
    body = failure.change_body if changes else failure.body
    return Response(
        msgspec.json.encode(body),
        failure.status,
        headers={**(headers or {}), **failure.headers},
        media_type="application/json",
    )


# Delivery of blobs: whole, a range, not modified, or a redirect.


_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')


@dataclass(frozen=True, slots=True)
class BlobRequestHeaders:
    """The headers of a conditional or range request."""

    range: str | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    if_range: str | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str], *, ranges: bool = True) -> BlobRequestHeaders:
        """Read the headers of a request."""
        return cls(
            headers.get("range") if ranges else None,
            headers.get("if-match"),
            headers.get("if-none-match"),
            headers.get("if-range") if ranges else None,
        )


@dataclass(frozen=True, slots=True)
class BlobDelivery:
    """A status, the headers that go with it, and which bytes are sent."""

    status: int
    headers: Mapping[str, str]
    range: tuple[int, int] = (0, 0)


def plan_delivery(blob: Blob, headers: BlobRequestHeaders) -> BlobDelivery:
    """Return how to deliver a blob; raise InvalidInput if a precondition fails."""
    if blob.uri is not None:
        return BlobDelivery(302, {"Location": blob.uri, "Cache-Control": "no-store"})
    size = blob.size
    assert size is not None, "a blob that is here has a size"
    identity = blob_identity_headers(blob)
    whole = {**identity, "Content-Length": str(size)}
    if headers.if_match is not None and not _etag_matches(headers.if_match, blob.etag, weak=False):
        raise InvalidInput("the blob is not the one you expect", code="blob_changed")
    if headers.if_none_match is not None and _etag_matches(
        headers.if_none_match, blob.etag, weak=True
    ):
        return BlobDelivery(304, whole)
    requested = headers.range if headers.if_range in (None, blob.etag) else None
    chosen = _parse_range(requested, size) if requested is not None else None
    if chosen is None:
        return BlobDelivery(200, whole, (0, size))
    start, end = chosen
    place = {"Content-Range": f"bytes {start}-{end - 1}/{size}", "Content-Length": str(end - start)}
    return BlobDelivery(206, {**identity, **place}, chosen)


_DOWNLOAD = {
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'",
}
"""A blob may be a page with scripts: browsers save it and never show it as a page."""


def blob_identity_headers(blob: Blob) -> dict[str, str]:
    """Return the headers that identify a blob, and make a browser save it."""
    return {"ETag": blob.etag, "Accept-Ranges": "bytes", **_DOWNLOAD}


def _etag_matches(header: str, etag: str, *, weak: bool) -> bool:
    if header.strip() == "*":
        return True
    tags = [tag.strip() for tag in header.split(",")]
    if not all(_ETAG.fullmatch(tag) for tag in tags):
        return False
    return etag in ([tag.removeprefix("W/") for tag in tags] if weak else tags)


def _parse_range(header: str, size: int) -> tuple[int, int] | None:
    """Return the bytes that a header requests; None if it is to be ignored."""
    match = _RANGE.fullmatch(header.strip())
    if match is None or not any(match.groups()):
        return None
    first, last = (int(text) if text else None for text in match.groups())
    if first is None:
        assert last is not None, "one of them is given"
        if last and size:
            return max(size - last, 0), size
        raise _unsatisfiable(0, last, size)
    if last is not None and last < first:
        return None
    if first >= size:
        raise _unsatisfiable(first, first if last is None else last, size)
    return first, size if last is None else min(last + 1, size)


def _unsatisfiable(start: int, end: int, size: int) -> InvalidInput:
    message = f"the blob has {size} bytes; there is nothing in the range"
    facts = {"start": start, "end": end, "length": size}
    return InvalidInput(message, code="blob_range_not_satisfiable", **facts)
