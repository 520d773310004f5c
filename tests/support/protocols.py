"""Proof for mypy that embedded and remote graphs have the protocol of graphs."""

from __future__ import annotations

from typing import Any

from omnigraph.graph import Graph
from omnigraph.graph.protocol import GraphApi
from omnigraph.service.client import RemoteGraph


def embedded(graph: Graph) -> GraphApi[Any, Any]:
    """Return an embedded graph as what both have in common."""
    return graph


def remote(graph: RemoteGraph) -> GraphApi[Any, Any]:
    """Return a remote graph as what both have in common."""
    return graph
