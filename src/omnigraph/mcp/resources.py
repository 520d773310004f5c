"""MCP resources: the schema, the branches and the graphs, by address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from omnigraph.mcp.tool_catalog import McpCaller
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service.operations.branches import list_branches
from omnigraph.service.operations.schema import get_schema
from omnigraph.service.operations.server import list_graphs
from omnigraph.service.session import GraphSession
from omnigraph.service.wire import NoRequest

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
    resources: list[McpResource] = []
    for graph_id, session in caller.sessions(PolicyAction.READ).items():
        suffix = f"/{graph_id}" if len(caller.graphs) > 1 else ""
        resources += _graph_resources(session, graph_id, suffix)
    if caller.service_session.may_somewhere(PolicyAction.GRAPH_LIST):
        resources.append(
            McpResource(
                uri=f"{SCHEME}graphs",
                name="graphs",
                description="The graphs that are served.",
                media_type="application/json",
                read=lambda: _json(list_graphs(caller.service_session, NoRequest())),
            )
        )
    return {resource.uri: resource for resource in resources}


def _graph_resources(session: GraphSession, graph_id: str, suffix: str) -> list[McpResource]:
    return [
        McpResource(
            uri=f"{SCHEME}schema{suffix}",
            name=f"schema of {graph_id}",
            description="The accepted schema: node and edge types with their properties.",
            media_type="text/plain",
            read=lambda: get_schema(session, NoRequest()).schema_source,
        ),
        McpResource(
            uri=f"{SCHEME}branches{suffix}",
            name=f"branches of {graph_id}",
            description="The names of all branches.",
            media_type="application/json",
            read=lambda: _json(list_branches(session, NoRequest())),
        ),
    ]


def _json(answer: object) -> str:
    return msgspec.json.encode(answer).decode()
