"""This module decides which tools a caller is offered; any other is unknown to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from omnigraph.errors import InvalidInput
from omnigraph.mcp import stored
from omnigraph.mcp.arguments import Arguments, Paged, schema_of
from omnigraph.mcp.paging import paged
from omnigraph.mcp.tools import TOOLS, Tool, page_of, plain
from omnigraph.policy.actions import Action
from omnigraph.service import operations
from omnigraph.service.request_log import log_commit_of
from omnigraph.service.stored import StoredQuery
from omnigraph.service.visit import Service, Visit

GRAPH = "graph"
"""The argument that says which graph is meant, where there are several."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and the ids of the graphs it calls about."""

    service: Service
    actor: str | None
    graphs: tuple[str, ...] = ()

    def visits(self, *actions: Action) -> dict[str, Visit]:
        """Return the graphs on which the caller may do all of some actions somewhere, by id."""
        found = {name: self.service.visit(name, self.actor) for name in self.graphs}
        return {n: v for n, v in found.items() if all(v.could(action) for action in actions)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool as one caller sees it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    run: Callable[[dict[str, Any]], dict[str, Any]]
    writes: bool = False
    destroys: bool = False

    def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked for; raise OmniError."""
        _check_names(self, arguments)
        try:
            answer = self.run(dict(arguments))
        except msgspec.ValidationError as error:
            raise _refused(self.name, [str(error)]) from error
        log_commit_of(answer)
        return answer


def offers_to(caller: Caller) -> dict[str, Offer]:
    """Return the tools of a caller by name, those for the server first."""
    found = [*_server_offers(caller), *(o for tool in TOOLS for o in _tool_offer(caller, tool))]
    offers = {offer.name: offer for offer in found}
    taken = {"health", "graphs_list", *(tool.name for tool in TOOLS)}
    several = len(caller.graphs) > 1
    for graph_id, visit in caller.visits(Action.INVOKE_QUERY).items():
        for query in _stored(visit):
            name = f"{graph_id}_{query.name}" if several else query.name
            while name in taken:
                name = f"stored_{name}"
            taken.add(name)
            offers[name] = _stored_offer(name, visit, query)
    return offers


def _server_offers(caller: Caller) -> list[Offer]:
    def graphs(given: dict[str, Any]) -> dict[str, Any]:
        page = page_of(msgspec.convert(given, Paged))
        return paged(plain(operations.list_graphs(caller.service, caller.actor)), "graphs", page)

    health = Offer(
        name="health",
        description="Say that the server is ready, and which version it is.",
        schema=schema_of(Arguments),
        run=lambda _: plain(operations.health()),
    )
    if not caller.service.could(caller.actor, Action.GRAPH_LIST):
        return [health]
    listing = Offer(
        name="graphs_list", description="List the graphs.", schema=schema_of(Paged), run=graphs
    )
    return [health, listing]


def _tool_offer(caller: Caller, tool: Tool) -> list[Offer]:
    visits = caller.visits(*tool.actions)
    if not visits:
        return []
    return [
        Offer(
            name=tool.name,
            description=tool.description,
            schema=_with_graph(schema_of(tool.takes), caller, list(visits)),
            run=partial(_run_tool, tool, visits),
            writes=tool.writes,
            destroys=tool.destroys,
        )
    ]


def _with_graph(schema: dict[str, Any], caller: Caller, graph_ids: Sequence[str]) -> dict[str, Any]:
    if len(caller.graphs) == 1:
        return schema
    graph = {"type": "string", "enum": list(graph_ids), "description": "Id of the graph."}
    return {
        **schema,
        "properties": {GRAPH: graph, **schema["properties"]},
        "required": [GRAPH, *schema.get("required", ())],
    }


def _run_tool(tool: Tool, visits: Mapping[str, Visit], given: dict[str, Any]) -> dict[str, Any]:
    graph_id = given.pop(GRAPH, None) or next(iter(visits))
    if graph_id not in visits:
        raise _refused(tool.name, [f"`{GRAPH}` is one of {', '.join(visits)}"])
    return tool.run(visits[graph_id], msgspec.convert(given, tool.takes))


def _stored(visit: Visit) -> list[StoredQuery]:
    queries = visit.served.stored.queries
    found = [queries[name] for name in sorted(queries)]
    return [query for query in found if all(map(visit.could, stored.actions_of(query)))]


def _stored_offer(name: str, visit: Visit, query: StoredQuery) -> Offer:
    entry = query.entry()
    return Offer(
        name=name,
        description=stored.description_of(entry),
        schema=stored.schema_for(entry),
        run=partial(stored.invoke, visit, query),
        writes=query.is_mutation,
        destroys=query.is_mutation,
    )


def _check_names(offer: Offer, arguments: Mapping[str, Any]) -> None:
    """Raise unless everything is given that must be, and nothing else than may be."""
    known = offer.schema["properties"]
    missing = [name for name in offer.schema.get("required", ()) if name not in arguments]
    problems = [f"`{name}` is missing" for name in missing]
    problems += [f"there is no `{name}`" for name in arguments if name not in known]
    if problems:
        takes = ", ".join(f"`{name}`" for name in known) or "nothing"
        raise _refused(offer.name, [*problems, f"it takes {takes}"])


def _refused(tool: str, problems: Sequence[str]) -> InvalidInput:
    message = f"'{tool}' cannot be called like this: {'; '.join(problems)}"
    return InvalidInput(message, code="arguments_invalid", problems=list(problems))
