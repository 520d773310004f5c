"""This module fuses two rankings of nodes into one, by reciprocal ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.query.scored import Scored, Scores
from omnigraph.query.store import Store, Table
from omnigraph.storage.columns import Positions, id_ranks

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
    nodes, seen, back = np.unique(
        np.concatenate([first, second]), return_index=True, return_inverse=True
    )
    scores = np.zeros(len(nodes))
    for arm, numbers in ((first, back[: len(first)]), (second, back[len(first) :])):
        scores[numbers] += 1 / (k + np.arange(1, len(arm) + 1))
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
