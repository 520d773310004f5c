"""The nodes and edges that an algorithm runs on, as arrays.

Nodes of several types stand one type after the other, in the order of the names of types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.commit.model import Snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.analytics.kernels import OPERATOR
from omnigraph.query.column_cache import ColumnCache, TypeTable
from omnigraph.query.entities import find_type
from omnigraph.query.kernel_library import Numbers
from omnigraph.query.limits import QueryBudget
from omnigraph.query.topology import TopologyCache
from omnigraph.storage.columns import Positions, id_ranks


@dataclass(frozen=True, slots=True)
class AnalysisTypes:
    """The edge types that an analysis follows, and all node types that take part."""

    edges: tuple[str, ...]
    nodes: tuple[str, ...]

    @classmethod
    def of(
        cls, snapshot: Snapshot, edges: Sequence[str], nodes: Sequence[str] = ()
    ) -> AnalysisTypes:
        """Resolve the names of edge types; a type that the actor may not read does not exist."""
        names = [edges] if isinstance(edges, str) else list(dict.fromkeys(edges))
        if not names:
            message = "name at least one edge type to follow"
            raise InvalidInput(message, code="analysis_without_edges")
        found = [find_type(snapshot, f"edge:{name}").name for name in names]
        known = [snapshot.catalog.edges[name] for name in found]
        ends = {*nodes, *(name for edge in known for name in (edge.src, edge.dst))}
        return cls(tuple(found), tuple(sorted(ends)))

    def check_weight(self, snapshot: Snapshot, name: str) -> None:
        """Raise InvalidInput unless all edge types have a numeric property that may be read."""
        for edge in self.edges:
            property_ = snapshot.catalog.edges[edge].properties.get(name)
            if property_ is None or not property_.type.numeric:
                kind = "no property" if property_ is None else f"{property_.type}, not a number"
                message = (
                    f"weight must be a numeric property of every edge type; {edge}.{name} is {kind}"
                )
                raise InvalidInput(message, code="analysis_option_invalid", weight=name)


@dataclass(frozen=True, slots=True)
class _EdgePart:
    """The edges of one type among all: their table, and their order where it is not that."""

    table: TypeTable
    order: Positions | None = None


@dataclass(frozen=True)
class AnalysisNetwork:
    """Nodes by position, and their edges from both ends, as often as there are."""

    nodes: Mapping[str, TypeTable]
    out: CsrAdjacency
    into: CsrAdjacency
    parts: tuple[_EdgePart, ...]

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return self.out.count

    @cached_property
    def offsets(self) -> dict[str, int]:
        """The position of the first node of each type."""
        return _node_offsets(self.nodes)

    @cached_property
    def ranks(self) -> Positions:
        """The place of each node in the order of type and ID."""
        ranks = [
            id_ranks(table.column("id")) - 1 + self.offsets[name]
            for name, table in self.nodes.items()
        ]
        return np.concatenate(ranks)

    @cached_property
    def order(self) -> Positions:
        """The positions of all nodes in the order of type and ID."""
        order = np.empty(self.count, np.int64)
        order[self.ranks] = np.arange(self.count)
        return order

    @cached_property
    def both_ways(self) -> CsrAdjacency:
        """Every edge from each of its ends; a loop leads nowhere."""
        here, there = edge_ends(self.out)
        apart = np.flatnonzero(here != there)
        here, there = here[apart], there[apart]
        joined = np.concatenate([here, there]), np.concatenate([there, here])
        both = CsrAdjacency.build(*joined, (self.count, self.count))
        # The place of an edge becomes the edge.
        edges = self.out.edges[np.concatenate([apart, apart])[both.edges]]
        return CsrAdjacency(both.starts, both.nodes, edges, both.width)

    def find(self, source: str) -> int:
        """Return the position of the node with an ID, or with `Type/id`."""
        type_name, slash, id_ = source.partition("/")
        choices = [(type_name, id_)] if slash else []
        if len(self.nodes) == 1:
            choices = [(next(iter(self.nodes)), source), *choices]
        for name, named in choices:
            if name in self.nodes:
                for position in self.nodes[name].position_of(named).tolist():
                    return self.offsets[name] + int(position)
        if not choices:
            message = f"source must be Type/id, as nodes of {', '.join(self.nodes)} take part"
            raise InvalidInput(message, code="analysis_option_invalid", source=source)
        raise NotFound(f"there is no node '{source}'", code="entity_not_found", id=source)

    def weights(self, name: str) -> npt.NDArray[np.float64]:
        """Return the value of a numeric property for each edge."""
        values = [
            column if part.order is None else column[part.order]
            for part in self.parts
            for column in [_edge_weights(part.table, name)]
        ]
        return np.concatenate(values)

    def ids_of(self, positions: Positions, owner: str) -> pa.Array:
        """Return how nodes are named beside a node of type `owner`: those of others `Type/id`."""
        distinct, back = np.unique(positions, return_inverse=True)
        bounds = np.searchsorted(distinct, [*self.offsets.values(), self.count])
        pieces = []
        for (name, table), first, last in zip(
            self.nodes.items(), bounds[:-1], bounds[1:], strict=True
        ):
            ids = table.column("id").take(pa.array(distinct[first:last] - self.offsets[name]))
            prefixed = pc.binary_join_element_wise(name, ids, "/") if name != owner else ids
            pieces.append(prefixed.cast(pa.string()))
        return pa.concat_arrays(pieces).take(pa.array(back))


def read_network(
    store: ColumnCache,
    topologies: TopologyCache,
    snapshot: Snapshot,
    types: AnalysisTypes,
    budget: QueryBudget,
) -> AnalysisNetwork:
    """Return the edges of some types as arrays: those queries use, or put together from them."""

    def check() -> None:
        budget.check(OPERATOR)

    nodes = {name: store.table(snapshot, TypeKind.NODE, name) for name in types.nodes}
    found = []
    for name in types.edges:
        edge, table = snapshot.catalog.edges[name], store.table(snapshot, TypeKind.EDGE, name)
        topology = topologies.get((table, nodes[edge.src], nodes[edge.dst]), check)
        found.append((edge, table, topology))
        check()
    if len(found) == len(nodes) == 1:
        [(_, table, topology)] = found
        return AnalysisNetwork(nodes, topology.out.whole, topology.into.whole, (_EdgePart(table),))
    offsets = _node_offsets(nodes)
    srcs, dsts, parts = [], [], []
    for edge, table, topology in found:
        adjacency = topology.out.whole
        here, there = edge_ends(adjacency)
        srcs.append(here + offsets[edge.src])
        dsts.append(there + offsets[edge.dst])
        parts.append(_EdgePart(table, adjacency.edges))
        check()
    here, there = np.concatenate(srcs), np.concatenate(dsts)
    count = sum(table.rows for table in nodes.values())
    out = CsrAdjacency.build(here, there, (count, count), check)
    into = CsrAdjacency.build(there, here, (count, count), check)
    return AnalysisNetwork(nodes, out, into, tuple(parts))


def edge_ends(adjacency: CsrAdjacency) -> tuple[Numbers, Numbers]:
    """Return the nodes at both ends of each edge."""
    kind = np.int32 if max(adjacency.count, adjacency.width) < 2**31 else np.int64
    here: Numbers = np.repeat(np.arange(adjacency.count).astype(kind), adjacency.degrees)
    return here, np.asarray(adjacency.nodes)


def _node_offsets(nodes: Mapping[str, TypeTable]) -> dict[str, int]:
    ends = np.cumsum([0, *(table.rows for table in nodes.values())])
    return dict(zip(nodes, ends.tolist(), strict=False))


def _edge_weights(table: TypeTable, name: str) -> npt.NDArray[np.float64]:
    """Return the lengths of all edges of a type; raise InvalidInput for one that is none."""
    place = f"{table.type.name}.{name}"
    column = table.column(name)
    if column.null_count:
        message = f"{place} is null for {column.null_count:,} edges; an edge needs a weight"
        raise InvalidInput(message, code="analysis_option_invalid", weight=name)
    weights = np.asarray(column.cast(pa.float64(), safe=False), np.float64)
    if len(weights) and not (np.isfinite(weights).all() and weights.min() >= 0):
        message = f"{place} must be finite numbers from 0 up; its least value is {weights.min()}"
        raise InvalidInput(message, code="analysis_option_invalid", weight=name)
    return weights
