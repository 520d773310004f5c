"""This module follows edges from the nodes of a frame, through arrays or through index probes.

Both ways give the same answer. Probes suit a few nodes of a large graph whose arrays are not there;
everything else is faster through arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import GraphCorrupt
from omnigraph.plan.hops import Direction, Hops
from omnigraph.query.adjacency import Adjacency
from omnigraph.query.store import Table
from omnigraph.query.topology import Topologies
from omnigraph.storage.columns import Positions
from omnigraph.storage.literals import sql_literals

FEW_NODES = 256
"""A frontier that is worth probing for."""
SMALL_EDGES = 100_000
"""Edges of which arrays are made in no time."""
_CHUNK = 1_024
_VISITED_BYTES = 64 * 1024 * 1024

Reached: TypeAlias = tuple[Positions, Positions]
"""For each node that is reached: the row it is reached from, and its position."""
Neighbours: TypeAlias = Callable[[Positions], tuple[Positions, Positions, Positions]]


class ExpandMode(StrEnum):
    """How edges are followed; `auto` chooses by cost."""

    AUTO = "auto"
    INDEXED = "indexed"
    TOPOLOGY = "topology"


@dataclass(frozen=True, slots=True)
class EdgeWalk:
    """The edges of one type, to be followed in one direction."""

    edge: Table
    src: Table
    dst: Table
    direction: Direction
    topologies: Topologies
    mode: ExpandMode = ExpandMode.AUTO

    # --- what is reached -----------------------------------------------------------------------

    def reach(self, positions: Positions, hops: Hops, *, from_end: bool = False) -> Reached:
        """Return the nodes reached from each row, each once per row.

        With `from_end`, return the nodes from which each row is reached.
        """
        if not hops.is_single and not self.chains:
            if hops.minimum > 1:
                return _nothing()
            hops = Hops(1, 1)
        starts, back = np.unique(positions, return_inverse=True)
        if hops.is_single:
            sources, nodes, _ = self._walk(starts)(starts)
            pairs = _distinct(sources, nodes, self._width)
        else:
            pairs = self._search(starts, hops, from_end=from_end)
        return _spread(pairs, back, len(starts))

    def edges(self, positions: Positions) -> tuple[Positions, Positions, Positions]:
        """Return every edge of each row: the row, the node at the other end, the edge."""
        walk = self._walk(np.unique(positions))
        rows, nodes, edges = walk(positions)
        if self.direction is Direction.BOTH:
            # A self-loop is found from both its ends.
            _, first = np.unique(np.stack([rows, edges, nodes]), axis=1, return_index=True)
            first.sort()
            rows, nodes, edges = rows[first], nodes[first], edges[first]
        return rows, nodes, edges

    def degrees(self, positions: Positions) -> Positions | None:
        """Return how many different nodes each row reaches by one hop, if that is known at once."""
        if self.direction is Direction.BOTH or not self._uses_arrays(positions):
            return None
        return self._arrays()[0].simple.degrees[positions]

    def connects(self, here: Positions, there: Positions, hops: Hops) -> np.ndarray:
        """Tell for each row whether the second node is reached from the first."""
        if hops.is_single and self._uses_arrays(here):
            found = np.zeros(len(here), np.bool_)
            for adjacency in self._arrays():
                found |= adjacency.connects(here, there)
            return found
        rows, nodes = self.reach(here, hops)
        found = np.zeros(len(here), np.bool_)
        found[rows[nodes == there[rows]]] = True
        return found

    # --- how -----------------------------------------------------------------------------------

    @property
    def chains(self) -> bool:
        """Tell whether edges lead on from where they end."""
        return self.src.key == self.dst.key

    @property
    def far_nodes(self) -> Table:
        """The nodes edges lead to; undirected ones connect nodes of one type."""
        return self.src if self.direction is Direction.IN else self.dst

    @property
    def _width(self) -> int:
        return max(self.src.rows, self.dst.rows)

    def _uses_arrays(self, starts: Positions) -> bool:
        if self.mode is not ExpandMode.AUTO:
            return self.mode is ExpandMode.TOPOLOGY
        if self.edge.rows <= SMALL_EDGES or len(starts) > FEW_NODES:
            return True
        return self.topologies.loaded(self.edge, self.src, self.dst)

    def _arrays(self) -> tuple[Adjacency, ...]:
        return self.topologies.get(self.edge, self.src, self.dst).along(self.direction)

    def _walk(self, starts: Positions) -> Neighbours:
        """Return what finds the neighbours of nodes, those given first."""
        return self._by_arrays if self._uses_arrays(starts) else self._by_probes

    def _by_arrays(self, positions: Positions) -> tuple[Positions, Positions, Positions]:
        found = [adjacency.neighbours(positions) for adjacency in self._arrays()]
        return _together(found)

    def _by_probes(self, positions: Positions) -> tuple[Positions, Positions, Positions]:
        found = []
        if self.direction in (Direction.OUT, Direction.BOTH):
            found.append(self._probe(positions, ("src", self.src), ("dst", self.dst)))
        if self.direction in (Direction.IN, Direction.BOTH):
            found.append(self._probe(positions, ("dst", self.dst), ("src", self.src)))
        return _together(found)

    def _probe(
        self, positions: Positions, here: tuple[str, Table], there: tuple[str, Table]
    ) -> tuple[Positions, Positions, Positions]:
        """Look up the edges at one end, and the nodes at the other."""
        (end, nodes), (far_end, far_nodes) = here, there
        starts, back = np.unique(positions, return_inverse=True)
        ids = nodes.values("id", starts)
        found = _lookup(self.edge, end, ids, [end, far_end]) if len(ids) else None
        if found is None or not found.num_rows:
            empty = np.empty(0, np.int64)
            return empty, empty, empty
        sources = np.asarray(pc.index_in(found[end], value_set=ids).combine_chunks(), np.int64)
        targets = _positions_of(far_nodes, found[far_end])
        edges = found["_rowoffset"].to_numpy().astype(np.int64)
        # By source, then neighbour, then edge, as arrays have them.
        order = np.lexsort((edges, targets, sources))
        sources, targets, edges = sources[order], targets[order], edges[order]
        first = np.searchsorted(sources, np.arange(len(starts) + 1))
        local = Adjacency(first, targets, edges, far_nodes.rows)
        return local.neighbours(back)

    def _search(self, starts: Positions, hops: Hops, *, from_end: bool) -> Reached:
        """Search breadth first from each start, a few at a time."""
        at_once = max(1, _VISITED_BYTES // max(self._width, 1))
        return _joined(
            [
                self._search_some(starts[at : at + at_once], hops, at, from_end=from_end)
                for at in range(0, len(starts), at_once)
            ]
        )

    def _search_some(self, starts: Positions, hops: Hops, first: int, *, from_end: bool) -> Reached:
        width = self._width
        visited = np.zeros((len(starts), width), np.bool_)
        rows, nodes = np.arange(len(starts)), starts
        visited[rows, nodes] = True
        found: list[Reached] = []
        for hop in range(1, hops.maximum + 1):
            if not len(nodes):
                break
            which, reached, _ = self._walk(nodes)(nodes)
            owners = rows[which]
            loops = reached == nodes[which]
            if hop == 1:
                looping = np.isin(rows, owners[loops])
            if hop >= hops.minimum and not from_end:
                # A loop leads back to its node once, and not on from there.
                found.append((owners[loops], reached[loops]))
            elif hop >= hops.minimum:
                # Who was one hop short of a start with a loop reaches it by that loop.
                short = looping[rows]
                found.append((rows[short], nodes[short]))
            rows, nodes = _distinct(owners[~loops], reached[~loops], width)
            new = ~visited[rows, nodes]
            rows, nodes = rows[new], nodes[new]
            visited[rows, nodes] = True
            if hop >= hops.minimum:
                found.append((rows, nodes))
        rows, nodes = _distinct(*_joined(found), width)
        return rows + first, nodes


def _joined(parts: list[Reached]) -> Reached:
    if not parts:
        return _nothing()
    rows, nodes = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(nodes)


def _nothing() -> Reached:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def _together(
    found: list[tuple[Positions, Positions, Positions]],
) -> tuple[Positions, Positions, Positions]:
    if len(found) == 1:
        return found[0]
    rows, nodes, edges = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(rows, kind="stable")
    return rows[order], nodes[order], edges[order]


def _distinct(rows: Positions, nodes: Positions, width: int) -> Reached:
    """Return each pair once, in order."""
    keys = np.unique(rows * width + nodes) if width else np.empty(0, np.int64)
    return keys // max(width, 1), keys % max(width, 1)


def _spread(pairs: Reached, back: Positions, starts: int) -> Reached:
    """Give what was reached from each different start to every row that starts there."""
    sources, nodes = pairs
    if len(back) == starts and np.array_equal(back, np.arange(starts)):
        return sources, nodes
    first = np.searchsorted(sources, np.arange(starts + 1))
    table = Adjacency(first, nodes, nodes, 0)
    rows, reached, _ = table.neighbours(back)
    return rows, reached


def _lookup(table: Table, column: str, values: pa.Array, columns: list[str]) -> pa.Table:
    """Return the rows whose column is one of the values, through an index if there is one."""
    parts = []
    for start in range(0, len(values), _CHUNK):
        literals = ", ".join(sql_literals(values.slice(start, _CHUNK)))
        condition = f"`{table.names[column]}` IN ({literals})"
        parts.append(table.rows_where(condition, columns))
    return pa.concat_tables(parts)


def _positions_of(nodes: Table, ids: pa.ChunkedArray) -> Positions:
    """Return the positions of nodes by id."""
    wanted = ids.unique()
    found = _lookup(nodes, "id", wanted, ["id"])
    places = pc.index_in(ids, value_set=found["id"].combine_chunks())
    if places.null_count:
        raise GraphCorrupt(f"an edge refers to nodes that {nodes.type.name} lacks")
    offsets: Positions = found["_rowoffset"].to_numpy().astype(np.int64)
    return offsets[np.asarray(places.combine_chunks(), np.int64)]
