"""This module lets agents in: `POST /mcp` for the server, `POST /graphs/{graph_id}/mcp` for one."""

from __future__ import annotations

from concurrent.futures import Executor
from importlib import import_module
from typing import Any

from starlette.responses import Response

from omnigraph.server.asked import Asked
from omnigraph.server.body import check_json
from omnigraph.server.endpoint import Endpoint
from omnigraph.server.limits import LOAD_BYTES


class AgentRoutes:
    """The routes of agents; those who call know their shapes from the protocol."""

    def __init__(self, threads: Executor) -> None:
        # An optional room beside this one: neither stands on the other.
        self._http: Any = import_module("omnigraph.mcp.http")
        self._offers: Any = import_module("omnigraph.mcp.offers")
        self.agents = self._http.Agents(threads, LOAD_BYTES)
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

    async def _answered(self, asked: Asked) -> Response:
        is_graph = "graph_id" in asked.request.path_params
        graphs = (asked.visit.served.id,) if is_graph else ()
        caller = self._offers.Caller(asked.service, asked.actor, graphs)
        check_json(asked.request)
        body = await asked.body(LOAD_BYTES)
        reply = await self.agents.answer(caller, asked.request.scope, body)
        return Response(reply.body, reply.status, headers=reply.headers)
