"""The keys that a change writes and relies on; see `commit/footprint.py`.

A change writes the ID of every entity it inserts, updates or deletes, and the existence of those it
inserts or deletes; the ends of the edges among them, their unique tuples and the counters of edges
with a cardinality. It relies on the IDs it looks up, the existence of the endpoints of its edges,
the tuples and counters, and for a deleted node on the absence of further edges at that node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import Cardinality, EdgeType
from omnigraph.commit.footprint import MAX_KEYS, Footprint, Requirements, TypeKey, hash_key
from omnigraph.write.change_set import RowSchema
from omnigraph.write.checks.unique import key_columns, unique_groups
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.resolved_change import ResolvedChange


@dataclass(slots=True)
class ChangeKeys:
    """The hashes of keys that a change writes and requires, collected type by type.

    With `is_whole` there were too many keys, or a change concerns all entities of its types.
    """

    committed: CommittedState
    written: set[int] = field(default_factory=set)
    required: set[int] = field(default_factory=set)
    types_written: set[TypeKey] = field(default_factory=set)
    types_required: set[TypeKey] = field(default_factory=set)
    types_adjacent: set[TypeKey] = field(default_factory=set)
    """Types that a change of all entities relies on, besides those it changes."""
    types_read: set[TypeKey] = field(default_factory=set)
    """Types in which it looked up IDs."""
    is_whole: bool = False

    def add(self, image: ResolvedChange) -> None:
        """Add the keys of the change of one type."""
        shape = image.shape
        type_key = self._type_key(shape)
        self.types_written.add(type_key)
        self.types_adjacent |= self._adjacent_types(shape)
        if image.change.replace or image.change.adopted is not None:
            self.is_whole = True
        if self.is_whole or image.rows.num_rows + image.replaced.num_rows > MAX_KEYS:
            self.is_whole = True
            return
        ours, before = image.rows["id"].to_pylist(), image.replaced["id"].to_pylist()
        self._both(type_key, "id", {*ours, *before})
        existence = set(ours) ^ set(before)
        self.written |= {hash_key(type_key, "exists", id_) for id_ in existence}
        for columns in unique_groups(shape):
            texts = [column.to_pylist() for column in key_columns(image.rows, shape, columns)]
            for values in zip(*texts, strict=True):
                if None not in values:
                    key = hash_key(type_key, "unique", *columns, *values)
                    self.written.add(key)
                    self.required.add(key)
        if shape.kind is TypeKind.EDGE:
            self._add_ends(image, type_key)
        elif len(image.removed):
            self._add_removed_nodes(image)

    def add_ids_read(self, committed: CommittedState) -> None:
        """Require the IDs that a change has looked up, whether they exist or not."""
        for shape, ids in committed.ids_read.values():
            type_key = self._type_key(shape)
            self.types_read.add(type_key)
            self.required |= {hash_key(type_key, "id", id_) for id_ in ids}

    def _adjacent_types(self, shape: RowSchema) -> set[TypeKey]:
        """Return the node types at the ends of an edge type, or the edge types at a node type."""
        definition, catalog = shape.definition, self.committed.snapshot.catalog
        if isinstance(definition, EdgeType):
            adjacent = [(TypeKind.NODE, name) for name in (definition.src, definition.dst)]
        else:
            adjacent = [(TypeKind.EDGE, edge.name) for edge in catalog.incident_edges(shape.name)]
        shapes = (self.committed.row_schema(kind, name) for kind, name in adjacent)
        return {self._type_key(adjacent_shape) for adjacent_shape in shapes}

    def _add_ends(self, image: ResolvedChange, edge: TypeKey) -> None:
        definition = image.shape.definition
        assert isinstance(definition, EdgeType), "the type of an edge"
        for end, node in (("src", definition.src), ("dst", definition.dst)):
            ours, before = image.rows[end], image.replaced[end]
            ends = pc.unique(pa.chunked_array([*ours.chunks, *before.chunks], pa.string()))
            self.written |= {hash_key(edge, end, id_) for id_ in ends.to_pylist()}
            node_key = self._type_key(self.committed.row_schema(TypeKind.NODE, node))
            self.required |= {hash_key(node_key, "exists", id_) for id_ in set(ours.to_pylist())}
            if end == "src" and definition.cardinality != Cardinality():
                self._both(edge, "count", ends.to_pylist())

    def _add_removed_nodes(self, image: ResolvedChange) -> None:
        catalog = self.committed.snapshot.catalog
        for edge in catalog.incident_edges(image.shape.name):
            edge_key = self._type_key(self.committed.row_schema(TypeKind.EDGE, edge.name))
            for end, node in (("src", edge.src), ("dst", edge.dst)):
                if node == image.shape.name:
                    self.required |= {
                        hash_key(edge_key, end, id_) for id_ in image.removed.to_pylist()
                    }

    def _both(self, type_key: TypeKey, topic: str, values: Iterable[str]) -> None:
        keys = {hash_key(type_key, topic, value) for value in values}
        self.written |= keys
        self.required |= keys

    def _type_key(self, shape: RowSchema) -> TypeKey:
        return self.committed.entry(shape).key

    def footprint(self) -> Footprint:
        """Return what the commit changes."""
        keys = None if self.is_whole else frozenset(self.written)
        return Footprint(frozenset(self.types_written), keys)

    def requirements(self) -> Requirements:
        """Return what the change relies on."""
        if self.is_whole:
            types = self.types_written | self.types_required | self.types_adjacent | self.types_read
            return Requirements(types=frozenset(types))
        # The keys are about the types it changes or reads, and those at the ends of their edges.
        key_types = frozenset(self.types_written | self.types_adjacent | self.types_read)
        return Requirements(frozenset(self.required), frozenset(self.types_required), key_types)


def keys_of(
    images: Mapping[str, ResolvedChange], committed: CommittedState, scanned: Iterable[RowSchema]
) -> ChangeKeys:
    """Return the keys of a change; `scanned` are types it has read by other conditions than IDs."""
    keys = ChangeKeys(committed)
    keys.types_required |= {committed.entry(shape).key for shape in scanned}
    keys.add_ids_read(committed)
    for image in images.values():
        keys.add(image)
    return keys
