"""Follow edges from the nodes of a frame, through adjacency arrays or index probes.

Both ways give the same answer; `query/cost_model.py` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan.expressions import Direction, Hops
from omnigraph.query import kernels
from omnigraph.query.adjacency import CsrAdjacency, EdgeTuples
from omnigraph.query.column_cache import TypeTable
from omnigraph.query.cost_model import ExpansionCost
from omnigraph.query.delta_adjacency import AdjacencyIndex
from omnigraph.query.distinct import distinct_pairs, distinct_values
from omnigraph.query.exact_integers import Weights, sum_neighbour_weights
from omnigraph.query.limits import QueryBudget, chunk_slices, run_in_parallel, run_large
from omnigraph.query.topology import Topology, TopologyCache
from omnigraph.storage.columns import Positions

_VISITED_BYTES = 64 * 1024 * 1024
KERNEL_MIN_STARTS = 256
"""Starts for which a kernel searches rather than NumPy."""
_MAX_CHUNK_PAIRS, _MIN_CHUNK_PAIRS = 500_000, 65_536
"""Pairs that are made between two checks of the time limit, at most and at least."""
_PAIR_BYTES = 256
"""Memory that making a pair takes for a while."""
_EDGE_BYTES = 64
"""Memory that an edge read from storage takes for a while, with the ids of its ends."""
_PAIRS_PER_TASK = 250_000
"""Pairs that one core counts at a time."""

ReachedPairs: TypeAlias = tuple[Positions, Positions]
"""For each node that is reached: the row it is reached from, and its position."""
EdgeFollower: TypeAlias = Callable[[Positions], EdgeTuples]


class ExpandMode(StrEnum):
    """How edges are followed; `auto` chooses by cost."""

    AUTO = "auto"
    INDEXED = "indexed"
    TOPOLOGY = "topology"


@dataclass(frozen=True, slots=True)
class EdgeExpansion:
    """The edges of one type, to be followed in one direction."""

    edge: TypeTable
    src: TypeTable
    dst: TypeTable
    direction: Direction
    topologies: TopologyCache
    budget: QueryBudget
    mode: ExpandMode = ExpandMode.AUTO
    used: set[ExpandMode] = field(default_factory=set, init=False)
    """How edges were followed so far."""

    # --- what is reached -----------------------------------------------------------------------

    def reach(self, positions: Positions, hops: Hops, *, is_reversed: bool = False) -> ReachedPairs:
        """Return the nodes reached from each row, each once per row.

        With `is_reversed`, return the nodes from which each row is reached.
        """
        hops = self._possible(hops)
        if hops.is_single and self.direction is not Direction.BOTH and self._uses_arrays(positions):
            return self._reach_at_once(positions)
        starts, back = run_large(
            "Expand", len(positions), lambda: np.unique(positions, return_inverse=True)
        )
        adjacency = self._from_each(starts, hops, is_reversed=is_reversed)
        count = adjacency.edge_count(back)
        self._check(count)
        return run_large("Expand", count, lambda: adjacency.reached(back))

    def _possible(self, hops: Hops) -> Hops:
        """Return the bounds without hops that edges between different types cannot make."""
        return hops if hops.is_single or self.chains or hops.minimum > 1 else Hops(1, 1)

    def _from_each(
        self, starts: Positions, hops: Hops, *, is_reversed: bool = False
    ) -> CsrAdjacency:
        """Return the nodes reached from different starts, in order of start and node."""
        sources, nodes = _no_edges()
        if hops.is_single:
            sources, nodes, _ = self._walk(starts)(starts)
        elif self.chains:
            sources, nodes = self._search(starts, hops, is_reversed=is_reversed)
        sources, nodes = _distinct(sources, nodes, self._width)
        first = np.searchsorted(sources, np.arange(len(starts) + 1))
        return CsrAdjacency(first, nodes, nodes, self._width, is_simple=True)

    def _reach_at_once(self, positions: Positions) -> ReachedPairs:
        """Return the nodes one hop away, through one array, a part at a time."""
        arrays = self._arrays()[0]
        pairs = int(arrays.counts(positions).sum())
        self._check(pairs)
        rows, nodes = self._in_parts(arrays.reached, positions, pairs, 2)
        return rows, nodes

    def edges(self, positions: Positions, columns: int = 3) -> EdgeTuples:
        """Return every edge of each row: the row, the node at the other end, the edge.

        `columns` is how many columns a row is going to have, those included.
        """
        if not self._uses_arrays(distinct_values(positions)):
            return self._by_probes(positions, columns)
        return self._by_arrays(positions, columns)

    def edges_between(self, here: Positions, there: Positions) -> ReachedPairs:
        """Return every edge that connects the nodes of a row: the row, and the edge."""
        pairs: list[ReachedPairs] = []
        for part in chunk_slices(len(here), self._rows_at_once(here)):
            self._check()
            rows, nodes, edges = self.edges(here[part])
            kept = nodes == there[part][rows]
            pairs.append((rows[kept] + part.start, edges[kept]))
            self._check(sum(len(rows) for rows, _ in pairs))
        return _concat_pairs(pairs)

    def degrees(self, positions: Positions) -> Positions | None:
        """Return how many different nodes each row reaches by one hop, if that is known at once."""
        if self.direction is Direction.BOTH or not self._uses_arrays(positions):
            return None
        return self._arrays()[0].counts(positions)

    def propagate_weights(self, weights: Weights) -> Weights | None:
        """Return for each node the sum of the weights of all nodes that reach it by one hop.

        None when there are no arrays to do that with.
        """
        if self.direction is Direction.BOTH or self.mode is ExpandMode.INDEXED:
            return None
        back = self._topology().along(self.direction.reversed)[0].whole.simple
        return (
            back.degrees if (weights == 1).all() else sum_neighbour_weights(weights, *back.arrays)
        )

    def common(self, here: Positions, other: EdgeExpansion, there: Positions) -> Positions | None:
        """Count for each pair the nodes that both reach by one hop, each in its own way."""
        expansions = (self, here), (other, there)
        if any(w.direction is Direction.BOTH or not w._uses_arrays(p) for w, p in expansions):
            return None
        if np.count_nonzero(np.diff(here)) < np.count_nonzero(np.diff(there)):
            return other.common(there, self, here)  # neighbours of what repeats are marked once
        one, two = (expansion._arrays()[0].whole.simple for expansion, _ in expansions)
        counts = np.empty(len(here), np.int64)

        def count(part: slice) -> None:
            pairs = one.arrays, here[part], two.arrays, there[part]
            counts[part] = kernels.count_common_neighbours(*pairs, one.width, self._check)

        def search(part: slice) -> None:
            self._check()
            rows, nodes = one.reached(here[part])
            hits = two.connects(there[part][rows], nodes)
            counts[part] = np.bincount(rows[hits], minlength=part.stop - part.start)

        if kernels.is_available():
            run_in_parallel(count, chunk_slices(len(here), _PAIRS_PER_TASK))
            return counts
        size = max(1, self._part * len(here) // max(1, one.edge_count(here)))
        for part in chunk_slices(len(here), size):
            search(part)
        return counts

    def connects(self, here: Positions, there: Positions, hops: Hops) -> np.ndarray:
        """Return for each row whether the second node is reached from the first."""
        hits = np.zeros(len(here), np.bool_)
        if hops.is_single and self._uses_arrays(here):
            for part in chunk_slices(len(here), _MAX_CHUNK_PAIRS):
                self._check()
                for adjacency in self._arrays():
                    hits[part] |= adjacency.connects(here[part], there[part])
            return hits
        starts, back = np.unique(here, return_inverse=True)
        return self._from_each(starts, self._possible(hops)).connects(back, there)

    # --- how -----------------------------------------------------------------------------------

    @property
    def chains(self) -> bool:
        """Return whether edges lead on from where they end."""
        return self.src.key == self.dst.key

    @property
    def near_nodes(self) -> TypeTable:
        """The nodes edges are followed from."""
        return self.dst if self.direction is Direction.IN else self.src

    @property
    def far_nodes(self) -> TypeTable:
        """The nodes edges lead to; undirected ones connect nodes of one type."""
        return self.src if self.direction is Direction.IN else self.dst

    @property
    def _width(self) -> int:
        return max(self.src.rows, self.dst.rows)

    def _uses_arrays(self, starts: Positions) -> bool:
        arrays = self.mode is ExpandMode.TOPOLOGY
        if self.mode is ExpandMode.AUTO:
            arrays = self._step(len(starts)).takes_arrays
        self.used.add(ExpandMode.TOPOLOGY if arrays else ExpandMode.INDEXED)
        return arrays

    def _step(self, frontier: int) -> ExpansionCost:
        ends = {Direction.OUT: ("src",), Direction.IN: ("dst",), Direction.BOTH: ("src", "dst")}
        tables = (self.edge, self.src, self.dst)
        at_hand = self.topologies.find(tables) is not None
        return ExpansionCost(
            frontier=frontier,
            edges=self.edge.rows,
            nodes=self.near_nodes.rows,
            covered=1.0 if at_hand else min(map(self.edge.covered, ends[self.direction])),
            arrays_at_hand=at_hand,
            spent=self.topologies.spent(tables),
        )

    def _check(self, pairs: int = 0, columns: int = 2) -> None:
        self.budget.check("Expand", pairs, columns)

    def _topology(self) -> Topology:
        return self.topologies.get((self.edge, self.src, self.dst), self._check)

    def _arrays(self) -> tuple[AdjacencyIndex, ...]:
        return self._topology().along(self.direction)

    def _walk(self, starts: Positions) -> EdgeFollower:
        """Return what finds the neighbours of nodes, those given first."""
        return self._by_arrays if self._uses_arrays(starts) else self._by_probes

    def _by_arrays(self, positions: Positions, columns: int = 3) -> EdgeTuples:
        arrays = self._arrays()
        edges = sum(adjacency.edge_count(positions) for adjacency in arrays)
        self._check(edges, columns)

        def neighbours(some: Positions) -> EdgeTuples:
            return _merge_directions([adjacency.neighbours(some) for adjacency in arrays], some)

        rows, nodes, edge_positions = self._in_parts(neighbours, positions, edges, 3)
        return rows, nodes, edge_positions

    @property
    def _part(self) -> int:
        """How many pairs are made at once: fewer where little memory is allowed."""
        return max(_MIN_CHUNK_PAIRS, min(_MAX_CHUNK_PAIRS, self.budget.step_memory // _PAIR_BYTES))

    def _rows_at_once(self, positions: Positions) -> int:
        """Return of how many rows all edges can be made at once."""
        if not self._uses_arrays(positions):
            return max(1, len(positions))
        edges = sum(adjacency.edge_count(positions) for adjacency in self._arrays())
        return max(1, self._part * len(positions) // max(1, edges))

    def _in_parts(
        self,
        make: Callable[[Positions], tuple[Positions, ...]],
        positions: Positions,
        pairs: int,
        columns: int,
    ) -> tuple[Positions, ...]:
        """Return what is made of positions, at most `pairs` rows, the first column their numbers.

        It is made a part at a time, looking at the clock, and put where it stays.
        """
        if pairs <= self._part:
            return make(positions)
        results = tuple(np.empty(pairs, np.int64) for _ in range(columns))
        size = 0
        for part in chunk_slices(len(positions), max(1, self._part * len(positions) // pairs)):
            self._check()
            part_columns = make(positions[part])
            end = size + len(part_columns[0])
            for column, values in zip(results, part_columns, strict=True):
                column[size:end] = values
            results[0][size:end] += part.start
            size = end
        return tuple(column[:size] for column in results)

    def _by_probes(self, positions: Positions, columns: int = 3) -> EdgeTuples:
        directions = []
        if self.direction in (Direction.OUT, Direction.BOTH):
            directions.append(self._probe(positions, ("src", self.src), ("dst", self.dst), columns))
        if self.direction in (Direction.IN, Direction.BOTH):
            directions.append(self._probe(positions, ("dst", self.dst), ("src", self.src), columns))
        return _merge_directions(directions, positions)

    def _probe(
        self,
        positions: Positions,
        here: tuple[str, TypeTable],
        there: tuple[str, TypeTable],
        columns: int,
    ) -> EdgeTuples:
        """Look up the edges at one end, and the nodes at the other."""
        (end, nodes), (far_end, far_nodes) = here, there
        starts, back = np.unique(positions, return_inverse=True)
        ids = nodes.values("id", starts)
        ends = (self.edge, self.src, self.dst)
        self.topologies.spent(ends, self._step(len(starts)).probes_cost)
        rows = self._looked_up(end, ids, far_end) if len(ids) else None
        if rows is None or not rows.num_rows:
            empty = np.empty(0, np.int64)
            return empty, empty, empty
        sources = np.asarray(pc.index_in(rows[end], value_set=ids).combine_chunks(), np.int64)
        targets = far_nodes.positions_of(rows[far_end])
        edges = rows["_rowoffset"].to_numpy().astype(np.int64)
        # By source, then neighbour, then edge, as arrays have them.
        order = np.lexsort((edges, targets, sources))
        sources, targets, edges = sources[order], targets[order], edges[order]
        first = np.searchsorted(sources, np.arange(len(starts) + 1))
        local = CsrAdjacency(first, targets, edges, far_nodes.rows)
        self._check(local.edge_count(back), columns)
        return local.neighbours(back)

    def _looked_up(self, end: str, ids: pa.Array, far_end: str) -> pa.Table:
        """Return the edges with these ends, no more than fit."""
        most = self.budget.step_memory // _EDGE_BYTES
        edges = self.edge.lookup_with_positions(end, ids, [end, far_end], most + 1)
        if edges.num_rows > most:
            self._check(edges.num_rows, _EDGE_BYTES // 8)
        return edges

    def _search(self, starts: Positions, hops: Hops, *, is_reversed: bool) -> ReachedPairs:
        """Search breadth first from each start, a few at a time."""
        is_plain = self.direction is not Direction.BOTH and (not is_reversed or hops.minimum == 1)
        is_kernel = kernels.is_available() and len(starts) >= KERNEL_MIN_STARTS
        if is_kernel and is_plain and self._uses_arrays(starts):
            return self._search_all(starts, hops)
        at_once = max(1, _VISITED_BYTES // max(self._width, 1))
        return _concat_pairs(
            [
                self._search_some(starts[at : at + at_once], hops, at, is_reversed=is_reversed)
                for at in range(0, len(starts), at_once)
            ]
        )

    def _search_all(self, starts: Positions, hops: Hops) -> ReachedPairs:
        """Search from each start through arrays, until the clock or memory says no."""
        arrays, bounds = self._arrays()[0].whole.arrays, (hops.minimum, hops.maximum)
        chunks: list[ReachedPairs] = []
        pairs = 0
        for rows, nodes in kernels.search_breadth_first(
            arrays, starts, bounds, _MAX_CHUNK_PAIRS, self._check
        ):
            pairs += len(rows)
            self._check(pairs)
            chunks.append((rows, nodes))
        return _concat_pairs(chunks)

    def _search_some(
        self, starts: Positions, hops: Hops, first: int, *, is_reversed: bool
    ) -> ReachedPairs:
        width = self._width
        visited = np.zeros((len(starts), width), np.bool_)
        rows, nodes = np.arange(len(starts)), starts
        visited[rows, nodes] = True
        reached: list[ReachedPairs] = []
        for hop in range(1, hops.maximum + 1):
            if not len(nodes):
                break
            self._check(len(nodes))
            loops, others = self._one_hop(rows, nodes, visited)
            if hop == 1:
                looping = np.isin(rows, loops[0])
            if hop >= hops.minimum and not is_reversed:
                # A loop leads back to its node once, and not on from there.
                reached.append(loops)
            elif hop >= hops.minimum:
                # Who was one hop short of a start with a loop reaches it by that loop.
                short = looping[rows]
                reached.append((rows[short], nodes[short]))
            rows, nodes = others
            visited[rows, nodes] = True
            if hop >= hops.minimum:
                reached.append((rows, nodes))
        rows, nodes = _distinct(*_concat_pairs(reached), width)
        return rows + first, nodes

    def _one_hop(
        self, rows: Positions, nodes: Positions, visited: npt.NDArray[np.bool_]
    ) -> tuple[ReachedPairs, ReachedPairs]:
        """Return what nodes of rows lead to by self-loops, and once each what is not visited."""
        loops: list[ReachedPairs] = []
        others: list[ReachedPairs] = []
        for part in chunk_slices(len(nodes), self._rows_at_once(nodes)):
            self._check()
            which, reached, _ = self._walk(nodes[part])(nodes[part])
            owners, stays = rows[part][which], reached == nodes[part][which]
            loops.append((owners[stays], reached[stays]))
            new = ~visited[owners, reached]
            others.append(_distinct(owners[new], reached[new], self._width))
        if len(others) == 1:
            return loops[0], others[0]
        return _concat_pairs(loops), _distinct(*_concat_pairs(others), self._width)


def _distinct(rows: Positions, nodes: Positions, width: int) -> ReachedPairs:
    """Return each pair once, in order."""
    return run_large("Expand", len(rows), lambda: distinct_pairs(rows, nodes, width))


def _concat_pairs(parts: list[ReachedPairs]) -> ReachedPairs:
    rows, nodes = zip(_no_edges(), *parts, strict=True)
    count = sum(map(len, rows))
    return run_large("Expand", count, lambda: (np.concatenate(rows), np.concatenate(nodes)))


def _no_edges() -> ReachedPairs:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def _merge_directions(directions: list[EdgeTuples], positions: Positions) -> EdgeTuples:
    """Return the edges of nodes in both directions, a self-loop once."""
    if len(directions) == 1:
        return directions[0]
    away, (rows, nodes, edges) = directions
    others = nodes != positions[rows]
    back = rows[others], nodes[others], edges[others]
    rows, nodes, edges = (np.concatenate(pair) for pair in zip(away, back, strict=True))
    order = np.argsort(rows, kind="stable")
    return rows[order], nodes[order], edges[order]
