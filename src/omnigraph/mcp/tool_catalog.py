"""This module decides which tools a caller is offered; any other is unknown to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from omnigraph.errors import InvalidInput
from omnigraph.mcp import stored_query_tools
from omnigraph.mcp.arguments import PagedArguments, ToolArguments, argument_schema
from omnigraph.mcp.pagination import with_page
from omnigraph.mcp.tools import TOOLS, GraphTool, page_request, to_json_value
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import operations
from omnigraph.service.session import GraphService, GraphSession, log_result_commit
from omnigraph.service.stored_queries import StoredQuery

GRAPH = "graph"
"""The argument that says which graph is meant, where there are several."""


@dataclass(frozen=True, slots=True)
class McpCaller:
    """Who calls, and the ids of the graphs it calls about."""

    service: GraphService
    actor: str | None
    graphs: tuple[str, ...] = ()

    def visits(self, *actions: PolicyAction) -> dict[str, GraphSession]:
        """Return the graphs on which the caller may do all of some actions somewhere, by id."""
        found = {name: self.service.visit(name, self.actor) for name in self.graphs}
        return {n: v for n, v in found.items() if all(v.could(action) for action in actions)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool as one caller sees it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    run: Callable[[dict[str, Any]], dict[str, Any]]
    writes: bool = False
    destroys: bool = False

    def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked for; raise OmniError."""
        _check_argument_names(self, arguments)
        try:
            answer = self.run(dict(arguments))
        except msgspec.ValidationError as error:
            raise _invalid_arguments(self.name, [str(error)]) from error
        log_result_commit(answer)
        return answer


def tools_for_caller(caller: McpCaller) -> dict[str, OfferedTool]:
    """Return the tools of a caller by name, those for the server first."""
    found = [*_server_tools(caller), *(o for tool in TOOLS for o in _graph_tool(caller, tool))]
    offers = {offer.name: offer for offer in found}
    taken = {"health", "graphs_list", *(tool.name for tool in TOOLS)}
    several = len(caller.graphs) > 1
    for graph_id, visit in caller.visits(PolicyAction.INVOKE_QUERY).items():
        for query in _allowed_stored_queries(visit):
            name = f"{graph_id}_{query.name}" if several else query.name
            while name in taken:
                name = f"stored_{name}"
            taken.add(name)
            offers[name] = _stored_query_tool(name, visit, query)
    return offers


def _server_tools(caller: McpCaller) -> list[OfferedTool]:
    def graphs(given: dict[str, Any]) -> dict[str, Any]:
        page = page_request(msgspec.convert(given, PagedArguments))
        return with_page(
            to_json_value(operations.list_graphs(caller.service, caller.actor)), "graphs", page
        )

    health = OfferedTool(
        name="health",
        description="Say that the server is ready, and which version it is.",
        schema=argument_schema(ToolArguments),
        run=lambda _: to_json_value(operations.health()),
    )
    if not caller.service.could(caller.actor, PolicyAction.GRAPH_LIST):
        return [health]
    listing = OfferedTool(
        name="graphs_list",
        description="List the graphs.",
        schema=argument_schema(PagedArguments),
        run=graphs,
    )
    return [health, listing]


def _graph_tool(caller: McpCaller, tool: GraphTool) -> list[OfferedTool]:
    visits = caller.visits(*tool.actions)
    if not visits:
        return []
    return [
        OfferedTool(
            name=tool.name,
            description=tool.description,
            schema=_with_graph(argument_schema(tool.takes), caller, list(visits)),
            run=partial(_run_tool, tool, visits),
            writes=tool.writes,
            destroys=tool.destroys,
        )
    ]


def _with_graph(
    schema: dict[str, Any], caller: McpCaller, graph_ids: Sequence[str]
) -> dict[str, Any]:
    if len(caller.graphs) == 1:
        return schema
    graph = {"type": "string", "enum": list(graph_ids), "description": "Id of the graph."}
    return {
        **schema,
        "properties": {GRAPH: graph, **schema["properties"]},
        "required": [GRAPH, *schema.get("required", ())],
    }


def _run_tool(
    tool: GraphTool, visits: Mapping[str, GraphSession], given: dict[str, Any]
) -> dict[str, Any]:
    graph_id = given.pop(GRAPH, None) or next(iter(visits))
    if graph_id not in visits:
        raise _invalid_arguments(tool.name, [f"`{GRAPH}` is one of {', '.join(visits)}"])
    return tool.run(visits[graph_id], msgspec.convert(given, tool.takes))


def _allowed_stored_queries(visit: GraphSession) -> list[StoredQuery]:
    found = operations.visible(visit)
    return [
        query
        for query in found
        if all(map(visit.could, stored_query_tools.required_actions(query)))
    ]


def _stored_query_tool(name: str, visit: GraphSession, query: StoredQuery) -> OfferedTool:
    entry = query.entry()
    return OfferedTool(
        name=name,
        description=stored_query_tools.tool_description(entry),
        schema=stored_query_tools.tool_schema(entry),
        run=partial(stored_query_tools.invoke, visit, query),
        writes=query.is_mutation,
        destroys=query.is_mutation,
    )


def _check_argument_names(offer: OfferedTool, arguments: Mapping[str, Any]) -> None:
    """Raise unless everything is given that must be, and nothing else than may be."""
    known = offer.schema["properties"]
    missing = [name for name in offer.schema.get("required", ()) if name not in arguments]
    problems = [f"`{name}` is missing" for name in missing]
    problems += [f"there is no `{name}`" for name in arguments if name not in known]
    if problems:
        takes = ", ".join(f"`{name}`" for name in known) or "nothing"
        raise _invalid_arguments(offer.name, [*problems, f"it takes {takes}"])


def _invalid_arguments(tool: str, problems: Sequence[str]) -> InvalidInput:
    message = f"'{tool}' cannot be called like this: {'; '.join(problems)}"
    return InvalidInput(message, code="arguments_invalid", problems=list(problems))
