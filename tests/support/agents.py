"""An agent: a real client of the official SDK, over a pipe or over HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import Tool

from tests.support.serving import PATIENCE


@dataclass(frozen=True, slots=True)
class Agent:
    """A client that is connected."""

    portal: BlockingPortal
    client: Client

    def tools(self) -> dict[str, Tool]:
        """Return the tools it is offered, by name."""
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a tool answers."""
        failed, answer = self._called(tool, arguments)
        assert not failed, answer
        return answer

    def fails(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return how a tool fails."""
        failed, answer = self._called(tool, arguments)
        assert failed, answer
        return answer

    def unknown(self, tool: str, **arguments: Any) -> str:
        """Return what is said of a tool that is not there."""
        with pytest.raises(MCPError) as raised:
            self._called(tool, arguments)
        assert raised.value.code == -32602
        return raised.value.message

    def resources(self) -> dict[str, str | None]:
        """Return the media types of resources by address."""
        found = self.portal.call(self.client.list_resources).resources
        return {resource.uri: resource.mime_type for resource in found}

    def read(self, uri: str) -> str:
        """Return the text of a resource."""
        [content] = self.portal.call(self.client.read_resource, uri).contents
        assert content.uri == uri
        return str(getattr(content, "text"))  # noqa: B009 - the other kind of content has none

    def _called(self, tool: str, arguments: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
        plain = {name.removesuffix("__"): value for name, value in arguments.items()}
        result = self.portal.call(self.client.call_tool, tool, plain)
        [content] = result.content
        assert content.type == "text"
        return bool(result.is_error), json.loads(content.text)


def on_pipe(*arguments: str | Path, mode: str = "auto") -> AbstractAsyncContextManager[Client]:
    """Start `omnigraph mcp` with some arguments, as agents do."""
    command = ["-m", "omnigraph.cli", "mcp", *map(str, arguments)]
    started = StdioServerParameters(command=sys.executable, args=command)
    return Client(stdio_client(started), mode=mode)


@asynccontextmanager
async def on_web(url: str, token: str | None = None, mode: str = "auto") -> AsyncIterator[Client]:
    """Connect to a server."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@contextmanager
def agent(connecting: AbstractAsyncContextManager[Client]) -> Iterator[Agent]:
    """Be an agent as long as somebody needs one."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(connecting) as client,
    ):
        yield Agent(portal, client)
