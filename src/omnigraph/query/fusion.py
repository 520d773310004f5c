"""This module fuses two rankings of nodes into one, by reciprocal ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.query.store import Store, Table
from omnigraph.storage.columns import Positions, id_ranks

RRF_K = 60
SHARE = 1024
"""From one of so many rows on, the order of all ids is worth keeping."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """What a fusion gives each node: a score, and a place among equal scores."""

    nodes: Positions
    """Ascending."""
    scores: npt.NDArray[np.float64]
    places: Positions

    def of(self, nodes: Positions) -> tuple[npt.NDArray[np.float64], Positions]:
        """Return scores and places of nodes; one that is in no ranking has no score."""
        last = len(self.nodes)
        ends = (int(array.max(initial=-1)) for array in (self.nodes, nodes))
        number = np.full(max(ends) + 1, last)
        number[self.nodes] = np.arange(last)
        found = number[nodes]
        return np.append(self.scores, np.nan)[found], np.append(self.places, last)[found]


def fuse(first: Positions, second: Positions, k: int) -> Fusion:
    """Add one over k and the rank in each of two rankings, given best first."""
    both = np.concatenate([first, second])
    nodes, places = np.unique(both, return_index=True)
    scores = np.zeros(len(nodes))
    for arm in (first, second):
        scores[np.searchsorted(nodes, arm)] += 1 / (k + np.arange(1, len(arm) + 1))
    order = np.empty(len(nodes), np.int64)
    order[np.argsort(places)] = np.arange(len(nodes))
    return Fusion(nodes, scores, order)


def first_of_each(nodes: Positions) -> Positions:
    """Return different nodes in the order in which they first appear."""
    _, first = np.unique(nodes, return_index=True)
    return nodes[np.sort(first)]


def id_places(store: Store, table: Table, positions: Positions) -> Positions:
    """Return numbers in the order of the ids at positions."""
    key = (*table.key, "order of ids")
    found: Positions | None = store.get(key)
    if found is None:
        if len(positions) * SHARE < table.rows:
            return id_ranks(table.values("id", positions))
        found = id_ranks(table.column("id"))
        store.keep(key, found)
    return found[positions]
