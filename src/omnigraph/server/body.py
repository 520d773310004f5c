"""This module takes bodies in: not too much, not too slowly, of the right type."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from omnigraph.errors import Category, InvalidInput, OmniError


async def read_body(
    request: Request, limit: int, seconds: float, resource: str = "request_bytes"
) -> bytes:
    """Return the body; raise when it is larger than it may be or takes longer than it may."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and len(announced) < 20 and int(announced) > limit:
        raise _too_large(resource, limit, int(announced))
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise _too_large(resource, limit, size)
                parts.append(part)
    except TimeoutError as error:
        message = f"the body did not arrive within {seconds:g} s"
        raise InvalidInput(message, code="body_slow") from error
    return b"".join(parts)


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
