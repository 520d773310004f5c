"""MCP server: list tools, call them, read resources, for the caller of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from omnigraph.mcp.errors import describe_failure
from omnigraph.mcp.pagination import encode_result
from omnigraph.mcp.resources import resources_for_caller
from omnigraph.mcp.tool_catalog import McpCaller, OfferedTool, tools_for_caller
from omnigraph.policy import log_decisions_once
from omnigraph.query.limits import NEVER_CANCELLED, Cancellation, QueryCancelled
from omnigraph.version import __version__

McpRequest: TypeAlias = ServerRequestContext[Any, Any]
_AnswerT = TypeVar("_AnswerT")
Runner: TypeAlias = Callable[[str | None, Callable[[], Any], Cancellation], Awaitable[Any]]
"""Runs the work of an actor in a thread, whose queries a cancellation stops."""
INSTRUCTIONS = (
    "OmniGraph is a typed property graph with branches. Read the schema first (`schema_get`). "
    "Prefer a tool made for your question; `query` answers any other. Answers are cut when they "
    "are long: `more` says how to get the rest. Change data by `propose_change`, show what it "
    "changes, and `merge` once that is approved. A failure says under `next` what to do."
)


def make_server(
    caller_of: Callable[[McpRequest], McpCaller],
    run: Runner,
    cancellation_of: Callable[[McpRequest], Cancellation] = lambda _: NEVER_CANCELLED,
) -> Server[Any]:
    """Return the server; `run` does the work of an actor in a thread."""
    handlers = _McpHandlers(caller_of, run, cancellation_of)
    return Server(
        "omnigraph",
        version=__version__,
        title="OmniGraph",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
    )


class _McpHandlers:
    """What is done for each method of the protocol."""

    def __init__(
        self,
        caller_of: Callable[[McpRequest], McpCaller],
        run: Runner,
        cancellation_of: Callable[[McpRequest], Cancellation],
    ) -> None:
        self._caller_of = caller_of
        self._runner = run
        self._cancellation_of = cancellation_of

    async def list_tools(
        self, request: McpRequest, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """List the tools."""
        offers = await self._run(request, lambda: tools_for_caller(self._caller_of(request)))
        return types.ListToolsResult(tools=[_tool(offer) for offer in offers.values()])

    async def call_tool(
        self, request: McpRequest, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; one that the caller may not call is unknown."""
        return await self._run(request, lambda: self._called(request, params))

    def _called(
        self, request: McpRequest, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        offer = tools_for_caller(self._caller_of(request)).get(params.name)
        if offer is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool '{params.name[:128]}'")
        try:
            call = partial(offer.call, params.arguments or {})
            # A change that has begun is finished, also when the agent goes away.
            return _result(encode_result(NEVER_CANCELLED.run(call) if offer.writes else call()))
        except QueryCancelled:
            raise
        except Exception as error:  # noqa: BLE001 - every failure is returned to the agent
            return _result(encode_result(describe_failure(error)), failed=True)

    async def list_resources(
        self, request: McpRequest, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the resources."""
        readables = await self._run(request, lambda: resources_for_caller(self._caller_of(request)))
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=readable.uri,
                    name=readable.name,
                    description=readable.description,
                    mime_type=readable.media_type,
                )
                for readable in readables.values()
            ]
        )

    async def read_resource(
        self, request: McpRequest, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read a resource; one that the caller may not read is unknown."""
        return await self._run(request, lambda: self._read(request, str(params.uri)))

    def _read(self, request: McpRequest, uri: str) -> types.ReadResourceResult:
        readable = resources_for_caller(self._caller_of(request)).get(uri)
        if readable is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown resource '{uri[:256]}'")
        try:
            text = readable.read()
        except Exception as error:
            failure = describe_failure(error)
            raise MCPError(types.INTERNAL_ERROR, failure["message"], failure) from error
        contents = types.TextResourceContents(uri=uri, mime_type=readable.media_type, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, _request: McpRequest, _: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """List the prompts, of which there are none."""
        return types.ListPromptsResult(prompts=[])

    async def _run(self, request: McpRequest, run: Callable[[], _AnswerT]) -> _AnswerT:
        """Run something that blocks in a thread."""
        actor, cancellation = self._caller_of(request).actor, self._cancellation_of(request)
        with log_decisions_once():
            return cast("_AnswerT", await self._runner(actor, run, cancellation))


def _tool(offer: OfferedTool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=not offer.writes,
        destructive_hint=offer.destroys,
        open_world_hint=False,
    )
    return types.Tool(
        name=offer.name,
        description=offer.description,
        input_schema=dict(offer.schema),
        annotations=hints,
    )


def _result(text: str, *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)
