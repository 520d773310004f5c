"""Wrap every request: its id, its time, its line in the log, its place in counters."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from ulid import ULID

from omnigraph.policy import logged_once
from omnigraph.server.clients import Network, client_address
from omnigraph.server.failures import failure_response
from omnigraph.server.metrics import Metrics
from omnigraph.server.paths import original, parted
from omnigraph.service.request_log import RequestLog, current_request

REQUEST_ID = "x-request-id"
_log = logging.getLogger("omnigraph.server")
_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_NOTES = "omnigraph.notes"
GRAPH_ID_CHARS = 64
"""What the log shows of an id that may be anything."""


def note(request: Request, path: str, actor: str | None = None) -> None:
    """Remember the route, the graph and the actor of a request for the log."""
    request.scope[_NOTES] |= {"route": path, "actor": actor}
    current, graph_id = current_request.get(), request.path_params.get("graph_id")
    if current is not None and graph_id is not None:
        current.graph_id = original(graph_id)[:GRAPH_ID_CHARS]


class Envelope:
    """The outermost part of the application."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, seconds: float, proxies: Sequence[Network]
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._seconds = seconds
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        log = RequestLog(_request_id(scope), client_address(scope, self._proxies))
        await _Run(self._app, self._metrics, self._seconds, scope, log).go(receive, send)


class _Run:
    """One request."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, seconds: float, scope: Scope, log: RequestLog
    ) -> None:
        self._app, self._metrics, self._seconds, self._scope = app, metrics, seconds, scope
        self._begun = time.monotonic()
        self._status: int | None = None
        self._log, self._id = log, log.request_id
        self._notes: dict[str, Any] = {"route": "unknown", "actor": None}
        scope[_NOTES] = self._notes

    async def go(self, receive: Receive, send: Send) -> None:
        token = current_request.set(self._log)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._status = message["status"]
                message["headers"] = [*message["headers"], (REQUEST_ID.encode(), self._id.encode())]
            # Whoever does not take what it asked for must not keep it here for good.
            async with asyncio.timeout(self._seconds):
                await send(message)

        try:
            with self._metrics.underway(), logged_once():
                await self._routed(receive, sent)
        finally:
            self._told()
            current_request.reset(token)

    async def _routed(self, receive: Receive, sent: Send) -> None:
        path = parted(self._scope)
        if path is None:
            await Response(status_code=404)(self._scope, receive, sent)
            return
        self._scope["path"] = path
        try:
            await self._app(self._scope, receive, sent)
        except ClientDisconnect:
            _log.info("the caller went away before it had asked", extra={"request_id": self._id})
        except Exception as error:
            if self._status is not None:
                raise
            _log.exception("a request failed", extra={"request_id": self._id})
            await failure_response(error)(self._scope, receive, sent)

    def _told(self) -> None:
        seconds = time.monotonic() - self._begun
        status = self._status or 499
        method, route = self._scope["method"], self._notes["route"]
        self._metrics.answered(method, route, status, seconds)
        facts = {
            "request_id": self._id,
            "method": method,
            "route": route,
            "status": status,
            "milliseconds": round(seconds * 1000, 3),
            "actor": self._notes["actor"],
        }
        _log.info("%s %s %d", method, route, status, extra=facts)


def _request_id(scope: Scope) -> str:
    """Return the id the caller gave, if it can stand in a log, or a new one."""
    for name, value in scope["headers"]:
        if name == REQUEST_ID.encode() and _ID.fullmatch(value):
            return str(value.decode())
    return str(ULID())
