"""The context of one request: its actor, its graph, its body, its threads."""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.query.limits import Cancellation
from omnigraph.server.read_scheduler import ReadScheduler
from omnigraph.server.readiness import StorageReadiness
from omnigraph.server.settings import MAX_BODY_BYTES, ServerLimits
from omnigraph.service.session import GraphService, GraphSession, log_result_commit
from omnigraph.service.sign_in import BrowserSessions
from omnigraph.service.wire import IF_GRAPH_COMMIT
from omnigraph.service.wire.decode import decode

# Paths, in which an encoded slash does not separate segments.
#
# A branch such as `review/x` travels as `review%2Fx`. Routes are matched part by part: what was
# encoded stays within its part, so that no name can lead to another route.


_ENCODED_SLASH = "\0"
"""Replaces an encoded slash while a route is matched; a path that contains it is refused."""


def decode_path(scope: Mapping[str, Any]) -> str | None:
    """Return the path of a request, decoded part by part, or None if it cannot be one."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    parts = []
    for part in raw.partition(b"?")[0].split(b"/"):
        try:
            text = unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            return None
        if _ENCODED_SLASH in text:
            return None
        parts.append(text.replace("/", _ENCODED_SLASH))
    return "/".join(parts)


def decode_path_parameter(part: str) -> str:
    """Return a part of a path as it was meant."""
    return part.replace(_ENCODED_SLASH, "/")


# Bodies: limits of size and time, media types.


MAX_DRAIN_BYTES = 64 * 1024 * 1024
"""Bytes of a body that is too large which are taken and thrown away."""
DRAIN_IDLE_SECONDS = 1.0
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

    A client that sent `Expect` waits for the answer before it sends the body.
    """
    if waits:
        return
    taken, end = 0, asyncio.get_running_loop().time() + seconds
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_IDLE_SECONDS) as patience:
            async for part in stream:
                taken += len(part)
                if taken > MAX_DRAIN_BYTES:
                    break
                patience.reschedule(
                    min(end, asyncio.get_running_loop().time() + DRAIN_IDLE_SECONDS)
                )


def check_json(request: Request) -> None:
    """Raise unless the content type of the body is JSON."""
    if re.fullmatch(r"application/(.*\+)?json", content_type(request)) is None:
        raise unsupported_media_type("application/json")


