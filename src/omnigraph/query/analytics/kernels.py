"""Loops of graph algorithms that NumPy cannot express, compiled when first used.

Each does a bounded part of its work and returns where to go on, so that callers check limits.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.kernels import CompiledKernel, Numbers
from omnigraph.query.limits import QueryBudget

OPERATOR = "Analyze"
"""What errors of limits name."""
STEP_EDGES = 1_000_000
"""Edges that are followed between two checks of the limits."""
_COMPILE_POLL_SECONDS = 0.05

Edges: TypeAlias = tuple[Numbers, Numbers]
"""Where the neighbours of each node start, and all neighbours."""
Floats: TypeAlias = npt.NDArray[np.float64]


def wait_until_compiled(
    kernel: CompiledKernel[..., Any],
    args: tuple[Any, ...],
    budget: QueryBudget,
) -> None:
    """Compile a loop for some arguments unless it is; limits are checked meanwhile."""
    while not kernel.is_ready(*args, seconds=_COMPILE_POLL_SECONDS):
        budget.check(OPERATOR)


def run_over_nodes(
    kernel: CompiledKernel[..., int], args: tuple[Any, ...], count: int, budget: QueryBudget
) -> None:
    """Run a loop over all nodes, a part at a time: it returns the node to go on with."""
    if count:
        wait_until_compiled(kernel, (*args, 0, STEP_EDGES), budget)
    node = 0
    while node < count:
        budget.check(OPERATOR)
        node = kernel(*args, node, STEP_EDGES)


def kernel_edges(adjacency: CsrAdjacency) -> Edges:
    """Return the arrays of a network that a loop follows."""
    starts, nodes = adjacency.arrays
    return kernel_array(starts), kernel_array(nodes)


def kernel_array(array: Numbers) -> Numbers:
    """Return an array that is read only, so that a loop is compiled once for all of a type."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


@CompiledKernel
def join_components(edges: Edges, ranks: Numbers, parents: Numbers, begin: int, most: int) -> int:
    """Join the trees of both ends of each edge; the root of a tree is its lowest rank."""
    starts, nodes = edges
    node, followed = begin, 0
    while node < len(starts) - 1 and followed <= most:
        followed += 1 + starts[node + 1] - starts[node]
        for place in range(starts[node], starts[node + 1]):
            one, other = ranks[node], ranks[nodes[place]]
            while parents[one] != one:
                parents[one] = parents[parents[one]]
                one = parents[one]
            while parents[other] != other:
                parents[other] = parents[parents[other]]
                other = parents[other]
            if one < other:
                parents[other] = one
            else:
                parents[one] = other
        node += 1
    return node


@CompiledKernel
def choose_labels(
    edges: Edges, labels: Numbers, chosen: Numbers, votes: Numbers, begin: int, most: int
) -> int:
    """Choose the label with most votes of each node and its neighbours, of several the lowest.

    `votes` has a zero for each label, and has again afterwards.
    """
    starts, nodes = edges
    node, followed = begin, 0
    while node < len(starts) - 1 and followed <= most:
        followed += 1 + starts[node + 1] - starts[node]
        best = labels[node]
        votes[best] = 1
        for place in range(starts[node], starts[node + 1]):
            label = labels[nodes[place]]
            votes[label] += 1
            if votes[label] > votes[best] or (votes[label] == votes[best] and label < best):
                best = label
        votes[labels[node]] = 0
        for place in range(starts[node], starts[node + 1]):
            votes[labels[nodes[place]]] = 0
        chosen[node] = best
        node += 1
    return node


@CompiledKernel
def settle_nearest(
    edges: Edges,
    weights: Floats,
    distances: Floats,
    heap: tuple[Numbers, Numbers],
    size: int,
    most: int,
) -> int:
    """Settle the nearest nodes of a heap and relax their edges; return the size of the heap.

    The heap has nodes in order of distance, and for each node its place, -1 for those outside.
    """
    starts, nodes = edges
    members, places = heap
    followed = 0
    while size > 0 and followed <= most:
        node, last = members[0], members[size - 1]
        size -= 1
        places[node] = -1
        hole = 0
        while 2 * hole + 1 < size:  # the last member sinks from the top
            child = 2 * hole + 1
            if child + 1 < size and distances[members[child + 1]] < distances[members[child]]:
                child += 1
            if distances[members[child]] >= distances[last]:
                break
            members[hole] = members[child]
            places[members[hole]] = hole
            hole = child
        if size > 0:
            members[hole] = last
            places[last] = hole
        followed += 1 + starts[node + 1] - starts[node]
        for place in range(starts[node], starts[node + 1]):
            target = nodes[place]
            distance = distances[node] + weights[place]
            if distance >= distances[target]:
                continue
            distances[target] = distance
            if places[target] < 0:
                places[target] = size
                size += 1
            hole = places[target]
            while hole > 0:  # the target rises from where it is
                parent = (hole - 1) // 2
                if distances[members[parent]] <= distance:
                    break
                members[hole] = members[parent]
                places[members[hole]] = hole
                hole = parent
            members[hole] = target
            places[target] = hole
    return size


@CompiledKernel
def peel_cores(
    edges: Edges, degrees: Numbers, order: tuple[Numbers, Numbers, Numbers], begin: int, most: int
) -> int:
    """Take out nodes by the number of neighbours left, which becomes their core number.

    `order` has the nodes by degree, the place of each node there, and where each degree begins;
    no node has a neighbour twice.
    """
    starts, nodes = edges
    members, places, firsts = order
    at, followed = begin, 0
    while at < len(members) and followed <= most:
        node = members[at]
        followed += 1 + starts[node + 1] - starts[node]
        for place in range(starts[node], starts[node + 1]):
            other = nodes[place]
            degree = degrees[other]
            if degree <= degrees[node]:
                continue
            # The other changes places with the first of its degree, and leaves that degree.
            first = firsts[degree]
            swapped = members[first]
            here = places[other]
            members[first], members[here] = other, swapped
            places[other], places[swapped] = first, here
            firsts[degree] = first + 1
            degrees[other] = degree - 1
        at += 1
    return at


@CompiledKernel
def count_triangles(edges: Edges, marks: Numbers, counts: Numbers, begin: int, most: int) -> int:
    """Count the triangles of each node; every edge leads from one end only, without cycles.

    `marks` has a zero for each node.
    """
    starts, nodes = edges
    node, followed = begin, 0
    while node < len(starts) - 1 and followed <= most:
        mark = node + 1
        followed += 1
        for place in range(starts[node], starts[node + 1]):
            marks[nodes[place]] = mark
        for place in range(starts[node], starts[node + 1]):
            other = nodes[place]
            followed += 1 + starts[other + 1] - starts[other]
            for corner in range(starts[other], starts[other + 1]):
                third = nodes[corner]
                if marks[third] == mark:
                    counts[node] += 1
                    counts[other] += 1
                    counts[third] += 1
        node += 1
    return node
