"""This module connects commands to servers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from omnigraph.cli.addresses import WrongUse
from omnigraph.cli.scope import Scope
from omnigraph.errors import NotFound, OmniError
from omnigraph.service.client import RemoteGraph, connect, list_graphs
from omnigraph.service.config import Operator, token_for
from omnigraph.write.run import MutationResult


def open_served(scope: Scope, operator: Operator) -> RemoteGraph:
    """Connect to a graph of a server."""
    token = token_for(scope.address, operator, os.environ)
    if scope.graph is None and "/graphs/" not in scope.address:
        _refuse_unnamed(scope.address, token)
    return connect(scope.address, token=token, graph=scope.graph)


def _refuse_unnamed(url: str, token: str | None) -> None:
    try:
        ids = ", ".join(graph["graph_id"] for graph in list_graphs(url, token=token))
    except NotFound:
        return  # no list of graphs: a gateway may show a graph under an address of its own
    except OmniError as error:
        message = f"pass --graph ID: {url} does not list its graphs: {error.message}"
        raise WrongUse(message) from error
    raise WrongUse(f"pass --graph ID; {url} has: {ids or 'none'}")


def run_stored(
    graph: RemoteGraph,
    name: str,
    params: Mapping[str, Any] | None,
    branch: str,
    if_commit: str | None,
) -> MutationResult:
    """Run a stored mutation."""
    return graph.invoke(name, params, branch=branch, expect_mutation=True, if_commit=if_commit)
