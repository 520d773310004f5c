"""Apply small changes to the adjacency of an older version, instead of building a new one.

What the older version had keeps its places there; positions are translated on the way in and out.
What came since stands in a short list of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.query.adjacency import CsrAdjacency, EdgeTuples
from omnigraph.query.distinct import distinct_pairs
from omnigraph.storage.columns import Positions
from omnigraph.storage.lru_cache import LruCache

_NO_POSITIONS = np.empty(0, np.int64)


@dataclass(frozen=True)
class PositionMap:
    """Where the rows of an older version stand in a newer one."""

    removed: Positions
    """Old positions of rows that are gone, ascending."""
    shared: int
    """New positions below this are of rows the older version has, too."""
    moved: tuple[Positions, Positions] = field(default=(_NO_POSITIONS, _NO_POSITIONS))
    """Old and new positions of entities whose row was rewritten, by old position."""

    def to_new(self, old: Positions) -> Positions:
        """Return new positions; -1 for what is gone."""
        if not len(self.removed):
            return old
        before = np.searchsorted(self.removed, old, side="right")
        new = old - before
        new[self.removed[np.maximum(before - 1, 0)] == old] = -1
        return _replace_matching(new, old, *self.moved)

    def shift_kept(self, old: Positions) -> Positions:
        """Return the new positions of rows that are neither gone nor moved."""
        if not len(self.removed):
            return old
        return old - np.searchsorted(self.removed.astype(old.dtype), old).astype(old.dtype)

    def to_old(self, new: Positions) -> Positions:
        """Return old positions; -1 for what is new."""
        if not len(self.removed):
            return np.where(new < self.shared, new, -1)
        gaps = self.removed - np.arange(len(self.removed))
        old = new + np.searchsorted(gaps, new, side="right")
        olds, news = self.moved
        order = np.argsort(news)
        return _replace_matching(
            np.where(new < self.shared, old, -1), new, news[order], olds[order]
        )


def _replace_matching(
    targets: Positions, keys: Positions, moved: Positions, values: Positions
) -> Positions:
    """Put values where keys are among those wanted, which are in order."""
    if len(moved):
        places = np.minimum(np.searchsorted(moved, keys), len(moved) - 1)
        hits = moved[places] == keys
        targets[hits] = values[places[hits]]
    return targets


@dataclass(frozen=True)
class AddedEdges:
    """A few edges, by the positions of their ends and their own."""

    here: Positions
    there: Positions
    edges: Positions

    @cached_property
    def _in_order(self) -> EdgeTuples:
        order = np.lexsort((self.there, self.here))
        return self.here[order], self.there[order], self.edges[order]

    @property
    def reversed_edges(self) -> AddedEdges:
        """The same from the other end."""
        return AddedEdges(self.there, self.here, self.edges)

    def edge_count(self, positions: Positions) -> int:
        """Return how many edges the given nodes have."""
        here, _, _ = self._in_order
        ends = (np.searchsorted(here, positions, side) for side in ("right", "left"))
        return int(np.subtract(*ends).sum())

    def neighbours(self, positions: Positions) -> EdgeTuples:
        """Return every edge of the given nodes."""
        here, there, edges = self._in_order
        starts = np.searchsorted(here, positions)
        counts = np.searchsorted(here, positions, side="right") - starts
        rows = np.repeat(np.arange(len(positions)), counts)
        places = np.arange(len(rows)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return rows, there[places], edges[places]


@dataclass(frozen=True, eq=False)
class DeltaAdjacency:
    """The edges of an older version in one direction, and what changed since."""

    base: CsrAdjacency
    here: PositionMap
    there: PositionMap
    edges: PositionMap
    added: AddedEdges
    sizes: tuple[int, int]
    """How many nodes there may be at this end and at the other."""
    merged_cache: LruCache[DeltaAdjacency, CsrAdjacency]
    """What was put together of late."""

    @property
    def whole(self) -> CsrAdjacency:
        """All edges as arrays, merged when all nodes are requested."""
        return self.merged_cache.get(self) or self.merged_cache.put(self, self._put_together())

    def _put_together(self) -> CsrAdjacency:
        """Take out what changed, let the rest slide to its new positions, put in what is new."""
        base, starts = self.base, self.base.starts
        loose = np.isin(base.nodes, self.there.removed) | np.isin(base.edges, self.edges.removed)
        loose[base.places(self.here.removed)[1]] = True
        kept, places = ~loose, np.flatnonzero(loose)
        before = starts - np.searchsorted(places, starts)
        stays = np.ones(base.count, np.bool_)
        stays[self.here.removed] = False
        counts = np.zeros(self.sizes[0], np.int64)
        counts[self.here.shift_kept(np.flatnonzero(stays))] = np.diff(before)[stays]
        left = CsrAdjacency(
            np.concatenate([[0], np.cumsum(counts)]),
            self.there.shift_kept(base.nodes[kept]),
            self.edges.shift_kept(base.edges[kept]),
            self.sizes[1],
        )
        old = np.searchsorted(starts, places, side="right") - 1
        here, there, edges = (
            np.concatenate([shift.to_new(positions.astype(np.int64)), new])
            for shift, positions, new in (
                (self.here, old, self.added.here),
                (self.there, base.nodes[places], self.added.there),
                (self.edges, base.edges[places], self.added.edges),
            )
        )
        here, there, edges = (
            a[(here >= 0) & (there >= 0) & (edges >= 0)] for a in (here, there, edges)
        )
        order = np.lexsort((edges, there, here))
        here, there, edges = here[order], there[order], edges[order]
        at = left.place(here, there)
        more = np.concatenate([[0], np.cumsum(np.bincount(here, minlength=self.sizes[0]))])
        return CsrAdjacency(
            left.starts + more,
            np.insert(left.nodes, at, there),
            np.insert(left.edges, at, edges),
            self.sizes[1],
        )

    @property
    def nbytes(self) -> int:
        """How much memory the changes take; the arrays below are counted elsewhere."""
        arrays = (self.edges.removed, self.added.here, self.added.there, self.added.edges)
        return sum(array.nbytes for array in arrays)

    def edge_count(self, positions: Positions) -> int:
        """Return how many edges the given nodes have at most; some of them may be gone."""
        old = self.here.to_old(positions)
        return self.base.edge_count(old[old >= 0]) + self.added.edge_count(positions)

    def neighbours(self, positions: Positions) -> EdgeTuples:
        """Return every edge of the given nodes."""
        old = self.here.to_old(positions)
        old_rows = np.flatnonzero(old >= 0)
        rows, nodes, edges = self.base.neighbours(old[old_rows])
        nodes, edges = self.there.to_new(nodes), self.edges.to_new(edges)
        left = (nodes >= 0) & (edges >= 0)
        more = self.added.neighbours(positions)
        kept = old_rows[rows[left]], nodes[left], edges[left]
        if not len(more[0]):
            return kept
        rows, nodes, edges = (np.concatenate(pair) for pair in zip(kept, more, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], nodes[order], edges[order]

    def reached(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return the nodes that edges lead to, each once for each of the given nodes."""
        rows, nodes, _ = self.neighbours(positions)
        return distinct_pairs(rows, nodes, self.sizes[1])

    def counts(self, positions: Positions) -> Positions:
        """Return how many different nodes the edges of each of the given nodes lead to."""
        if self._asks_much(positions):
            return self.whole.counts(positions)
        return np.bincount(self.reached(positions)[0], minlength=len(positions))

    def connects(self, here: Positions, there: Positions) -> npt.NDArray[np.bool_]:
        """Return for each pair whether an edge leads from one to the other."""
        if self._asks_much(here):
            return self.whole.connects(here, there)
        rows, nodes, _ = self.neighbours(here)
        hits = np.zeros(len(here), np.bool_)
        hits[rows[nodes == there[rows]]] = True
        return hits

    def _asks_much(self, positions: Positions) -> bool:
        """Return whether enough nodes are requested to merge all edges."""
        return 8 * len(positions) > self.sizes[0] or self.merged_cache.get(self) is not None


AdjacencyIndex: TypeAlias = CsrAdjacency | DeltaAdjacency
"""The edges of one type in one direction, however they are kept."""
