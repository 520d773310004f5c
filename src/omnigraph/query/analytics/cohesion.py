"""Measure how densely the neighbourhood of a node is connected: core numbers and triangles.

Both look at which nodes are neighbours at all: directions, parallel edges and loops do not matter.
"""

from __future__ import annotations

import numpy as np

from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.analytics import kernels
from omnigraph.query.analytics.network import AnalysisNetwork, edge_ends
from omnigraph.query.analytics.options import AnalysisOptions
from omnigraph.query.limits import QueryBudget
from omnigraph.storage.columns import Positions


def core_numbers(
    network: AnalysisNetwork, _: AnalysisOptions, budget: QueryBudget
) -> tuple[Positions, int]:
    """Return the greatest k for each node so that the node is in a k-core."""
    return kernels.core_numbers(network.both_ways.simple, budget), 1


def triangle_counts(
    network: AnalysisNetwork, _: AnalysisOptions, budget: QueryBudget
) -> tuple[Positions, int]:
    """Return in how many triangles each node is.

    Edges are followed towards the end with more neighbours only, so that hubs cost little.
    """
    simple = network.both_ways.simple
    budget.check(kernels.OPERATOR)
    degrees = np.diff(simple.starts)
    here, there = edge_ends(simple)
    fewer = degrees[here] < degrees[there]
    kept = fewer | ((degrees[here] == degrees[there]) & (here < there))
    starts = np.zeros(network.count + 1, np.int64)
    np.cumsum(np.bincount(here[kept], minlength=network.count), out=starts[1:])
    acyclic = CsrAdjacency(starts, there[kept], there[kept], network.count, is_simple=True)
    return kernels.count_triangles(acyclic, budget), 1
