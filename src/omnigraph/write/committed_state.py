"""The committed state that a change is based on.

It records which types were read: publishing fails when another commit changed one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.commit.footprint import MAX_KEYS
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.commit.snapshot import apply_scope
from omnigraph.dataset_view import DatasetView
from omnigraph.policy.permissions import TypeScope
from omnigraph.write.change_set import RowSchema, find_row_schema

MAX_REMEMBERED_IDS = 10_000
"""Number of IDs of a type up to which a lookup is remembered."""


class ScanRequired(Exception):
    """A change has to read entities by another condition than their keys."""


class CommittedState:
    """The entities of one snapshot, by logical column names."""

    def __init__(self, manifest: Manifest, snapshot: Snapshot, *, scans: bool = True) -> None:
        self._manifest = manifest
        self.snapshot = snapshot
        self.types_read: set[str] = set()
        self.types_scanned: dict[str, RowSchema] = {}
        self.ids_read: dict[str, tuple[RowSchema, set[str]]] = {}
        self._scans = scans
        self._looked_up: dict[str, tuple[pa.Array, pa.Table]] = {}

    def apply_scope(self, scope: TypeScope) -> Snapshot:
        """Return the part of the state that a scope shows."""
        return apply_scope(self._manifest, self.snapshot, scope)

    def row_schema(self, kind: TypeKind, name: str) -> RowSchema:
        """Return the row schema of a type."""
        return find_row_schema(self.snapshot.schema, kind, name)

    def entry(self, schema: RowSchema) -> DatasetEntry:
        """Return the dataset of a type."""
        return self.snapshot.entry(schema.table_key)

    def view(self, schema: RowSchema) -> DatasetView:
        """Return the entities of a type, without recording that they were read."""
        return DatasetView(self._manifest, schema.type, self.entry(schema))

    def read(self, schema: RowSchema) -> DatasetView:
        """Return the entities of a type, and record that the change depends on all of them.

        Raises ScanRequired where only lookups by keys are allowed.
        """
        if not self._scans:
            raise ScanRequired
        self.types_scanned[schema.table_key] = schema
        return self.by_key(schema)

    def by_key(self, schema: RowSchema) -> DatasetView:
        """Return the entities of a type for a lookup of keys that `write/footprints.py` lists."""
        self.types_read.add(schema.table_key)
        return self.view(schema)

    def find(self, schema: RowSchema, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Return the entities with one of the IDs; the change depends on those that are missing."""
        self._depend_on(schema, ids)
        return self.by_key(schema).lookup("id", ids, columns)

    def lookup_ids(self, schema: RowSchema, ids: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Return the system columns and row addresses of those of the IDs that exist.

        IDs among those of the last call for the type are not looked up again. The change depends on
        all of them: rows that are equal to what is committed are left out of it.
        """
        self._depend_on(schema, ids)
        view, known = self.by_key(schema), self._looked_up.get(schema.table_key)
        if known is not None and pc.all(pc.is_in(ids, value_set=known[0])).as_py():
            return known[1].filter(pc.is_in(known[1]["id"], value_set=pc.unique(ids)))
        rows = view.lookup("id", ids, schema.system)
        if len(ids) <= MAX_REMEMBERED_IDS:
            self._looked_up[schema.table_key] = (pc.unique(ids), rows)
        return rows

    def _depend_on(self, schema: RowSchema, ids: pa.Array | pa.ChunkedArray) -> None:
        """Record that the change depends on IDs; on the whole type if there are too many."""
        _, read = self.ids_read.setdefault(schema.table_key, (schema, set()))
        if len(ids) <= MAX_KEYS:
            read.update(ids.to_pylist())
        if max(len(ids), len(read)) > MAX_KEYS:
            self.read(schema)
            read.clear()


def incident_edges(
    committed: CommittedState, nodes: RowSchema, ids: pa.Array
) -> Iterator[tuple[RowSchema, pa.ChunkedArray]]:
    """Yield the IDs of edges that start or end at nodes, type by type, end by end."""
    for edge in committed.snapshot.catalog.incident_edges(nodes.name):
        incident = committed.row_schema(TypeKind.EDGE, edge.name)
        for end, node in (("src", edge.src), ("dst", edge.dst)):
            if node == nodes.name:
                yield incident, committed.by_key(incident).lookup(end, ids, ["id"])["id"]
