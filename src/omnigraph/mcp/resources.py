"""This module offers what an agent may want to read before it asks: resources, by address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from omnigraph.mcp.tool_catalog import McpCaller
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import operations
from omnigraph.service.session import GraphSession

SCHEME = "omnigraph://"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpResource:
    """A resource as one caller sees it."""

    uri: str
    name: str
    description: str
    media_type: str
    read: Callable[[], str]


def resources_for_caller(caller: McpCaller) -> dict[str, McpResource]:
    """Return the resources of a caller by address; with several graphs, those of each."""
    found: list[McpResource] = []
    for graph_id, visit in caller.visits(PolicyAction.READ).items():
        suffix = f"/{graph_id}" if len(caller.graphs) > 1 else ""
        found += _graph_resources(visit, graph_id, suffix)
    if caller.service.could(caller.actor, PolicyAction.GRAPH_LIST):
        found.append(
            McpResource(
                uri=f"{SCHEME}graphs",
                name="graphs",
                description="The graphs that are served.",
                media_type="application/json",
                read=lambda: _json(operations.list_graphs(caller.service, caller.actor)),
            )
        )
    return {readable.uri: readable for readable in found}


def _graph_resources(visit: GraphSession, graph_id: str, suffix: str) -> list[McpResource]:
    return [
        McpResource(
            uri=f"{SCHEME}schema{suffix}",
            name=f"schema of {graph_id}",
            description="The accepted schema: node and edge types with their properties.",
            media_type="text/plain",
            read=lambda: operations.get_schema(visit).schema_source,
        ),
        McpResource(
            uri=f"{SCHEME}branches{suffix}",
            name=f"branches of {graph_id}",
            description="The names of all branches.",
            media_type="application/json",
            read=partial(_branches, visit),
        ),
    ]


def _branches(visit: GraphSession) -> str:
    return _json(operations.list_branches(visit))


def _json(answer: object) -> str:
    return msgspec.json.encode(answer).decode()
