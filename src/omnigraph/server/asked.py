"""This module is one request on its way: who asks, of which graph, and in which thread it runs."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from omnigraph.errors import InvalidInput
from omnigraph.server.body import check_json, read_body
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
    threads: Executor
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

    async def call(self, run: Callable[[], _AnswerT], threads: Executor | None = None) -> _AnswerT:
        """Run something that blocks in a thread.

        A caller that goes away does not stop it: what was begun is finished.
        """
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads or self.front.threads, context.run, run)

    async def answer(self, run: Callable[[], object]) -> Response:
        """Run something that blocks, and answer with what it returns."""
        return json_response(await self.call(lambda: msgspec.json.encode(run())))

    async def change(self, run: Callable[[], object]) -> Response:
        """Run something that changes the graph, and answer with what it returns."""

        def encoded() -> bytes:
            answer = run()
            log_commit_of(answer)
            return msgspec.json.encode(answer)

        return json_response(await self.call(encoded, self.front.writers))


def json_response(body: bytes, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(body, status, media_type="application/json")
