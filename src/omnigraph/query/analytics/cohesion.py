"""Measure how densely the neighbourhood of a node is connected: core numbers and triangles.

Both look at which nodes are neighbours at all: directions, parallel edges and loops do not matter.
"""

from __future__ import annotations

import numpy as np

from omnigraph.query.analytics.kernels import (
    OPERATOR,
    count_triangles,
    kernel_array,
    kernel_edges,
    peel_cores,
    run_over_nodes,
)
from omnigraph.query.analytics.network import AnalysisNetwork, edge_ends
from omnigraph.query.analytics.options import AnalysisOptions
from omnigraph.query.limits import QueryBudget
from omnigraph.storage.columns import Positions


def core_numbers(
    network: AnalysisNetwork, _: AnalysisOptions, budget: QueryBudget
) -> tuple[Positions, int]:
    """Return the greatest k for each node so that it is in a subgraph where all have k neighbours.

    Nodes are taken out by the number of neighbours they have left (Batagelj and Zaversnik).
    """
    simple = network.both_ways.simple
    budget.check(OPERATOR)
    cores = np.diff(simple.starts)
    members = np.argsort(cores, kind="stable")
    places = np.empty_like(members)
    places[members] = np.arange(network.count)
    firsts = np.zeros(int(cores.max(initial=0)) + 2, np.int64)
    np.cumsum(np.bincount(cores), out=firsts[1:])
    edges = kernel_edges(simple)
    run_over_nodes(peel_cores, (edges, cores, (members, places, firsts)), network.count, budget)
    return cores, 1


def triangle_counts(
    network: AnalysisNetwork, _: AnalysisOptions, budget: QueryBudget
) -> tuple[Positions, int]:
    """Return in how many triangles each node is.

    Edges are followed towards the end with more neighbours only, so that hubs cost little.
    """
    simple = network.both_ways.simple
    budget.check(OPERATOR)
    degrees = np.diff(simple.starts)
    here, there = edge_ends(simple)
    fewer = degrees[here] < degrees[there]
    kept = fewer | ((degrees[here] == degrees[there]) & (here < there))
    starts = np.zeros(network.count + 1, np.int64)
    np.cumsum(np.bincount(here[kept], minlength=network.count), out=starts[1:])
    edges = kernel_array(starts), kernel_array(there[kept])
    marks, counts = np.zeros(network.count, np.int64), np.zeros(network.count, np.int64)
    run_over_nodes(count_triangles, (edges, marks, counts), network.count, budget)
    return counts, 1
