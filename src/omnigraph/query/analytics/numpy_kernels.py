"""Loops of graph algorithms with NumPy, for installations without compiled kernels.

Each gives the same answer as the function of this name in `analytics/kernels.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.storage.columns import Positions

_PART_PAIRS = 1_000_000
"""Pairs of nodes that are made at once."""
_CHECK_NODES = 4_096
"""Nodes that are settled one by one between two checks of the limits."""
Check = Callable[[], None]


def component_roots(adjacency: CsrAdjacency, ranks: Positions, check: Check) -> Positions:
    """Return for each rank the lowest rank of its component."""
    here = np.repeat(ranks, adjacency.degrees)
    there = ranks[adjacency.nodes]
    roots = np.arange(adjacency.count)
    while True:
        check()
        one, other = roots[here], roots[there]
        apart = one != other
        if not apart.any():
            return roots
        here, there = here[apart], there[apart]
        low = np.minimum(one[apart], other[apart])
        np.minimum.at(roots, np.maximum(one[apart], other[apart]), low)
        while True:
            check()
            above = roots[roots]
            if np.array_equal(above, roots):
                break
            roots = above


def choose_labels(adjacency: CsrAdjacency, labels: Positions, check: Check) -> Positions:
    """Return the label with most votes of each node and its neighbours, of several the lowest."""
    chosen = labels.copy()
    for first, last in _node_parts(adjacency.degrees):
        check()
        own = np.arange(first, last)
        rows, places = adjacency.places(own)
        voters = np.concatenate([np.arange(last - first), rows])
        votes = np.concatenate([labels[own], labels[adjacency.nodes[places]]])
        pairs, counts = np.unique(voters * adjacency.count + votes, return_counts=True)
        voters, votes = np.divmod(pairs, adjacency.count)
        order = np.lexsort((votes, -counts, voters))
        begins = np.searchsorted(voters, np.arange(last - first))
        chosen[first:last] = votes[order[begins]]
    return chosen


def nearest_distances(
    adjacency: CsrAdjacency, weights: npt.NDArray[np.float64], source: int, check: Check
) -> npt.NDArray[np.float64]:
    """Return the length of the shortest path from a node to each node; infinite without one."""
    distances = np.full(adjacency.count, np.inf)
    distances[source] = 0.0
    heap, settled = [(0.0, source)], 0
    while heap:
        if settled % _CHECK_NODES == 0:
            check()
        distance, node = heappop(heap)
        settled += 1
        if distance > distances[node]:
            continue
        edges = slice(adjacency.starts[node], adjacency.starts[node + 1])
        targets, reached = adjacency.nodes[edges], distance + weights[edges]
        nearer = reached < distances[targets]
        np.minimum.at(distances, targets[nearer], reached[nearer])
        for target, length in zip(targets[nearer].tolist(), reached[nearer].tolist(), strict=True):
            heappush(heap, (length, target))
    return distances


def core_numbers(simple: CsrAdjacency, check: Check) -> Positions:
    """Return the greatest k for each node so that it is in a subgraph where all have k neighbours.

    No node has a neighbour twice.
    """
    left, cores = simple.degrees.copy(), np.zeros(simple.count, np.int64)
    remains = np.ones(simple.count, np.bool_)
    core = 0
    while remains.any():
        check()
        core = max(core, int(left[remains].min()))
        leaving = np.flatnonzero(remains & (left <= core))
        cores[leaving] = core
        remains[leaving] = False
        _, places = simple.places(leaving)
        left -= np.bincount(simple.nodes[places], minlength=simple.count)
    return cores


def count_triangles(acyclic: CsrAdjacency, check: Check) -> Positions:
    """Count the triangles of each node; every edge leads from one end only, without cycles."""
    counts = np.zeros(acyclic.count, np.int64)
    here = np.repeat(np.arange(acyclic.count), acyclic.degrees)
    there = acyclic.nodes.astype(np.int64)
    for first, last in _node_parts(acyclic.degrees[here]):
        check()
        rows, places = acyclic.places(here[first:last])
        near, far, third = here[first + rows], there[first + rows], there[places]
        closed = acyclic.connects(far, third)
        for corner in (near, far, third):
            counts += np.bincount(corner[closed], minlength=acyclic.count)
    return counts


def _node_parts(degrees: Positions) -> list[tuple[int, int]]:
    """Return ranges of rows that have about as many edges as are made at once."""
    ends = np.cumsum(degrees + 1)
    if not len(ends):
        return []
    bounds = np.searchsorted(ends, np.arange(_PART_PAIRS, int(ends[-1]), _PART_PAIRS), "right")
    bounds = np.unique([0, *bounds.tolist(), len(ends)])
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
