"""Sparse scores, and reciprocal rank fusion of two rankings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.query.column_cache import ColumnCache, TypeTable
from omnigraph.storage.columns import Positions, id_ranks

# ----------------------------------------------------------------------
# Sparse scores: most rows of a type have no score.


Scores = npt.NDArray[np.float64]
BINARY_SEARCH_LIMIT = 4096
"""Positions up to this number are looked up one by one."""


@dataclass(frozen=True, slots=True)
class SparseScores:
    """The entities of a type that have a score: their positions, ascending, and the scores."""

    positions: Positions
    scores: Scores

    def numbers(self, nodes: Positions) -> Positions:
        """Return which of the scores each of some positions has; -1 for none."""
        if not len(self.positions) or not len(nodes):
            return np.full(len(nodes), -1)
        last = len(self.positions) - 1
        if len(nodes) <= BINARY_SEARCH_LIMIT:
            places = np.minimum(np.searchsorted(self.positions, nodes), last)
            return np.where(self.positions[places] == nodes, places, -1)
        number = np.full(max(int(self.positions[-1]), int(nodes.max())) + 1, -1)
        number[self.positions] = np.arange(last + 1)
        return number[nodes]

    def at(self, nodes: Positions) -> Scores:
        """Return the score of each of some positions; no number where there is none."""
        return np.append(self.scores, np.nan)[self.numbers(nodes)]


DeeperRanks: TypeAlias = Callable[[int, Positions], tuple[Positions, Positions]]
"""Returns which of some nodes a ranking ranks after its first ones, and their ranks."""
RRF_K = 60
ID_RANKS_RATIO = 1024
"""The order of all IDs is kept when at least one of this many rows is sorted."""


@dataclass(frozen=True, slots=True)
class FusedRanking:
    """What a fusion gives each node: a score, and a place among equal scores."""

    scored: SparseScores
    places: Positions

    def of(self, nodes: Positions) -> tuple[Scores, Positions]:
        """Return scores and places of nodes; one that is in no ranking has no score."""
        numbers = self.scored.numbers(nodes)
        scores = np.append(self.scored.scores, np.nan)[numbers]
        return scores, np.append(self.places, len(self.places))[numbers]


def fuse_rankings(first: Positions, second: Positions, k: int) -> FusedRanking:
    """Add one over k and the rank in each of two rankings, given best first."""
    return _sum_reciprocal_ranks([(arm, np.arange(1, len(arm) + 1)) for arm in (first, second)], k)


def fuse_top_ranks(
    first: Positions, second: Positions, deeper: DeeperRanks, k: int
) -> FusedRanking:
    """Fuse two rankings, one of them whole, of the other only as many first nodes as are wanted.

    A node behind these and absent from the whole ranking has less than each of them, so it is not
    among as many first of the fusion. `deeper` returns the ranks of nodes of the whole ranking.
    """
    arms = []
    for number, (head, other) in enumerate(((first, second), (second, first))):
        nodes, ranks = deeper(number, np.setdiff1d(other, head))
        order = np.argsort(ranks)
        heads = np.arange(1, len(head) + 1)
        arms.append((np.append(head, nodes[order]), np.append(heads, ranks[order])))
    return _sum_reciprocal_ranks(arms, k)


def _sum_reciprocal_ranks(arms: Sequence[tuple[Positions, Positions]], k: int) -> FusedRanking:
    """Add one over k and the rank; an arm has nodes and their ranks, ascending."""
    nodes, seen, back = np.unique(
        np.concatenate([nodes for nodes, _ in arms]), return_index=True, return_inverse=True
    )
    scores, start = np.zeros(len(nodes)), 0
    for _, ranks in arms:
        scores[back[start : start + len(ranks)]] += 1 / (float(k) + ranks)
        start += len(ranks)
    places = np.empty(len(nodes), np.int64)
    places[np.argsort(seen)] = np.arange(len(nodes))
    return FusedRanking(SparseScores(nodes, scores), places)


def distinct_in_order(nodes: Positions) -> Positions:
    """Return different nodes in the order in which they first appear."""
    _, first = np.unique(nodes, return_index=True)
    return nodes[np.sort(first)]


def id_sort_ranks(store: ColumnCache, table: TypeTable, positions: Positions) -> Positions:
    """Return numbers in the order of the ids at positions."""
    key = (*table.key, "order of ids")
    if len(positions) * ID_RANKS_RATIO < table.rows and store.get(key) is None:
        return id_ranks(table.values("id", positions))
    return store.cached(key, lambda: id_ranks(table.column("id")))[positions]
