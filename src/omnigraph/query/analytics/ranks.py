"""Rank nodes by PageRank, and count their edges.

Ranks are fixed-point integers: sums of integers do not depend on the order of addition, so every
run gives the same result, on Spark too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.plan.expressions import Direction
from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.analytics.kernels import OPERATOR, Floats
from omnigraph.query.analytics.network import AnalysisNetwork
from omnigraph.query.analytics.options import DegreeOptions, PageRankOptions
from omnigraph.query.limits import QueryBudget
from omnigraph.storage.columns import Positions

FIXED_POINT_ONE = 2**60
"""What all ranks add up to."""
_PART_EDGES = 2_000_000
"""Edges whose ranks are added at once."""


def node_degrees(
    network: AnalysisNetwork, options: DegreeOptions, _: QueryBudget
) -> tuple[Positions, int]:
    """Return how many edges leave each node, arrive at it, or both; a loop does both."""
    out, into = network.out.degrees, network.into.degrees
    counts = {Direction.OUT: out, Direction.IN: into, Direction.BOTH: out + into}
    return counts[options.direction], 1


def page_ranks(
    network: AnalysisNetwork, options: PageRankOptions, budget: QueryBudget
) -> tuple[Floats, int]:
    """Return the rank of each node, all together 1, and how often ranks were passed on.

    What a node without outgoing edges has goes to all nodes alike. An edge counts as often as it
    is there.
    """
    count, damping = network.count, options.damping
    if not count:
        return np.empty(0, np.float64), 0
    degrees = network.out.degrees
    stuck, divisors = degrees == 0, np.maximum(degrees, 1)
    ranks = np.full(count, FIXED_POINT_ONE // count, np.int64)
    rounds = change = 0
    while rounds < options.iterations:
        budget.check(OPERATOR)
        if rounds and change <= options.tolerance * FIXED_POINT_ONE:
            break
        to_all = damping * int(ranks[stuck].sum())
        everyone = ((1 - damping) * FIXED_POINT_ONE + to_all) / count
        received = _sums_of_neighbours(network.into, ranks // divisors, budget)
        new = _rounded(received * damping + everyone)
        change = int(np.abs(new - ranks).sum())
        ranks = new
        rounds += 1
    return ranks / float(FIXED_POINT_ONE), rounds


def _sums_of_neighbours(
    adjacency: CsrAdjacency, values: Positions, budget: QueryBudget
) -> Positions:
    """Return the sum of the values of the neighbours of each node, some edges at a time."""
    sums, starts = np.zeros(adjacency.count, np.int64), adjacency.starts
    node = 0
    while node < adjacency.count:
        budget.check(OPERATOR)
        bound = starts[node] + _PART_EDGES
        stop = max(node + 1, int(np.searchsorted(starts, bound, "right")) - 1)
        given = values[adjacency.nodes[starts[node] : starts[stop]]]
        running = np.zeros(len(given) + 1, np.int64)
        np.cumsum(given, out=running[1:])
        sums[node:stop] = np.diff(running[starts[node : stop + 1] - starts[node]])
        node = stop
    return sums


def _rounded(values: npt.NDArray[np.floating[Any]]) -> Positions:
    """Return the nearest integers; a half is rounded up."""
    whole = np.floor(values)
    rounded: Positions = whole.astype(np.int64) + (values - whole >= 0.5)
    return rounded
