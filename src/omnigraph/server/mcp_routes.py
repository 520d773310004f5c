"""This module lets agents in: `POST /mcp` for the server, `POST /graphs/{graph_id}/mcp` for one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from starlette.responses import Response

from omnigraph.server.endpoint import Endpoint
from omnigraph.server.read_scheduler import ReadScheduler
from omnigraph.server.request import RequestContext, check_json
from omnigraph.server.settings import MAX_LOAD_BYTES


class McpRoutes:
    """The routes of agents; those who call know their shapes from the protocol."""

    def __init__(self, lanes: ReadScheduler) -> None:
        # An optional room beside this one: neither stands on the other.
        self._http: Any = import_module("omnigraph.mcp.http")
        self._offers: Any = import_module("omnigraph.mcp.tool_catalog")
        self.agents = self._http.McpHttpHandler(lanes.run, MAX_LOAD_BYTES)
        self.endpoints = (
            self._endpoint("/mcp", "Tools for agents, of the server"),
            self._endpoint("/graphs/{graph_id}/mcp", "Tools for agents, of a graph"),
        )

    def _endpoint(self, path: str, summary: str) -> Endpoint:
        return Endpoint(
            method="POST",
            path=path,
            operation_id="mcp",
            tag="mcp",
            handle=self._answered,
            summary=summary,
        )

    async def _answered(self, asked: RequestContext) -> Response:
        is_graph = "graph_id" in asked.request.path_params
        graphs = (asked.visit.served.id,) if is_graph else ()
        caller = self._offers.McpCaller(asked.service, asked.actor, graphs)
        check_json(asked.request)
        body = await asked.body(MAX_LOAD_BYTES)
        with asked.front.lanes.admit(asked.actor):
            answer = self.agents.answer(caller, asked.request.scope, body, asked.cancellation)
            reply = await asked.while_connected(answer)
        return Response(reply.body, reply.status, headers=reply.headers)
