"""Serve one agent over standard input and output, as the process that it started."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.server.stdio import stdio_server

from omnigraph.errors import InvalidInput
from omnigraph.mcp.server import make_server
from omnigraph.mcp.tool_catalog import McpCaller
from omnigraph.query.limits import Cancellation
from omnigraph.service.auth import AuthMode
from omnigraph.service.graph_registry import ALL_GRAPHS, graph_sources, open_registry, server_policy
from omnigraph.service.session import GraphService

__all__ = ["ALL_GRAPHS", "StdioOptions", "serve"]

WORKER_THREADS = 4
"""Calls at once."""
QUERY_SECONDS = 60.0
READ_BYTES = 64 * 1024
"""Bytes of input that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioOptions:
    """What one agent works on, and as whom.

    `graphs` are addresses by id; `queries` and `policies` are folders and files by graph id.
    """

    graphs: Mapping[str, str]
    queries: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    server_policy: str | None = None
    actor: str | None = None


def serve(local: StdioOptions) -> None:
    """Serve until the agent closes standard input, or a signal stops the process."""
    caller = _caller(local)
    with ThreadPoolExecutor(WORKER_THREADS, thread_name_prefix="omnigraph") as threads:
        asyncio.run(_run_server(caller, threads))


async def _run_server(caller: McpCaller, threads: ThreadPoolExecutor) -> None:
    loop = asyncio.get_running_loop()

    async def run(_: str | None, work: Callable[[], Any], cancellation: Cancellation) -> Any:  # noqa: ANN401 - whatever the work returns
        context = contextvars.copy_context()
        return await loop.run_in_executor(threads, context.run, cancellation.run, work)

    server = make_server(lambda _: caller, run)
    lines = _StdinLines()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lines.end)
    async with stdio_server(stdin=cast("Any", lines)) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class _StdinLines:
    """Lines of standard input, which end at the end of input or at a signal.

    The thread reads the descriptor, not `sys.stdin`: it may still wait there when the process
    ends, and must not hold a lock then. Descriptor 0 is the null device in the meantime.
    """

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._input = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        threading.Thread(target=self._read, daemon=True).start()

    def end(self) -> None:
        """End the lines, whatever may still come."""
        self._ended.set()

    def _read(self) -> None:
        chunk = b"\n"
        # The loop is closed once the server has ended.
        with suppress(RuntimeError):
            while chunk:
                chunk = os.read(self._input, READ_BYTES)
                asyncio.run_coroutine_threadsafe(self._chunks.put(chunk), self._loop).result()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Iterate over the lines."""
        rest = bytearray()
        while chunk := await self._next():
            rest += chunk
            if b"\n" in chunk:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace")
        if rest:
            yield rest.decode("utf-8", "replace")

    async def _next(self) -> bytes:
        """Return the next chunk, or nothing at the end."""
        waits = [asyncio.ensure_future(w) for w in (self._chunks.get(), self._ended.wait())]
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return b"" if waits[1] in done else cast("bytes", waits[0].result())


def _caller(local: StdioOptions) -> McpCaller:
    """Open the graphs; the caller may do everything unless a policy is given."""
    ruled = bool(local.policies) or local.server_policy is not None
    if ruled and local.actor is None:
        message = "there is a policy, so say who acts: --as ACTOR"
        raise InvalidInput(message, code="actor_missing")
    policy = server_policy(local.server_policy)
    sources = graph_sources(local.graphs, queries=local.queries, policies=local.policies)
    service = GraphService(
        registry=open_registry(sources, require_all=True),
        state=AuthMode.POLICY_ENABLED if ruled else AuthMode.OPEN,
        policy=policy,
        seconds=QUERY_SECONDS,
    )
    return McpCaller(service, local.actor, tuple(sorted(local.graphs)))
