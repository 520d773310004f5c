"""This module serves one agent over standard input and output, as the process that it started."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

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
    """Serve until the agent closes our standard input."""
    caller = _caller(local)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="omnigraph") as threads:
        asyncio.run(_served(caller, threads))


async def _served(caller: Caller, threads: ThreadPoolExecutor) -> None:
    server = make_server(lambda _: caller, threads)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


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
