"""This module walks edges as numbers: for each node position, the positions of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.storage.columns import Positions


@dataclass(frozen=True)
class Adjacency:
    """The edges of one type in one direction, grouped by the node they leave.

    Those of node `i` stand at `starts[i]` up to `starts[i + 1]`, ordered by neighbour: `nodes` are
    their other ends, `edges` the positions of the edges themselves.
    """

    starts: Positions
    nodes: npt.NDArray[np.signedinteger[Any]]
    edges: npt.NDArray[np.signedinteger[Any]]
    width: int
    """How many nodes there may be at the other end."""

    @classmethod
    def build(cls, here: Positions, there: Positions, sizes: tuple[int, int]) -> Adjacency:
        """Group edges, given by the positions of both their ends."""
        count, width = sizes
        keys = here.astype(np.int64) * width + there
        order = np.argsort(keys, kind="stable")
        starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(here, minlength=count), out=starts[1:])
        if max(width, len(order)) < 2**31:
            return cls(starts, there[order].astype(np.int32), order.astype(np.int32), width)
        return cls(starts, there[order], order, width)

    @property
    def count(self) -> int:
        """How many nodes there may be at this end."""
        return len(self.starts) - 1

    @cached_property
    def simple(self) -> Adjacency:
        """The same without parallel edges; itself when there are none."""
        keys = self.keys
        first = np.ones(len(keys), np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        if first.all():
            return self
        starts = np.zeros_like(self.starts)
        here = np.repeat(np.arange(self.count), np.diff(self.starts))[first]
        np.cumsum(np.bincount(here, minlength=self.count), out=starts[1:])
        return Adjacency(starts, self.nodes[first], self.edges[first], self.width)

    @cached_property
    def keys(self) -> Positions:
        """One ascending number per edge, made of both its ends."""
        here = np.repeat(np.arange(self.count, dtype=np.int64), np.diff(self.starts))
        return here * self.width + self.nodes

    @cached_property
    def degrees(self) -> Positions:
        """How many edges each node has."""
        return np.diff(self.starts)

    def neighbours(self, positions: Positions) -> tuple[Positions, Positions, Positions]:
        """Return, for each edge of the given nodes: which of them it leaves, its node, itself."""
        starts = self.starts[positions]
        counts = self.starts[positions + 1] - starts
        rows = np.repeat(np.arange(len(positions)), counts)
        shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
        places = np.arange(len(rows)) + shift
        return rows, self.nodes[places].astype(np.int64), self.edges[places].astype(np.int64)

    def connects(self, here: Positions, there: Positions) -> npt.NDArray[np.bool_]:
        """Tell for each pair whether an edge leads from one to the other."""
        wanted = here * self.width + there
        places = np.searchsorted(self.keys, wanted)
        places[places == len(self.keys)] = 0
        if not len(self.keys):
            return np.zeros(len(wanted), np.bool_)
        return np.asarray(self.keys[places] == wanted)
