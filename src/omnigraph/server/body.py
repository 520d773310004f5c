"""This module takes bodies in: not too much, not too slowly, of the right type."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from starlette.requests import Request

from omnigraph.errors import Category, InvalidInput, OmniError

DRAINED_BYTES = 64 * 1024 * 1024
"""Bytes of a body that is too large which are taken and thrown away."""
DRAINED_PAUSE = 1.0
"""Seconds to wait for the next of them."""


async def read_body(
    request: Request, limit: int, seconds: float, resource: str = "request_bytes"
) -> bytes:
    """Return the body; raise when it is larger than it may be or takes longer than it may."""
    announced = request.headers.get("content-length", "")
    expected = int(announced) if announced.isdigit() and len(announced) < 20 else 0
    if expected > limit:
        await _drain(request.stream(), seconds, waits="expect" in request.headers)
        raise _too_large(resource, limit, expected)
    parts, size = [], 0
    stream = request.stream()
    try:
        async with asyncio.timeout(seconds):
            async for part in stream:
                size += len(part)
                if size > limit:
                    break
                parts.append(part)
    except TimeoutError as error:
        message = f"the body did not arrive within {seconds:g} s"
        raise InvalidInput(message, code="body_slow") from error
    if size > limit:
        await _drain(stream, seconds)
        raise _too_large(resource, limit, size)
    return b"".join(parts)


async def _drain(
    stream: AsyncGenerator[bytes, None], seconds: float, *, waits: bool = False
) -> None:
    """Throw away what is still being sent: most senders read no answer before they are done.

    Who waits to be told whether to send at all is told so by the answer.
    """
    if waits:
        return
    taken, end = 0, asyncio.get_running_loop().time() + seconds
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAINED_PAUSE) as patience:
            async for part in stream:
                taken += len(part)
                if taken > DRAINED_BYTES:
                    break
                patience.reschedule(min(end, asyncio.get_running_loop().time() + DRAINED_PAUSE))


def check_json(request: Request) -> None:
    """Raise unless the body is said to be JSON."""
    essence = content_type(request)
    if essence == "application/json":
        return
    if essence.startswith("application/") and essence.endswith("+json"):
        return
    raise unsupported("application/json")


def content_type(request: Request) -> str:
    """Return what the body is said to be, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def unsupported(wanted: str) -> InvalidInput:
    """Return the error for a body of another type."""
    message = f"send the body with `Content-Type: {wanted}`"
    return InvalidInput(message, code="content_type_unsupported")


def _too_large(resource: str, limit: int, actual: int) -> OmniError:
    return OmniError(
        f"the body is larger than {limit:,} bytes",
        code="body_too_large",
        category=Category.LIMIT,
        details={"resource": resource, "limit": limit, "actual": actual},
    )
