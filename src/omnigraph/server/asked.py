"""This module is one request on its way: who asks, of which graph, and in which thread it runs."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive

from omnigraph.errors import InvalidInput
from omnigraph.query.budget import Cancellation
from omnigraph.server.body import check_json, read_body
from omnigraph.server.lanes import ReadLanes
from omnigraph.server.limits import BODY_BYTES, Limits
from omnigraph.server.paths import original
from omnigraph.server.readiness import Readiness
from omnigraph.service.request_log import log_commit_of
from omnigraph.service.visit import Service, Visit
from omnigraph.service.wire.decode import decode

_AnswerT = TypeVar("_AnswerT")
_BodyT = TypeVar("_BodyT")


@dataclass(slots=True)
class Front:
    """What all requests share: what is served, threads for calls that block, limits.

    Changes have threads of their own: they wait for each other, and must not keep readers waiting.
    A reload replaces `service`; a request keeps the one it began with.
    """

    service: Service
    limits: Limits
    lanes: ReadLanes
    writers: Executor
    streams: asyncio.Semaphore
    readiness: Readiness = field(default_factory=Readiness)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    front: Front
    request: Request
    service: Service
    actor: str | None
    cancellation: Cancellation = field(default_factory=Cancellation)

    @property
    def visit(self) -> Visit:
        """The caller at the graph it addresses."""
        return self.service.visit(self.path("graph_id"), self.actor)

    def path(self, name: str) -> str:
        """Return a part of the path."""
        return original(self.request.path_params[name])

    def one(self, name: str) -> str | None:
        """Return a value of the query string that may be there once."""
        given = self.request.query_params.getlist(name)
        if len(given) > 1:
            message = f"`{name}` is given {len(given)} times; it may be given once"
            raise InvalidInput(message, code="parameter_repeated", parameter=name)
        return given[0] if given else None

    def number(self, name: str) -> int | None:
        """Return a number of the query string that may be there once."""
        text = self.one(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InvalidInput(f"`{name}` is a number from 0 up", code="limit_invalid")
        return int(text)

    async def body(self, limit: int = BODY_BYTES) -> bytes:
        """Return the body, whatever it is."""
        return await read_body(self.request, limit, self.front.limits.body)

    async def json(self, shape: type[_BodyT], limit: int = BODY_BYTES) -> _BodyT:
        """Return the body, which must be JSON of a shape."""
        check_json(self.request)
        return decode(await self.body(limit), shape)

    async def call(self, run: Callable[[], _AnswerT]) -> _AnswerT:
        """Run something short that reads, in a thread."""
        return await self.front.lanes.run(self.actor, run, self.cancellation)

    async def read(self, run: Callable[[], _AnswerT]) -> _AnswerT:
        """Run something that reads in a thread, as long as the client waits for it.

        The body of the request has to be read before.
        """
        with self.front.lanes.admit(self.actor):
            return await self.while_connected(self.call(run))

    async def while_connected(self, answer: Coroutine[None, None, _AnswerT]) -> _AnswerT:
        """Wait for an answer; when the client goes away or time is up, cancel its queries."""
        answering = asyncio.ensure_future(answer)
        gone = asyncio.ensure_future(disconnected(self.request.receive))
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
        return json_response(await self.read(lambda: msgspec.json.encode(run())))

    async def change(self, run: Callable[[], object]) -> Response:
        """Run something that changes the graph, and answer with what it returns.

        A client that goes away does not stop it: what was begun is finished.
        """

        def encoded() -> bytes:
            answer = run()
            log_commit_of(answer)
            return msgspec.json.encode(answer)

        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self.front.writers, context.run, encoded)
        return json_response(answer)


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def json_response(body: bytes, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(body, status, media_type="application/json")
