"""Loops of graph algorithms, compiled ahead of time; with NumPy where there is no compiled library.

Limits are checked every million edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.query import kernel_library
from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.analytics import numpy_kernels
from omnigraph.query.kernel_library import contiguous, edge_arrays
from omnigraph.query.limits import QueryBudget
from omnigraph.storage.columns import Positions

OPERATOR = "Analyze"
"""What errors of limits name."""
STEP_EDGES = 1_000_000
"""Edges that are followed between two checks of the limits."""
Floats: TypeAlias = npt.NDArray[np.float64]


def component_roots(adjacency: CsrAdjacency, ranks: Positions, budget: QueryBudget) -> Positions:
    """Return for each rank the lowest rank of its component."""
    check = _checker(budget)
    if kernel_library.LIBRARY is None:
        return numpy_kernels.component_roots(adjacency, ranks, check)
    parents = np.arange(adjacency.count)
    ranks = contiguous(ranks, np.int64)
    _run_over_nodes("join_components", adjacency, (ranks, parents), check)
    while True:
        check()
        above = parents[parents]
        if np.array_equal(above, parents):
            return parents
        parents = above


def choose_labels(adjacency: CsrAdjacency, labels: Positions, budget: QueryBudget) -> Positions:
    """Return the label with most votes of each node and its neighbours, of several the lowest."""
    check = _checker(budget)
    if kernel_library.LIBRARY is None:
        return numpy_kernels.choose_labels(adjacency, labels, check)
    labels = contiguous(labels, np.int64)
    chosen, votes = np.empty_like(labels), np.zeros(len(labels), np.int64)
    _run_over_nodes("choose_labels", adjacency, (labels, chosen, votes), check)
    return chosen


def nearest_distances(
    adjacency: CsrAdjacency, weights: Floats, source: int, budget: QueryBudget
) -> Floats:
    """Return the length of the shortest path from a node to each node; infinite without one."""
    check, library = _checker(budget), kernel_library.LIBRARY
    if library is None:
        return numpy_kernels.nearest_distances(adjacency, weights, source, check)
    starts, nodes = edge_arrays(*adjacency.arrays)
    weights = contiguous(weights, np.float64)
    distances = np.full(adjacency.count, np.inf)
    distances[source] = 0.0
    members, places = np.full(adjacency.count, source), np.full(adjacency.count, -1)
    places[source] = 0
    heap, size = (distances, members, places), 1
    while size:
        check()
        size = library.run(
            "settle_nearest", starts, nodes, weights, *heap, size, STEP_EDGES, nodes=nodes
        )
    return distances


def core_numbers(simple: CsrAdjacency, budget: QueryBudget) -> Positions:
    """Return the greatest k for each node so that it is in a subgraph where all have k neighbours.

    Nodes are taken out by the number of neighbours they have left (Batagelj and Zaversnik).
    """
    check = _checker(budget)
    if kernel_library.LIBRARY is None:
        return numpy_kernels.core_numbers(simple, check)
    cores = np.diff(contiguous(simple.starts, np.int64))
    members = np.argsort(cores, kind="stable")
    places = np.empty_like(members)
    places[members] = np.arange(simple.count)
    firsts = np.zeros(int(cores.max(initial=0)) + 2, np.int64)
    np.cumsum(np.bincount(cores), out=firsts[1:])
    _run_over_nodes("peel_cores", simple, (cores, members, places, firsts), check)
    return cores


def count_triangles(acyclic: CsrAdjacency, budget: QueryBudget) -> Positions:
    """Count the triangles of each node; every edge leads from one end only, without cycles."""
    check = _checker(budget)
    if kernel_library.LIBRARY is None:
        return numpy_kernels.count_triangles(acyclic, check)
    marks, counts = np.zeros(acyclic.count, np.int64), np.zeros(acyclic.count, np.int64)
    _run_over_nodes("count_triangles", acyclic, (marks, counts), check)
    return counts


def _checker(budget: QueryBudget) -> Callable[[], None]:
    return lambda: budget.check(OPERATOR)


def _run_over_nodes(
    name: str, adjacency: CsrAdjacency, arrays: tuple[Positions, ...], check: Callable[[], None]
) -> None:
    """Run a kernel over all nodes, a part at a time: it returns the node to go on with."""
    library = kernel_library.LIBRARY
    assert library is not None, "callers look for it"
    starts, nodes = edge_arrays(*adjacency.arrays)
    node, count = 0, adjacency.count
    while node < count:
        check()
        node = library.run(name, starts, nodes, count, *arrays, node, STEP_EDGES, nodes=nodes)
