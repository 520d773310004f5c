"""Serve one agent over standard input and output, as the process that it started."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.server.stdio import stdio_server

from omnigraph.errors import InvalidInput
from omnigraph.mcp.offers import Caller
from omnigraph.mcp.protocol import make_server
from omnigraph.service.registry import open_registry
from omnigraph.service.runtime import RuntimeState
from omnigraph.service.sources import ALL, graph_sources, server_policy
from omnigraph.service.visit import Service

__all__ = ["ALL", "Local", "serve"]

THREADS = 4
"""Calls at once."""
QUERY_SECONDS = 60.0
CHUNK = 64 * 1024
"""Bytes of input that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """What one agent works on, and as whom.

    `graphs` are addresses by id; `queries` and `policies` are folders and files by graph id.
    """

    graphs: Mapping[str, str]
    queries: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    server_policy: str | None = None
    actor: str | None = None


def serve(local: Local) -> None:
    """Serve until the agent closes standard input, or a signal stops the process."""
    caller = _caller(local)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="omnigraph") as threads:
        asyncio.run(_served(caller, threads))


async def _served(caller: Caller, threads: ThreadPoolExecutor) -> None:
    server = make_server(lambda _: caller, threads)
    lines = _Lines()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lines.end)
    async with stdio_server(stdin=cast("Any", lines)) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class _Lines:
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
                chunk = os.read(self._input, CHUNK)
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


def _caller(local: Local) -> Caller:
    """Open the graphs; whoever starts a process may do everything unless a policy is given."""
    ruled = bool(local.policies) or local.server_policy is not None
    if ruled and local.actor is None:
        message = "there is a policy, so say who acts: --as ACTOR"
        raise InvalidInput(message, code="actor_missing")
    policy = server_policy(local.server_policy)
    sources = graph_sources(local.graphs, queries=local.queries, policies=local.policies)
    service = Service(
        registry=open_registry(sources, require_all=True),
        state=RuntimeState.POLICY_ENABLED if ruled else RuntimeState.OPEN,
        policy=policy,
        seconds=QUERY_SECONDS,
    )
    return Caller(service, local.actor, tuple(sorted(local.graphs)))
