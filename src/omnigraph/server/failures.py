"""This module answers when something went wrong."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from omnigraph.service.errors import describe


def failure_response(
    error: Exception, *, changes: bool = False, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer to an error; the routes that tell `changes` have a body of their own."""
    failure = describe(error)
    body = failure.change_body if changes else failure.body
    return Response(
        msgspec.json.encode(body),
        failure.status,
        headers={**(headers or {}), **failure.headers},
        media_type="application/json",
    )
