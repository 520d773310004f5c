"""This module fuses two rankings of nodes into one, by reciprocal ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from omnigraph.query.scored import Scored, Scores
from omnigraph.query.store import Store, Table
from omnigraph.storage.columns import Positions, id_ranks

Deeper: TypeAlias = Callable[[int, Positions], tuple[Positions, Positions]]
"""Tells which of some nodes a ranking ranks behind its first, and where."""
RRF_K = 60
SHARE = 1024
"""From one of so many rows on, the order of all ids is worth keeping."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """What a fusion gives each node: a score, and a place among equal scores."""

    scored: Scored
    places: Positions

    def of(self, nodes: Positions) -> tuple[Scores, Positions]:
        """Return scores and places of nodes; one that is in no ranking has no score."""
        numbers = self.scored.numbers(nodes)
        scores = np.append(self.scored.scores, np.nan)[numbers]
        return scores, np.append(self.places, len(self.places))[numbers]


def fuse(first: Positions, second: Positions, k: int) -> Fusion:
    """Add one over k and the rank in each of two rankings, given best first."""
    return _fused([(arm, np.arange(1, len(arm) + 1)) for arm in (first, second)], k)


def fuse_heads(first: Positions, second: Positions, deeper: Deeper, k: int) -> Fusion:
    """Fuse two rankings, one of them whole, of the other only as many first nodes as are wanted.

    A node behind these and absent from the whole ranking has less than each of them, so it is not
    among as many first of the fusion. `deeper` tells where nodes of the whole one stand there.
    """
    arms = []
    for number, (head, other) in enumerate(((first, second), (second, first))):
        nodes, ranks = deeper(number, np.setdiff1d(other, head))
        order = np.argsort(ranks)
        heads = np.arange(1, len(head) + 1)
        arms.append((np.append(head, nodes[order]), np.append(heads, ranks[order])))
    return _fused(arms, k)


def _fused(arms: Sequence[tuple[Positions, Positions]], k: int) -> Fusion:
    """Add one over k and the rank; an arm has nodes and their ranks, ascending."""
    nodes, seen, back = np.unique(
        np.concatenate([nodes for nodes, _ in arms]), return_index=True, return_inverse=True
    )
    scores, start = np.zeros(len(nodes)), 0
    for _, ranks in arms:
        scores[back[start : start + len(ranks)]] += 1 / (k + ranks)
        start += len(ranks)
    places = np.empty(len(nodes), np.int64)
    places[np.argsort(seen)] = np.arange(len(nodes))
    return Fusion(Scored(nodes, scores), places)


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
