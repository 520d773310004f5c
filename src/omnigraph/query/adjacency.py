"""Adjacency arrays: for each node position, the positions of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.query import kernels
from omnigraph.query.kernel_library import Numbers
from omnigraph.query.limits import chunk_slices
from omnigraph.storage.columns import Positions

EdgeTuples: TypeAlias = tuple[Positions, Positions, Positions]
"""For each edge followed: which of the given nodes it leaves, the node it leads to, itself."""


@dataclass(frozen=True)
class CsrAdjacency:
    """Edges grouped by the node they leave.

    Those of node `i` stand at `starts[i]` up to `starts[i + 1]`, ordered by neighbour: `nodes` are
    their other ends, `edges` the positions of the edges themselves.
    """

    starts: Positions
    nodes: npt.NDArray[np.signedinteger[Any]]
    edges: npt.NDArray[np.signedinteger[Any]]
    width: int
    """How many nodes there may be at the other end."""
    is_simple: bool = False
    """Whether it is known that there are no parallel edges."""

    @classmethod
    def build(
        cls,
        here: Numbers,
        there: Numbers,
        sizes: tuple[int, int],
        check: kernels.Check = lambda: None,
    ) -> CsrAdjacency:
        """Group edges, given by the positions of both their ends; `check` may end that."""
        count, width = sizes
        narrow = np.int32 if max(width, len(here)) < 2**31 else np.int64
        starts = _group_offsets(here, count, check)
        order: Numbers = np.arange(len(here), dtype=narrow)
        if kernels.is_available():
            for keys, begin in (
                (there, _group_offsets(there, width, check)),
                (here, starts.copy()),
            ):
                order = kernels.group_by_key(keys, order, begin, check)
        else:
            check()
            order = np.lexsort((there, here))
        order = order.astype(narrow, copy=False)
        nodes: Numbers = np.empty_like(order)
        for part in chunk_slices(len(order), kernels.STEP_EDGES):
            check()
            nodes[part] = there[order[part]]
        return cls(starts, nodes, order, width)

    @property
    def whole(self) -> CsrAdjacency:
        """All edges as arrays: these."""
        return self

    @property
    def arrays(self) -> tuple[Positions, Numbers]:
        """What kernels traverse: where the neighbours of each node start, and all neighbours."""
        return self.starts, self.nodes

    @property
    def count(self) -> int:
        """How many nodes there may be at this end."""
        return len(self.starts) - 1

    @cached_property
    def simple(self) -> CsrAdjacency:
        """The same without parallel edges; itself when there are none."""
        if self.is_simple:
            return self
        repeated = np.zeros(len(self.nodes), np.bool_)
        np.equal(self.nodes[1:], self.nodes[:-1], out=repeated[1:])
        borders = self.starts[:-1]
        repeated[borders[borders < len(repeated)]] = False
        if not repeated.any():
            return self
        before = np.zeros(len(repeated) + 1, np.int64)
        np.cumsum(repeated, out=before[1:])
        kept = ~repeated
        starts = self.starts - before[self.starts]
        return CsrAdjacency(starts, self.nodes[kept], self.edges[kept], self.width, is_simple=True)

    @cached_property
    def degrees(self) -> Positions:
        """How many edges each node has."""
        return np.diff(self.starts)

    def edge_count(self, positions: Positions) -> int:
        """Return how many edges the given nodes have, without making them."""
        return int((self.starts[positions + 1] - self.starts[positions]).sum())

    def neighbours(self, positions: Positions) -> EdgeTuples:
        """Return every edge of the given nodes."""
        rows, places = self.places(positions)
        return rows, self.nodes[places].astype(np.int64), self.edges[places].astype(np.int64)

    def reached(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return the nodes that edges lead to, each once for each of the given nodes."""
        simple = self.simple
        rows, places = simple.places(positions)
        return rows, simple.nodes[places].astype(np.int64)

    def counts(self, positions: Positions) -> Positions:
        """Return how many different nodes the edges of each of the given nodes lead to."""
        return self.simple.degrees[positions]

    def connects(self, here: Positions, there: Positions) -> npt.NDArray[np.bool_]:
        """Return for each pair whether an edge leads from one to the other."""
        places, ends = self.place(here, there), self.starts[here + 1]
        hits: npt.NDArray[np.bool_] = places < ends
        hits[hits] = self.nodes[places[hits]] == there[hits]
        return hits

    def place(self, here: Positions, there: Positions) -> Positions:
        """Return for each pair where its edge stands or would stand, searching all at once."""
        low, high = self.starts[here], self.starts[here + 1]
        while (low < high).any():
            middle = (low + high) // 2
            below = (low < high) & (self.nodes[np.minimum(middle, len(self.nodes) - 1)] < there)
            high = np.where(below, high, np.maximum(low, middle))
            low = np.where(below, middle + 1, low)
        return low

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take; mapped files take none of ours."""
        arrays = (self.starts, self.nodes, self.edges)
        return sum(0 if isinstance(array, np.memmap) else array.nbytes for array in arrays)

    def places(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return for each edge of the given nodes which of them it leaves, and its place."""
        starts = self.starts[positions]
        counts = self.starts[positions + 1] - starts
        rows = np.repeat(np.arange(len(positions)), counts)
        shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return rows, np.arange(len(rows)) + shift


def _group_offsets(keys: Numbers, count: int, check: kernels.Check) -> Positions:
    """Return where each key begins once all are in order."""
    starts = np.zeros(count + 1, np.int64)
    for part in chunk_slices(len(keys), max(kernels.STEP_EDGES, count)):
        check()
        starts[1:] += np.bincount(keys[part], minlength=count)
    check()
    np.cumsum(starts, out=starts)
    return starts
