"""MCP over HTTP: stateless, one JSON answer per request.

A server authenticates and reads the body; the handler passes both to the SDK.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from omnigraph.errors import Category, OmniError
from omnigraph.mcp.server import McpRequest, Runner, make_server
from omnigraph.mcp.tool_catalog import McpCaller
from omnigraph.query.limits import Cancellation

_CALLER, _CANCELLATION = "omnigraph.caller", "omnigraph.cancellation"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(slots=True)
class McpReply:
    """The HTTP response to an agent."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class McpHttpHandler:
    """Answers the requests of agents while it is running."""

    def __init__(self, run: Runner, body_bytes: int) -> None:
        # The SDK logs every request, which the server logs already.
        logging.getLogger("mcp").setLevel(logging.WARNING)
        server = make_server(
            lambda request: _scope(request)[_CALLER], run, lambda r: _scope(r)[_CANCELLATION]
        )
        self._manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=body_bytes
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be ready to answer."""
        async with self._manager.run():
            yield

    async def answer(
        self, caller: McpCaller, scope: Mapping[str, Any], body: bytes, cancellation: Cancellation
    ) -> McpReply:
        """Answer one request, whose body has been read; `cancellation` stops its queries."""
        _check_origin(scope)
        reply, rest = McpReply(), [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> MutableMapping[str, Any]:
            return rest.pop() if rest else {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                reply.status = message["status"]
                reply.headers = {n.decode(): v.decode() for n, v in message["headers"]}
            else:
                reply.body += message.get("body", b"")

        facts = {_CALLER: caller, _CANCELLATION: cancellation}
        await self._manager.handle_request({**scope, **facts}, receive, send)
        return reply


def _scope(request: McpRequest) -> MutableMapping[str, Any]:
    assert request.request is not None, "every message came by an HTTP request"
    scope: MutableMapping[str, Any] = request.request.scope
    return scope


def _check_origin(scope: Mapping[str, Any]) -> None:
    """Refuse requests of web pages from other hosts, against DNS rebinding."""
    origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
    for origin in origins:
        try:
            host = urlsplit(origin).hostname
        except ValueError:
            host = None
        if host not in _LOOPBACK:
            message = "agents are not served to pages of other places"
            raise OmniError(message, code="origin_denied", category=Category.DENIED)
