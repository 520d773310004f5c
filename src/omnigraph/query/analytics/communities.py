"""Find connected components, and communities by label propagation."""

from __future__ import annotations

import numpy as np

from omnigraph.query.analytics.kernels import (
    OPERATOR,
    choose_labels,
    join_components,
    kernel_array,
    kernel_edges,
    run_over_nodes,
)
from omnigraph.query.analytics.network import AnalysisNetwork
from omnigraph.query.analytics.options import AnalysisOptions, LabelOptions
from omnigraph.query.limits import QueryBudget
from omnigraph.storage.columns import Positions


def component_nodes(
    network: AnalysisNetwork, _: AnalysisOptions, budget: QueryBudget
) -> tuple[Positions, int]:
    """Return the first node of the component of each node; the direction of edges is ignored."""
    edges = kernel_edges(network.out)
    parents = np.arange(network.count)
    run_over_nodes(
        join_components, (edges, kernel_array(network.ranks), parents), network.count, budget
    )
    while True:
        budget.check(OPERATOR)
        above = parents[parents]
        if np.array_equal(above, parents):
            return network.order[parents[network.ranks]], 1
        parents = above


def community_nodes(
    network: AnalysisNetwork, options: LabelOptions, budget: QueryBudget
) -> tuple[Positions, int]:
    """Return the label of each node, and how many rounds it took until none changed, or the limit.

    At first each node is its own label. In a round all nodes look at once: each neighbour votes by
    each edge, whichever way it leads, and the node itself votes for the label it has. Of the labels
    with most votes the first is taken.
    """
    edges = kernel_edges(network.both_ways)
    labels, votes = network.ranks.copy(), np.zeros(network.count, np.int64)
    rounds = 0
    for rounds in range(1, options.iterations + 1):  # noqa: B007 - returned below
        chosen = np.empty_like(labels)
        run_over_nodes(
            choose_labels, (edges, kernel_array(labels), chosen, votes), network.count, budget
        )
        changed = not np.array_equal(labels, chosen)
        labels = chosen
        if not changed:
            break
    return network.order[labels], rounds
