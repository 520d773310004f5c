"""Proof for mypy that embedded and remote graphs have the protocol of graphs."""

from __future__ import annotations

from omnigraph.graph import Graph
from omnigraph.graph.protocol import GraphProtocol
from omnigraph.service.client import RemoteGraph


def embedded(graph: Graph) -> GraphProtocol:
    """Return an embedded graph as what both have in common."""
    return graph


def remote(graph: RemoteGraph) -> GraphProtocol:
    """Return a remote graph as what both have in common."""
    return graph
