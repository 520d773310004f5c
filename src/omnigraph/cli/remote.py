"""Connect commands to servers."""

from __future__ import annotations

import os

from omnigraph.cli.graph_address import GraphAddress
from omnigraph.cli.options import InvalidUsage
from omnigraph.errors import NotFound, OmniError
from omnigraph.service.client import RemoteGraph, connect, list_graphs
from omnigraph.service.user_config import UserConfig, token_for


def open_remote_graph(scope: GraphAddress, operator: UserConfig) -> RemoteGraph:
    """Connect to a graph of a server."""
    token = token_for(scope.address, operator, os.environ)
    if scope.graph is None and "/graphs/" not in scope.address:
        _require_graph_id(scope.address, token)
    return connect(scope.address, token=token, graph=scope.graph)


def _require_graph_id(url: str, token: str | None) -> None:
    try:
        ids = ", ".join(graph["graph_id"] for graph in list_graphs(url, token=token))
    except NotFound:
        return  # no list of graphs: a gateway may show a graph under an address of its own
    except OmniError as error:
        message = f"pass --graph ID: {url} does not list its graphs: {error.message}"
        raise InvalidUsage(message) from error
    raise InvalidUsage(f"pass --graph ID; {url} has: {ids or 'none'}")
