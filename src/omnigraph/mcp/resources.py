"""This module offers what an agent may want to read before it asks: resources, by address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from omnigraph.mcp.offers import Caller
from omnigraph.policy.actions import Action
from omnigraph.service import operations
from omnigraph.service.visit import Visit

SCHEME = "omnigraph://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """A resource as one caller sees it."""

    uri: str
    name: str
    description: str
    media_type: str
    read: Callable[[], str]


def resources_of(caller: Caller) -> dict[str, Readable]:
    """Return the resources of a caller by address; with several graphs, those of each."""
    found: list[Readable] = []
    for graph_id, visit in caller.visits(Action.READ).items():
        suffix = f"/{graph_id}" if len(caller.graphs) > 1 else ""
        found += _of_graph(visit, graph_id, suffix)
    if caller.service.could(caller.actor, Action.GRAPH_LIST):
        found.append(
            Readable(
                uri=f"{SCHEME}graphs",
                name="graphs",
                description="The graphs that are served.",
                media_type="application/json",
                read=lambda: _json(operations.list_graphs(caller.service, caller.actor)),
            )
        )
    return {readable.uri: readable for readable in found}


def _of_graph(visit: Visit, graph_id: str, suffix: str) -> list[Readable]:
    return [
        Readable(
            uri=f"{SCHEME}schema{suffix}",
            name=f"schema of {graph_id}",
            description="The accepted schema: node and edge types with their properties.",
            media_type="text/plain",
            read=lambda: operations.get_schema(visit).schema_source,
        ),
        Readable(
            uri=f"{SCHEME}branches{suffix}",
            name=f"branches of {graph_id}",
            description="The names of all branches.",
            media_type="application/json",
            read=partial(_branches, visit),
        ),
    ]


def _branches(visit: Visit) -> str:
    return _json(operations.list_branches(visit))


def _json(answer: object) -> str:
    return msgspec.json.encode(answer).decode()
