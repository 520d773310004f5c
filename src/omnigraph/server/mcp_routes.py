"""MCP over HTTP: `POST /mcp` for the server, `POST /graphs/{graph_id}/mcp` for one graph."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from starlette.responses import Response

from omnigraph.server.read_scheduler import ReadScheduler
from omnigraph.server.request import RequestContext, check_json
from omnigraph.server.routes import HttpRoute
from omnigraph.server.settings import MAX_LOAD_BYTES
from omnigraph.service.operations import AnyOperation


class McpRoutes:
    """The routes of agents, whose messages the protocol defines."""

    def __init__(self, scheduler: ReadScheduler, operations: Sequence[AnyOperation]) -> None:
        # An optional package of the same layer, which is not imported statically.
        self._http: Any = import_module("omnigraph.mcp.http")
        self._tools: Any = import_module("omnigraph.mcp.tool_catalog")
        self._operations = tuple(operations)
        self.agents = self._http.McpHttpHandler(scheduler.run, MAX_LOAD_BYTES)
        self.routes = tuple(
            HttpRoute(method="POST", path=path, handle=self._handle, operation="mcp", writes=True)
            for path in ("/mcp", "/graphs/{graph_id}/mcp")
        )

    async def _handle(self, context: RequestContext) -> Response:
        is_graph = "graph_id" in context.request.path_params
        graphs = (context.session.registered.id,) if is_graph else ()
        caller = self._tools.McpCaller(context.service, context.actor, graphs, self._operations)
        check_json(context.request)
        body = await context.body(MAX_LOAD_BYTES)
        with context.app.scheduler.admit(context.actor):
            answer = self.agents.answer(caller, context.request.scope, body, context.cancellation)
            reply = await context.while_connected(answer)
        return Response(reply.body, reply.status, headers=reply.headers)
