"""Find the length of the shortest path from one node to every other, by Dijkstra's algorithm."""

from __future__ import annotations

import numpy as np

from omnigraph.plan.expressions import Direction
from omnigraph.query.analytics.kernels import (
    OPERATOR,
    STEP_EDGES,
    Floats,
    kernel_edges,
    settle_nearest,
    wait_until_compiled,
)
from omnigraph.query.analytics.network import AnalysisNetwork
from omnigraph.query.analytics.options import ShortestPathOptions
from omnigraph.query.limits import QueryBudget


def path_distances(
    network: AnalysisNetwork, options: ShortestPathOptions, budget: QueryBudget
) -> tuple[Floats, int]:
    """Return how far each node is from the source; NaN where no path leads."""
    source = network.find(options.source)
    adjacency = {
        Direction.OUT: lambda: network.out,
        Direction.IN: lambda: network.into,
        Direction.BOTH: lambda: network.both_ways,
    }[options.direction]()
    if options.weight is None:
        weights = np.ones(len(adjacency.nodes))
    else:
        weights = network.weights(options.weight)[adjacency.edges]
    edges = kernel_edges(adjacency)
    distances = np.full(network.count, np.inf)
    distances[source] = 0.0
    members, places = np.full(network.count, source), np.full(network.count, -1)
    places[source] = 0
    heap, size = (members, places), 1
    fixed = (edges, weights, distances, heap)
    wait_until_compiled(settle_nearest, (*fixed, size, STEP_EDGES), budget)
    while size:
        budget.check(OPERATOR)
        size = settle_nearest(*fixed, size, STEP_EDGES)
    return np.where(np.isinf(distances), np.nan, distances), 1
