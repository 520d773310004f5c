"""Find the length of the shortest path from one node to every other, by Dijkstra's algorithm."""

from __future__ import annotations

import numpy as np

from omnigraph.plan.expressions import Direction
from omnigraph.query.analytics.kernels import Floats, nearest_distances
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
    distances = nearest_distances(adjacency, weights, source, budget)
    return np.where(np.isinf(distances), np.nan, distances), 1