def content_type(request: Request) -> str:
    """Return the content type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def unsupported_media_type(wanted: str) -> InvalidInput:
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


_AnswerT = TypeVar("_AnswerT")
_BodyT = TypeVar("_BodyT")


@dataclass(slots=True)
class AppState:
    """What all requests share: what is served, threads for calls that block, limits.

    Changes have threads of their own: they wait for each other, and must not keep readers waiting.
    A reload replaces `service`; a request keeps the one it began with.
    """

    service: GraphService
    limits: ServerLimits
    scheduler: ReadScheduler
    writers: Executor
    streams: asyncio.Semaphore
    sessions: BrowserSessions
    readiness: StorageReadiness = field(default_factory=StorageReadiness)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request."""

    app: AppState
    request: Request
    service: GraphService
    actor: str | None
    cancellation: Cancellation = field(default_factory=Cancellation)

    @property
    def session(self) -> GraphSession:
        """A new session of the caller on the graph of the path."""
        session = self.service.session(self.path("graph_id"), self.actor)
        return replace(session, timeout=preferred_wait(self.request.headers.getlist("prefer")))

    def path(self, name: str) -> str:
        """Return a part of the path."""
        return decode_path_parameter(self.request.path_params[name])

    def query_value(self, name: str) -> str | None:
        """Return a value of the query string that may be there once."""
        values = self.request.query_params.getlist(name)
        if len(values) > 1:
            message = f"`{name}` is given {len(values)} times; it may be given once"
            raise InvalidInput(message, code="parameter_repeated", parameter=name)
        return values[0] if values else None

    def query_number(self, name: str) -> int | None:
        """Return a number of the query string that may be there once."""
        text = self.query_value(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InvalidInput(f"`{name}` is a number from 0 up", code="limit_invalid")
        return int(text)

    async def body(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Return the body, whatever it is."""
        return await read_body(self.request, limit, self.app.limits.body)

    async def json(self, shape: type[_BodyT], limit: int = MAX_BODY_BYTES) -> _BodyT:
        """Return the body, which must be JSON of a shape."""
        check_json(self.request)
        return decode(await self.body(limit), shape)

    async def run_read(self, run: Callable[[], _AnswerT]) -> _AnswerT:
        """Run something short that reads, in a thread."""
        return await self.app.scheduler.run(self.actor, run, self.cancellation)

    async def run_cancellable_read(self, run: Callable[[], _AnswerT]) -> _AnswerT:
        """Run something that reads in a thread, as long as the client waits for it.

        The body of the request has to be read before.
        """
        with self.app.scheduler.admit(self.actor):
            return await self.while_connected(self.run_read(run))

    async def while_connected(self, answer: Coroutine[None, None, _AnswerT]) -> _AnswerT:
        """Wait for an answer; when the client goes away or time is up, cancel its queries."""
        answering = asyncio.ensure_future(answer)
        gone = asyncio.ensure_future(wait_for_disconnect(self.request.receive))
        try:
            await asyncio.wait([answering, gone], return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
            raise ClientDisconnect
        finally:
            gone.cancel()
            if not answering.done():
                self.cancellation.set()
                answering.cancel()

    async def answer(self, run: Callable[[], object]) -> Response:
        """Run something that reads, and answer with what it returns."""
        return json_response(await self.run_cancellable_read(lambda: msgspec.json.encode(run())))

    async def run_write(self, run: Callable[[], object]) -> Response:
        """Run something that changes the graph, and answer with what it returns.

        A client that goes away does not stop it: what was begun is finished.
        """

        def encoded() -> bytes:
            answer = run()
            log_result_commit(answer)
            return msgspec.json.encode(answer)

        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self.app.writers, context.run, encoded)
        return json_response(answer)


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def json_response(body: bytes, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(body, status, media_type="application/json")


# The header with the commit that a conditional mutation expects.


def expected_commit(request: Request) -> str:
    """Return the commit a conditional mutation expects; raise if the header is invalid."""
    values = request.headers.getlist(IF_GRAPH_COMMIT)
    if len(values) != 1:
        raise _invalid_condition(
            f"send the header {IF_GRAPH_COMMIT} exactly once, with a commit id"
        )
    text = values[0].strip()
    quoted = text.startswith('"') or text.endswith('"')
    if not text or quoted or "*" in text or "," in text or text.startswith("W/"):
        raise _invalid_condition(
            f"{IF_GRAPH_COMMIT} is one commit id: no quotes, no list, no `*`, no `W/`"
        )
    return text


def refuse_condition(request: Request, path: str) -> None:
    """Raise if the header is sent to a route that ignores it."""
    if IF_GRAPH_COMMIT in request.headers:
        raise _invalid_condition(f"{IF_GRAPH_COMMIT} has no meaning here: send it to {path}")


def _invalid_condition(message: str) -> InvalidInput:
    return InvalidInput(message, code="condition_invalid")


# The header with the time that a write may wait for other writers.


_WAIT = re.compile(r"wait\s*=\s*\"?(\d{1,9})\"?", re.IGNORECASE)


def preferred_wait(values: Iterable[str]) -> float | None:
    """Return the seconds of `Prefer: wait=…` (RFC 7240); other preferences are ignored."""
    preferences = (part.strip() for value in values for part in value.split(","))
    matches = (_WAIT.fullmatch(part.partition(";")[0].strip()) for part in preferences)
    return next((float(match[1]) for match in matches if match is not None), None)
