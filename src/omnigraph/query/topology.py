"""The topology of a graph as arrays: one pair of adjacencies per edge type.

They are derived: keyed by the exact versions they were made from, shared by branches and processes,
and made again whenever they are not there. What changed little since is laid over them. A file that
is gone or damaged costs time, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import TypeAlias
from weakref import WeakSet

import numpy as np
import pyarrow.compute as pc

from omnigraph.commit.model import DatasetEntry
from omnigraph.errors import GraphCorrupt, VersionReclaimed
from omnigraph.plan.expressions import Direction
from omnigraph.query import kernels
from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.column_cache import TypeTable
from omnigraph.query.delta_adjacency import (
    AddedEdges,
    AdjacencyIndex,
    DeltaAdjacency,
    PositionMap,
)
from omnigraph.query.id_lookup import UNKNOWN, IdLookup
from omnigraph.query.kernel_library import Numbers
from omnigraph.query.limits import holding, run_apart
from omnigraph.query.topology_files import StoredTopology, TopologyFiles
from omnigraph.storage import Location
from omnigraph.storage.lru_cache import LruCache

MIN_STORED_EDGES = 100_000
"""Edges from which on arrays are kept in files."""
TOPOLOGY_MEMORY_BYTES = 1024 * 1024 * 1024
"""Arrays that are kept in memory, beside those that are mapped."""
_MIN_ENTRY_BYTES = TOPOLOGY_MEMORY_BYTES // 256
"""What a topology counts at least, so that there are not too many."""
MAX_VERSIONS = 16
"""Topologies of one edge type that are kept; most are not read again."""
MAX_TRACKED_TOPOLOGIES = 256
MAX_DELTA_ROWS, MAX_DELTA_SHARE = 10_000, 0.01
"""Changed rows that are applied to existing arrays: at most this number, or this share of all."""
_LOOKUP_EDGES = 250_000 if kernels.is_available() else 2_000_000
"""Edges whose ends are looked up at once; without kernels each time costs a hash table."""

EdgeTables: TypeAlias = tuple[TypeTable, TypeTable, TypeTable]
"""The tables of an edge type: its edges, the nodes they leave, the nodes they lead to."""


@dataclass(frozen=True, slots=True)
class Topology:
    """All edges of one type, from both ends."""

    out: AdjacencyIndex
    into: AdjacencyIndex

    def along(self, direction: Direction) -> tuple[AdjacencyIndex, ...]:
        """Return the adjacencies a direction follows: one, or both."""
        both = (self.out, self.into)
        return {Direction.OUT: both[:1], Direction.IN: both[1:], Direction.BOTH: both}[direction]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.out.nbytes + self.into.nbytes


_caches: WeakSet[TopologyCache] = WeakSet()


def cached_topology_bytes() -> int:
    """Return the size of the topologies that this process has in memory, of all graphs."""
    return sum(cache.size for cache in list(_caches))


class TopologyCache:
    """The topologies of one graph that are in memory or in files.

    `built` counts those that were made from scratch.
    """

    def __init__(self, location: Location, *, may_write: bool) -> None:
        self._files = TopologyFiles(location, may_write=may_write)
        self._loaded: LruCache[tuple[int, ...], Topology] = LruCache(
            TOPOLOGY_MEMORY_BYTES,
            lambda made: made.nbytes + _MIN_ENTRY_BYTES,
            lambda key: key[:2],
            MAX_VERSIONS,
        )
        self._bases: LruCache[tuple[int, int], StoredTopology] = LruCache(
            TOPOLOGY_MEMORY_BYTES, lambda base: base.nbytes + _MIN_ENTRY_BYTES
        )
        self._merged_cache: LruCache[DeltaAdjacency, CsrAdjacency] = LruCache(
            TOPOLOGY_MEMORY_BYTES, lambda made: made.nbytes
        )
        self._spent: LruCache[tuple[int, ...], float] = LruCache(MAX_TRACKED_TOPOLOGIES)
        self._finding, self._building = Lock(), Lock()
        _caches.add(self)
        self.built = 0

    @property
    def size(self) -> int:
        """The bytes of the topologies it holds."""
        return self._loaded.total + self._merged_cache.total

    def find(self, ends: EdgeTables) -> Topology | None:
        """Return a topology that is there, or can be had from one that nearly fits."""
        key = _topology_key(ends)
        topology = self._loaded.get(key)
        if topology is not None or self._spent.get(key) is not None:
            return topology
        with holding(self._finding, "Expand"):  # another thread may have, meanwhile
            topology = self._loaded.get(key)
            if topology is not None or self._spent.get(key) is not None:
                return topology
            topology = self._at_hand(ends)
            if topology is None:
                self._spent.put(key, 0.0)
                return None
            return self._loaded.put(key, topology)

    def loaded(self, ends: EdgeTables) -> Topology | None:
        """Return a topology that is in memory, without looking for it elsewhere."""
        return self._loaded.peek(_topology_key(ends))

    def __len__(self) -> int:
        return len(self._loaded)

    def spent(self, ends: EdgeTables, more: float = 0.0) -> float:
        """Return what was spent on probes for want of a topology, after adding more."""
        key = _topology_key(ends)
        total = (self._spent.get(key) or 0.0) + more
        return self._spent.put(key, total) if more else total

    def get(self, ends: EdgeTables, tick: Callable[[], None]) -> Topology:
        """Return the topology of an edge type, made when it is not there.

        While it is made, `tick` is called now and then and may raise.
        """
        topology = self.find(ends)
        if topology is not None:
            return topology
        with holding(self._building, "Expand"):  # another thread may have built it meanwhile
            topology = self._loaded.get(_topology_key(ends))
            return topology or self._loaded.put(_topology_key(ends), self._build(ends, tick))

    def refresh(self, ends: EdgeTables, tick: Callable[[], None]) -> bool:
        """Store the arrays of a large edge type before readers need them; return whether it did.

        Files of an older version serve as long as few rows changed since: half of what readers
        apply to them.
        """
        if ends[0].rows < MIN_STORED_EDGES or self._files.load(ends) is not None:
            return False
        if any(_is_close(stored, ends) for stored in self._files.others(ends)):
            return False
        self._build(ends, tick)
        return True

    # --- where from ----------------------------------------------------------------------------

    def _at_hand(self, ends: EdgeTables) -> Topology | None:
        """Return a topology for which little is read; a small one is built again quickly."""
        if _is_small_and_cached(ends):
            return Topology(*_adjacencies(ends, lambda: None))
        stored = self._files.load(ends)
        return self._overlaid(ends) if stored is None else self._remember(stored)

    def _overlaid(self, ends: EdgeTables) -> Topology | None:
        """Lay what changed over arrays of another version of the same dataset."""
        last = self._bases.get(ends[0].entry.key)
        for base in chain([last] if last else [], self._files.others(ends)):
            with suppress(VersionReclaimed):
                topology = apply_delta(base, ends, self._merged_cache)
                if topology is not None:
                    self._remember(base)
                    return topology
        return None

    def _build(self, ends: EdgeTables, tick: Callable[[], None]) -> Topology:
        adjacencies = _adjacencies(ends, tick)
        topology = run_apart(lambda: StoredTopology.of(ends, *adjacencies), tick)
        self.built += 1
        is_large = ends[0].rows >= MIN_STORED_EDGES
        if is_large and run_apart(lambda: self._files.save(topology), tick):
            topology = self._files.load(ends) or topology  # mapped files take no memory of ours
        return self._remember(topology)

    def _remember(self, stored: StoredTopology) -> Topology:
        self._bases.put(stored.edge.key, stored)
        return Topology(stored.out, stored.into)


def apply_delta(
    base: StoredTopology, ends: EdgeTables, merged_cache: LruCache[DeltaAdjacency, CsrAdjacency]
) -> Topology | None:
    """Return arrays with what changed since laid over them; None when that is too much."""
    edge, src, dst = ends
    with edge.changes_since(base.edge, _max_delta_rows(edge)) as changed:
        if changed is None:
            return None
        new = changed.added(["src", "dst"])
    here = _node_position_map(src, base.src)
    there = here if src.key == dst.key else _node_position_map(dst, base.dst)
    if here is None or there is None:
        return None
    edges = PositionMap(changed.removed, changed.shared)
    positions = np.arange(new.num_rows) + changed.shared
    added = AddedEdges(src.positions_of(new["src"]), dst.positions_of(new["dst"]), positions)
    sizes = (src.rows, dst.rows)
    return Topology(
        DeltaAdjacency(base.out, here, there, edges, added, sizes, merged_cache),
        DeltaAdjacency(
            base.into, there, here, edges, added.reversed_edges, sizes[::-1], merged_cache
        ),
    )


def _is_close(base: StoredTopology, ends: EdgeTables) -> bool:
    """Return whether half of what may be applied to arrays covers what changed since."""
    olds = (base.edge, base.src, base.dst)
    try:
        for table, old in zip(ends, olds, strict=True):
            with table.changes_since(old, _max_delta_rows(table) // 2) as changed:
                if changed is None:
                    return False
    except VersionReclaimed:
        return False
    return True


def _max_delta_rows(table: TypeTable) -> int:
    return max(MAX_DELTA_ROWS, int(table.rows * MAX_DELTA_SHARE))


def _node_position_map(nodes: TypeTable, old: DatasetEntry) -> PositionMap | None:
    """Return where nodes are now; a node whose row was rewritten is the same node."""
    with nodes.changes_since(old, _max_delta_rows(nodes)) as grown:
        if grown is None:
            return None
        lost, added = grown.lost(["id"])["id"], grown.added(["id"])["id"]
    places = pc.index_in(lost.combine_chunks(), value_set=added.combine_chunks())
    again = np.asarray(places.is_valid(), np.bool_)
    news = np.asarray(pc.fill_null(places, 0), np.int64)[again] + grown.shared
    return PositionMap(grown.removed, grown.shared, (grown.removed[again], news))


def _is_small_and_cached(ends: EdgeTables) -> bool:
    """Return whether ends of edges and ids of nodes are few, and there without much reading."""
    edge, src, dst = ends
    columns = ((edge, "src"), (edge, "dst"), (src, "id"), (dst, "id"))
    return all(table.is_small and table.is_cached(name) for table, name in columns)


def _adjacencies(ends: EdgeTables, tick: Callable[[], None]) -> tuple[CsrAdjacency, CsrAdjacency]:
    _, src, dst = ends
    here, there = _endpoint_positions(ends, tick)
    out = CsrAdjacency.build(here, there, (src.rows, dst.rows), tick)
    return out, CsrAdjacency.build(there, here, (dst.rows, src.rows), tick)


def _endpoint_positions(ends: EdgeTables, tick: Callable[[], None]) -> tuple[Numbers, Numbers]:
    """Return the positions of the nodes at both ends of every edge, reading a part at a time."""
    edge, src, dst = ends
    sources = IdLookup.of(src.column("id"), tick)
    same = src.key == dst.key
    lookups = {"src": sources, "dst": sources if same else IdLookup.of(dst.column("id"), tick)}
    parts: dict[str, list[Numbers]] = {"src": [], "dst": []}
    for rows in edge.chunks(["src", "dst"], _LOOKUP_EDGES):
        for end, positions in parts.items():
            found = lookups[end].find(rows[end], tick)
            if (found == UNKNOWN).any():
                raise GraphCorrupt(f"an edge of {edge.type.name} lacks its {end}")
            positions.append(found)
    here, there = (_concatenated(positions, tick) for positions in parts.values())
    return here, there


def _concatenated(parts: list[Numbers], tick: Callable[[], None]) -> Numbers:
    tick()
    return np.concatenate([np.empty(0, np.int32), *parts])


def _topology_key(ends: EdgeTables) -> tuple[int, ...]:
    return tuple(fact for table in ends for fact in (*table.entry.key, *table.entry.state))
