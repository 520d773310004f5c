"""Find connected components, and communities by label propagation."""

from __future__ import annotations

import numpy as np

from omnigraph.query.analytics.kernels import choose_labels, component_roots
from omnigraph.query.analytics.network import AnalysisNetwork
from omnigraph.query.analytics.options import AnalysisOptions, LabelOptions
from omnigraph.query.limits import QueryBudget
from omnigraph.storage.columns import Positions


def component_nodes(
    network: AnalysisNetwork, _: AnalysisOptions, budget: QueryBudget
) -> tuple[Positions, int]:
    """Return the first node of the component of each node; the direction of edges is ignored."""
    roots = component_roots(network.out, network.ranks, budget)
    return network.order[roots[network.ranks]], 1


def community_nodes(
    network: AnalysisNetwork, options: LabelOptions, budget: QueryBudget
) -> tuple[Positions, int]:
    """Return the label of each node, and how many rounds it took until none changed, or the limit.

    At first each node is its own label. In a round all nodes look at once: each neighbour votes by
    each edge, whichever way it leads, and the node itself votes for the label it has. Of the labels
    with most votes the first is taken.
    """
    labels, rounds = network.ranks, 0
    for rounds in range(1, options.iterations + 1):  # noqa: B007 - returned below
        chosen = choose_labels(network.both_ways, labels, budget)
        changed = not np.array_equal(labels, chosen)
        labels = chosen
        if not changed:
            break
    return network.order[labels], rounds
