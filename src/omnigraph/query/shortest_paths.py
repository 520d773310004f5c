"""Find shortest paths: their lengths, and the nodes they visit.

Of several shortest paths the one whose ids come first is taken, so that an answer does not depend
on how the graph is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan.expressions import ONE_HOP, Direction, EdgePath, FunctionCall, Hops, PropertyRef
from omnigraph.query.column_cache import TypeTable
from omnigraph.query.distinct import distinct_values
from omnigraph.query.expansion import EdgeExpansion
from omnigraph.query.frame import Frame
from omnigraph.query.limits import QueryBudget
from omnigraph.storage.columns import Positions

_UNREACHED = -1


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """Finds paths for one run of a query; `expansion` follows edges of a type in a direction."""

    expansion: Callable[[str, Direction], EdgeExpansion]
    tables: Mapping[str, TypeTable]
    budget: QueryBudget

    def column(self, call: FunctionCall, frame: Frame) -> pa.Array:
        """Return the path between two nodes of each row, or its length; null where there is none.

        A node has no path to itself, and a path shorter or longer than the bounds is none.
        """
        start, along, end = call.arguments
        assert isinstance(start, PropertyRef), "the checker lets only nodes be connected"
        assert isinstance(end, PropertyRef), "the checker lets only nodes be connected"
        assert isinstance(along, EdgePath), "the checker lets only edges connect"
        ends = np.stack([frame.positions[ref.variable] for ref in (start, end)], axis=1)
        pairs, back = np.unique(ends, axis=0, return_inverse=True)
        out = self.expansion(along.edge, along.direction)
        back_expansion = self.expansion(along.edge, along.direction.reversed)
        search = PathSearch(out, back_expansion, along.hops, self.budget)
        tables = self.tables[start.variable], self.tables[end.variable]
        column: pa.Array = call.function.local.load()(search, pairs, tables)
        return column.take(pa.array(back.ravel()))


NodePath: TypeAlias = list[int]
"""The positions of the nodes of a path, both ends included."""


@dataclass(frozen=True, slots=True)
class PathSearch:
    """Searches breadth first along edges of one type."""

    out: EdgeExpansion
    back: EdgeExpansion
    hops: Hops
    budget: QueryBudget

    def lengths(self, pairs: Positions) -> list[int | None]:
        """Return the length of the shortest path between the nodes of each pair."""
        lengths: list[int | None] = [None] * len(pairs)
        for place, length, _ in self._measured(pairs):
            lengths[place] = length
        return lengths

    def paths(self, pairs: Positions) -> list[NodePath | None]:
        """Return the first shortest path between the nodes of each pair."""
        paths: list[NodePath | None] = [None] * len(pairs)
        for place, length, measured in self._measured(pairs):
            layers = measured.layers(pairs[place], length)
            paths[place] = self._first(int(pairs[place][0]), layers)
        return paths

    def _first(self, start: int, layers: list[Positions]) -> NodePath:
        """Return the path through layers that takes the least id each time."""
        path = [start]
        for layer in layers:
            near = _neighbours_of(self.out, np.array(path[-1:]))
            choices = np.intersect1d(near, layer, assume_unique=True)
            ids = self.out.far_nodes.values("id", choices)
            path.append(int(choices[pc.sort_indices(ids)[0].as_py()]))
        return path

    def _measured(self, pairs: Positions) -> Iterator[tuple[int, int, _DistanceMap]]:
        """Yield which pairs have a path within the bounds, how long it is, and what identifies it.

        Distances are measured from the end that has fewer different nodes.
        """
        counts = [len(distinct_values(column)) for column in pairs.T]
        anchor = 0 if counts[0] < counts[1] else 1
        ways = (self.out, self.back) if anchor == 0 else (self.back, self.out)
        for node in distinct_values(pairs[:, anchor]):
            places = np.flatnonzero(pairs[:, anchor] == node)
            others = pairs[places, 1 - anchor]
            measured = _DistanceMap(*ways, anchor)
            measured.measure(int(node), others, self._most, self.budget)
            for place, length in zip(places, measured.distances[others].tolist(), strict=True):
                if self.hops.minimum <= length <= self.hops.maximum:
                    yield int(place), length, measured

    @property
    def _most(self) -> int:
        """How far edges lead on: those between different types only once."""
        return self.hops.maximum if self.out.chains else 1


class _DistanceMap:
    """How many edges each node is away from one node, the anchor."""

    def __init__(self, away: EdgeExpansion, towards: EdgeExpansion, anchor: int) -> None:
        self.away = away
        self.towards = towards
        self.anchor = anchor
        self.distances = np.full(away.far_nodes.rows, _UNREACHED, np.int32)

    def measure(self, node: int, targets: Positions, most: int, budget: QueryBudget) -> None:
        """Search from the anchor until all that are wanted are found."""
        frontier, hop = np.array([node]), 0
        if self.away.chains:
            self.distances[node] = 0
        while len(frontier) and hop < most and (self.distances[targets] == _UNREACHED).any():
            budget.check("shortest path")
            hop += 1
            reached = _neighbours_of(self.away, frontier)
            frontier = reached[self.distances[reached] == _UNREACHED]
            self.distances[frontier] = hop

    def layers(self, pair: Positions, length: int) -> list[Positions]:
        """Return the nodes on shortest paths of a pair by their place after the first node."""
        here = pair[1 - self.anchor :][:1]
        layers = [here]
        for distance in range(length - 1, 0, -1):
            near = _neighbours_of(self.towards, layers[-1])
            layers.append(near[self.distances[near] == distance])
        if self.anchor == 0:
            return layers[::-1]
        return [*layers[1:], pair[1:]]


def _neighbours_of(expansion: EdgeExpansion, nodes: Positions) -> Positions:
    """Return the different nodes one hop away."""
    return distinct_values(expansion.reach(nodes, ONE_HOP)[1])


def path_lengths(
    search: PathSearch, pairs: Positions, _tables: tuple[TypeTable, TypeTable]
) -> pa.Array:
    """Return how many edges the shortest path of each pair has."""
    return pa.array(search.lengths(pairs), pa.int64())


def path_node_ids(
    search: PathSearch, pairs: Positions, tables: tuple[TypeTable, TypeTable]
) -> pa.Array:
    """Return the ids of the nodes of a path; all but the last are of the type of the start."""
    paths = search.paths(pairs)
    first, last = tables
    existing = [path for path in paths if path is not None]
    inner = np.array([node for path in existing for node in path[:-1]], np.int64)
    starts = iter(first.values("id", inner).to_pylist())
    ends = iter(last.values("id", np.array([path[-1] for path in existing], np.int64)).to_pylist())
    lists = [
        None if path is None else [*islice(starts, len(path) - 1), next(ends)] for path in paths
    ]
    return pa.array(lists, pa.list_(pa.field("item", pa.string())))
