"""This module is what a writer may ask about the committed state it writes on top of.

It remembers which types were asked about: publishing fails when one of them moved meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.commit.snapshot import apply_scope
from omnigraph.policy.permissions import TypeScope
from omnigraph.storage.columns import rows_at
from omnigraph.storage.layout import embedding_model, physical_columns
from omnigraph.storage.row_lookup import (
    ROW_ADDRESS,
    count_rows,
    lookup_rows,
    select_in_batches,
    select_rows,
)
from omnigraph.storage.scan import read_blobs
from omnigraph.types import Scalar
from omnigraph.types.arrow import BLOB
from omnigraph.write.change_set import RowSchema, find_row_schema

__all__ = ["ROW_ADDRESS", "CommittedState"]


class CommittedState:
    """The entities of one snapshot, by logical column names."""

    def __init__(self, manifest: Manifest, snapshot: Snapshot) -> None:
        self._manifest = manifest
        self.snapshot = snapshot
        self.consulted: set[str] = set()

    def seen(self, scope: TypeScope) -> Snapshot:
        """Return what a scope shows of the state."""
        return apply_scope(self._manifest, self.snapshot, scope)

    def shape(self, kind: TypeKind, name: str) -> RowSchema:
        """Return the shape of a type."""
        return find_row_schema(self.snapshot.schema, kind, name)

    def entry(self, shape: RowSchema) -> DatasetEntry:
        """Return the dataset of a type."""
        return self.snapshot.entry(shape.table_key)

    def by(
        self,
        shape: RowSchema,
        column: str,
        values: pa.Array | pa.ChunkedArray,
        columns: Sequence[str],
    ) -> pa.Table:
        """Return the entities whose column is one of the values, with row addresses."""
        names = [*columns, *([column] if column not in columns else [])]
        self.consulted.add(shape.table_key)
        entry = self.entry(shape)
        with self._manifest.reading(shape.table_key, entry) as handle:
            physical = self.physical_names(shape, handle)
            found = lookup_rows(
                handle, physical[column], values, [physical[name] for name in names], entry.rows
            )
        return _to_logical_columns(found, shape, names).select([*columns, ROW_ADDRESS])

    def where(self, shape: RowSchema, condition: str | None, columns: Sequence[str]) -> pa.Table:
        """Return the entities a filter of physical columns lets through, with row addresses."""
        self.consulted.add(shape.table_key)
        entry = self.entry(shape)
        with self._manifest.reading(shape.table_key, entry) as handle:
            physical = self.physical_names(shape, handle)
            found = select_rows(handle, [physical[name] for name in columns], condition)
        return _to_logical_columns(found, shape, columns)

    def in_batches(
        self, shape: RowSchema, condition: str, columns: Sequence[str], rows: int
    ) -> Iterator[pa.Table]:
        """Yield the entities a filter of physical columns lets through, so many at a time."""
        self.consulted.add(shape.table_key)
        with self._manifest.reading(shape.table_key, self.entry(shape)) as handle:
            physical = self.physical_names(shape, handle)
            names = [physical[name] for name in columns]
            for found in select_in_batches(handle, names, condition, rows):
                yield _to_logical_columns(found, shape, columns).drop_columns(ROW_ADDRESS)

    def at(
        self, shape: RowSchema, addresses: npt.NDArray[np.uint64], columns: Sequence[str]
    ) -> pa.Table:
        """Return entities by row address, in this order; of blobs what storage notes of them."""
        with self._manifest.reading(shape.table_key, self.entry(shape)) as handle:
            physical = self.physical_names(shape, handle)
            found = rows_at(handle, addresses, [physical[name] for name in columns])
        return found.rename_columns(list(columns))

    def blobs_at(
        self, shape: RowSchema, addresses: npt.NDArray[np.uint64], column: str
    ) -> list[bytes | str | None]:
        """Return blobs by row address, in this order: bytes that are here, the URI of others."""
        with self._manifest.reading(shape.table_key, self.entry(shape)) as handle:
            name = self.physical_names(shape, handle)[column]
            rows = rows_at(handle, addresses, [name])
            rows = rows.append_column(ROW_ADDRESS, pa.array(addresses, pa.uint64()))
            return list(read_blobs(handle, name, rows))

    def count(self, shape: RowSchema, condition: str) -> int:
        """Return how many entities a filter of physical columns lets through."""
        self.consulted.add(shape.table_key)
        with self._manifest.reading(shape.table_key, self.entry(shape)) as handle:
            return count_rows(handle, condition)

    def embedding_model(self, shape: RowSchema, name: str) -> str | None:
        """Return the model that made all vectors of a property, if that is known."""
        with self._manifest.reading(shape.table_key, self.entry(shape)) as handle:
            column = self.physical_names(shape, handle)[name]
            return embedding_model(handle.schema.field(column))

    def present(self, shape: RowSchema, ids: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
        """Return those of the ids that exist."""
        return self.by(shape, "id", ids, ["id"])["id"]

    def names(self, shape: RowSchema) -> dict[str, str]:
        """Return the physical column of each logical one."""
        with self._manifest.reading(shape.table_key, self.entry(shape)) as handle:
            return self.physical_names(shape, handle)

    @staticmethod
    def physical_names(shape: RowSchema, handle: Any) -> dict[str, str]:  # noqa: ANN401 - a Lance handle
        """Return the physical column of each logical one, as a handle has them."""
        columns = physical_columns(handle.schema)
        properties = {name: columns[id_] for name, id_ in shape.type.property_ids.items()}
        return {**{name: name for name in shape.system}, **properties}


def _to_logical_columns(found: pa.Table, shape: RowSchema, names: Sequence[str]) -> pa.Table:
    """Give columns their logical names, and blobs the form they have in a change."""
    columns = {}
    for name, column in zip([*names, ROW_ADDRESS], found.columns, strict=True):
        property_ = shape.properties.get(name)
        is_blob = property_ is not None and property_.type.scalar is Scalar.BLOB
        columns[name] = _blob_cells(column) if is_blob else column
    return pa.table(columns)


def _blob_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = []
    for chunk in column.chunks:
        data = pc.cast(chunk, pa.large_binary())
        parts = [data, pa.nulls(len(chunk), pa.string())]
        mask = chunk.is_null() if chunk.null_count else None
        chunks.append(pa.StructArray.from_arrays(parts, fields=list(BLOB), mask=mask))
    return pa.chunked_array(chunks, BLOB)


# ----------------------------------------------------------------------
# This module finds the edges that go with a node.


def incident_edges(
    committed: CommittedState, nodes: RowSchema, ids: pa.Array
) -> Iterator[tuple[RowSchema, pa.ChunkedArray]]:
    """Yield the ids of edges that start or end at nodes, type by type, end by end."""
    for edge in committed.snapshot.catalog.incident_edges(nodes.name):
        incident = committed.shape(TypeKind.EDGE, edge.name)
        for end, node in (("src", edge.src), ("dst", edge.dst)):
            if node == nodes.name:
                yield incident, committed.by(incident, end, ids, ["id"])["id"]
