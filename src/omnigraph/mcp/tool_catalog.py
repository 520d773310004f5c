"""The tools a caller is offered: those whose actions the policy allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from omnigraph.errors import InvalidInput
from omnigraph.mcp import stored_query_tools
from omnigraph.mcp.tools import OperationTool, operation_tools
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service.operations import OPERATIONS, AnyOperation
from omnigraph.service.operations.stored import visible
from omnigraph.service.operations.tool_arguments import argument_schema
from omnigraph.service.session import (
    GraphService,
    GraphSession,
    ServiceSession,
    log_result_commit,
)
from omnigraph.service.stored_queries import StoredQuery

GRAPH = "graph"
"""The argument that names the graph, where there are several."""


@dataclass(frozen=True, slots=True)
class McpCaller:
    """The actor, the IDs of the graphs it may address, and the available operations."""

    service: GraphService
    actor: str | None
    graphs: tuple[str, ...] = ()
    operations: tuple[AnyOperation, ...] = OPERATIONS

    @property
    def service_session(self) -> ServiceSession:
        """The session of the caller on the server."""
        return ServiceSession(self.service, self.actor)

    def sessions(self, *actions: PolicyAction) -> dict[str, GraphSession]:
        """Return the graphs on which the caller may do all of some actions somewhere, by ID."""
        sessions = {name: self.service.session(name, self.actor) for name in self.graphs}
        return {
            name: session
            for name, session in sessions.items()
            if all(session.may_somewhere(action) for action in actions)
        }


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
        """Run the tool; raise OmniError."""
        _check_argument_names(self, arguments)
        try:
            answer = self.run(dict(arguments))
        except msgspec.ValidationError as error:
            raise _invalid_arguments(self.name, [str(error)]) from error
        log_result_commit(answer)
        return answer


def tools_for_caller(caller: McpCaller) -> dict[str, OfferedTool]:
    """Return the tools of a caller by name: those of operations, then stored queries."""
    tools = operation_tools(caller.operations)
    offers = {tool.name: offer for tool in tools if (offer := _offer(caller, tool)) is not None}
    taken = {tool.name for tool in tools}
    several = len(caller.graphs) > 1
    for graph_id, session in caller.sessions(PolicyAction.INVOKE_QUERY).items():
        for query in visible(session):
            if not all(map(session.may_somewhere, stored_query_tools.required_actions(query))):
                continue
            name = f"{graph_id}_{query.name}" if several else query.name
            while name in taken:
                name = f"stored_{name}"
            taken.add(name)
            offers[name] = _stored_query_tool(name, session, query)
    return offers


def _offer(caller: McpCaller, tool: OperationTool) -> OfferedTool | None:
    """Return a tool as the caller sees it; None if its actions are not allowed."""
    schema = argument_schema(tool.arguments)
    run: Callable[[dict[str, Any]], dict[str, Any]]
    if tool.is_server_tool:
        session = caller.service_session
        if not all(session.may_somewhere(action) for action in tool.actions):
            return None
        run = partial(tool.run, session)
    else:
        sessions = caller.sessions(*tool.actions)
        if not sessions:
            return None
        schema = _with_graph(schema, caller, list(sessions))
        run = partial(_run_tool, tool, sessions)
    return OfferedTool(
        name=tool.name,
        description=tool.tool.description,
        schema=schema,
        run=run,
        writes=tool.operation.writes,
        destroys=tool.tool.destroys,
    )


def _with_graph(
    schema: dict[str, Any], caller: McpCaller, graph_ids: Sequence[str]
) -> dict[str, Any]:
    if len(caller.graphs) == 1:
        return schema
    graph = {"type": "string", "enum": list(graph_ids), "description": "ID of the graph."}
    return {
        **schema,
        "properties": {GRAPH: graph, **schema["properties"]},
        "required": [GRAPH, *schema.get("required", ())],
    }


def _run_tool(
    tool: OperationTool, sessions: Mapping[str, GraphSession], given: dict[str, Any]
) -> dict[str, Any]:
    graph_id = given.pop(GRAPH, None) or next(iter(sessions))
    if graph_id not in sessions:
        raise _invalid_arguments(tool.name, [f"`{GRAPH}` is one of {', '.join(sessions)}"])
    return tool.run(sessions[graph_id], given)


def _stored_query_tool(name: str, session: GraphSession, query: StoredQuery) -> OfferedTool:
    entry = query.entry()
    return OfferedTool(
        name=name,
        description=stored_query_tools.tool_description(entry),
        schema=stored_query_tools.tool_schema(entry),
        run=partial(stored_query_tools.invoke, session, query),
        writes=query.is_mutation,
        destroys=query.is_mutation,
    )


def _check_argument_names(offer: OfferedTool, arguments: Mapping[str, Any]) -> None:
    """Raise unless all required arguments are given, and no unknown ones."""
    names = offer.schema["properties"]
    missing = [name for name in offer.schema.get("required", ()) if name not in arguments]
    problems = [f"`{name}` is missing" for name in missing]
    problems += [f"`{name}` is unknown" for name in arguments if name not in names]
    if problems:
        takes = ", ".join(f"`{name}`" for name in names) or "nothing"
        raise _invalid_arguments(offer.name, [*problems, f"it takes {takes}"])


def _invalid_arguments(tool: str, problems: Sequence[str]) -> InvalidInput:
    message = f"'{tool}' cannot be called like this: {'; '.join(problems)}"
    return InvalidInput(message, code="arguments_invalid", problems=list(problems))
