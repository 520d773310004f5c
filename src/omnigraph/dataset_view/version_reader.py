"""Read the entities of one type at one version of its dataset, under logical column names.

Columns go in and come out under the names of the schema: `id`, the ends `src` and `dst` of an edge,
and properties. Which stored column holds a property is decided here, by the identity of the
property, because renames, drops and wider types leave stored columns unchanged.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType, Metric, TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.storage.columns import (
    ROW_OFFSET,
    FragmentRows,
    Positions,
    RowAddressMap,
    column_chunks,
    fragment_column,
    positions_where,
    read_column,
    rows_at,
    rows_where,
    write_column,
)
from omnigraph.storage.datasets import Datasets
from omnigraph.storage.index import (
    IndexKind,
    IndexTask,
    coverage,
    index_name,
    index_task,
    nearest_rows,
    uncovered_fragments,
)
from omnigraph.storage.layout import (
    ColumnLayout,
    column_layout,
    embedding_model,
    physical_columns,
    to_stored,
)
from omnigraph.storage.row_lookup import (
    ROW_ADDRESS,
    count_in_base_fragments,
    count_rows,
    lookup_rows,
    select_in_batches,
    select_rows,
    sql_literals,
)
from omnigraph.storage.scan import BlobCell, find_row, fragment_rows, read_blob, read_blobs, scan
from omnigraph.storage.staged_writes import record_embedding_models
from omnigraph.storage.version_diff import RowAddresses, VersionGrowth
from omnigraph.types import Scalar
from omnigraph.types.arrow import BLOB, arrow_type

_NODE_COLUMNS = ("id",)
_EDGE_COLUMNS = ("id", "src", "dst")
_PROBE_CHUNK = 1_024
_LITERAL_OR_COLUMN = re.compile(r"'(?:[^']|'')*'|`([^`]*)`")


def system_columns(type_: AcceptedType) -> tuple[str, ...]:
    """Return the columns of a type that are not properties."""
    return _EDGE_COLUMNS if type_.kind is TypeKind.EDGE else _NODE_COLUMNS


def logical_schema(type_: AcceptedType) -> pa.Schema:
    """Return the columns of a whole entity, in order."""
    fields = [pa.field(name, pa.string()) for name in system_columns(type_)]
    properties = type_.definition.properties.values()
    return pa.schema([*fields, *((p.name, arrow_type(p.type)) for p in properties)])


def blob_properties(type_: AcceptedType) -> list[str]:
    """Return the properties of a type that hold blobs."""
    properties = type_.definition.properties.values()
    return [p.name for p in properties if p.type.scalar is Scalar.BLOB]


class VersionReader(ABC):
    """Reads one version of a dataset as the entities of a type.

    A condition is a filter of Lance that names columns logically, in backticks. Unless stated
    otherwise, blobs are descriptors: the kind, size and URI that storage records.
    """

    type: AcceptedType

    def __init__(self, type_: AcceptedType) -> None:
        self.type = type_
        self._columns: dict[int, str] | None = None

    @abstractmethod
    def open(self) -> AbstractContextManager[Any]:
        """Return the Lance handle of the version, for functions of `storage`."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of entities."""

    @property
    def system_columns(self) -> tuple[str, ...]:
        """The columns that are not properties."""
        return system_columns(self.type)

    @property
    def column_names(self) -> list[str]:
        """All columns of an entity, in order."""
        return [*self.system_columns, *self.type.definition.properties]

    @property
    def schema(self) -> pa.Schema:
        """The columns of a whole entity with their types."""
        return logical_schema(self.type)

    # --- rows by value -------------------------------------------------------------------------

    def lookup(
        self, column: str, values: pa.Array | pa.ChunkedArray, columns: Sequence[str]
    ) -> pa.Table:
        """Return the entities whose column is one of the values, with row addresses.

        Blobs are returned as bytes, in the form they have in a change.
        """
        names = [*columns, *([column] if column not in columns else [])]
        with self.open() as handle:
            rows = lookup_rows(
                handle, self._stored_name(column), values, self._stored_list(names), self.rows
            )
        return self._with_blob_bytes(rows, names).select([*columns, ROW_ADDRESS])

    def select(self, condition: str | None, columns: Sequence[str]) -> pa.Table:
        """Return the entities that satisfy a condition, with row addresses; blobs as bytes."""
        with self.open() as handle:
            rows = select_rows(handle, self._stored_list(columns), self._stored_filter(condition))
        return self._with_blob_bytes(rows, columns)

    def select_in_batches(
        self, condition: str, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.Table]:
        """Yield the entities that satisfy a condition in batches; blobs as bytes."""
        with self.open() as handle:
            names, where = self._stored_list(columns), self._stored_filter(condition)
            for rows in select_in_batches(handle, names, where, batch_rows):
                yield self._with_blob_bytes(rows, columns).drop_columns(ROW_ADDRESS)

    def count(self, condition: str) -> int:
        """Return how many entities satisfy a condition."""
        with self.open() as handle:
            return count_rows(handle, self._stored_filter(condition))

    def find(self, id_: str, columns: Sequence[str]) -> pa.Table:
        """Return the entity with an ID and its row address, or no row."""
        with self.open() as handle:
            rows = find_row(handle, id_, self._stored_list(columns))
        return rows.rename_columns([*columns, ROW_ADDRESS])

    def scan(
        self,
        columns: Sequence[str],
        *,
        by_id: bool = False,
        condition: str | None = None,
        fragments: Sequence[int] | None = None,
        batch_rows: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield entities with row addresses, optionally by ID and only of some fragments."""
        with self.open() as handle:
            batches = scan(
                handle,
                self._stored_list(columns),
                by_id=by_id,
                where=self._stored_filter(condition),
                fragments=fragments,
                batch_rows=batch_rows,
            )
            for batch in batches:
                yield batch.rename_columns([*columns, ROW_ADDRESS])

    def fragment_rows(self) -> dict[int, int]:
        """Return the number of entities of each fragment."""
        with self.open() as handle:
            return fragment_rows(handle)

    # --- rows by address -----------------------------------------------------------------------

    def all_addresses(self) -> pa.Table:
        """Return the ID and row address of every entity."""
        with self.open() as handle:
            return select_rows(handle, ["id"])

    def addresses_of(self, ids: pa.Array) -> pa.Table:
        """Return the ID and row address of those of the IDs that exist."""
        return self.lookup("id", ids, ["id"])

    def rows_at(self, addresses: RowAddresses, columns: Sequence[str]) -> pa.Table:
        """Return entities by row address, in this order."""
        with self.open() as handle:
            rows = rows_at(handle, addresses, self._stored_list(columns))
        return rows.rename_columns(list(columns))

    def blobs_at(self, addresses: RowAddresses, column: str) -> list[bytes | str | None]:
        """Return blobs by row address, in this order: bytes, or the URI of an external one."""
        rows = self.rows_at(addresses, [column])
        rows = rows.append_column(ROW_ADDRESS, pa.array(addresses, pa.uint64()))
        return list(self.read_blobs(column, rows))

    def entities_at(self, addresses: RowAddresses) -> pa.Table:
        """Return whole entities by row address; blobs as bytes or URIs."""
        rows = self.rows_at(addresses, self.column_names)
        blobs = blob_properties(self.type)
        if blobs:
            located = rows.append_column(ROW_ADDRESS, pa.array(addresses, pa.uint64()))
            for name in blobs:
                cells = map(_blob_value, self.read_blobs(name, located))
                place = rows.column_names.index(name)
                rows = rows.set_column(place, name, pa.array(cells, BLOB))
        return rows

    def entities(self, ids: pa.Array) -> pa.Table:
        """Return those of the entities that exist; blobs as bytes or URIs."""
        addresses = self.addresses_of(ids)[ROW_ADDRESS].combine_chunks()
        return self.entities_at(addresses.to_numpy())

    def read_blobs(
        self, column: str, rows: pa.RecordBatch | pa.Table
    ) -> Iterator[bytes | str | None]:
        """Yield the blobs of scanned rows: bytes, the URI of an external one, None for null."""
        with self.open() as handle:
            stored = self._stored_name(column)
            yield from read_blobs(handle, stored, _renamed(rows, column, stored))

    def read_blob_ranges(
        self, column: str, cell: BlobCell, ranges: Iterable[tuple[int, int]]
    ) -> Iterator[bytes]:
        """Yield ranges of one blob, each given as its start and length in bytes."""
        with self.open() as handle:
            stored = self._stored_name(column)
            for start, length in ranges:
                yield read_blob(handle, stored, cell, start, length)

    # --- rows by position ----------------------------------------------------------------------

    def positions(self, condition: str) -> Positions:
        """Return the positions of entities that satisfy a condition, ascending."""
        with self.open() as handle:
            return positions_where(handle, self._stored_filter(condition))

    def lookup_with_positions(
        self, column: str, values: pa.Array, columns: Sequence[str], limit: int | None = None
    ) -> pa.Table:
        """Return entities whose column is one of the values, through an index if there is one.

        With `limit`, no more rows than that are read.
        """
        parts, left = [], limit
        for start in range(0, max(1, len(values)), _PROBE_CHUNK):
            literals = ", ".join(sql_literals(values.slice(start, _PROBE_CHUNK))) or "NULL"
            where = f"`{self._stored_name(column)}` IN ({literals})"
            with self.open() as handle:
                rows = rows_where(handle, where, self._stored_list(columns), left)
            parts.append(rows.rename_columns([*columns, ROW_OFFSET]))
            left = None if left is None else left - parts[-1].num_rows
            if left is not None and left <= 0:
                break
        return pa.concat_tables(parts)

    def read_column(self, name: str) -> pa.Array:
        """Return one column of all entities, by position."""
        with self.open() as handle:
            return read_column(handle, self._stored_name(name))

    def extend_column(self, name: str, before: pa.Array, growth: VersionGrowth) -> pa.Array:
        """Return one column of all entities, given that of the version it grew from."""
        return growth.column(before, self._stored_name(name))

    def read_column_chunks(self, columns: Sequence[str], chunk_rows: int) -> Iterator[pa.Table]:
        """Yield all rows of some columns, at least `chunk_rows` at a time."""
        with self.open() as handle:
            for rows in column_chunks(handle, self._stored_list(columns), chunk_rows):
                yield rows.rename_columns(list(columns))

    def read_fragment_column(
        self, name: str, fragments: Sequence[FragmentRows]
    ) -> Iterator[pa.Array]:
        """Yield a column of some fragments, in their order."""
        with self.open() as handle:
            yield from fragment_column(handle, self._stored_name(name), fragments)

    def address_map(self) -> RowAddressMap:
        """Return the row addresses of positions."""
        with self.open() as handle:
            return RowAddressMap.of(handle)

    # --- indexes and vectors -------------------------------------------------------------------

    def index_coverage(
        self, name: str, kind: IndexKind, metric: Metric = Metric.COSINE
    ) -> tuple[int, int]:
        """Return how many rows the index of a column covers, and its number of segments."""
        with self.open() as handle:
            return coverage(handle, index_name(self._stored_name(name), kind, metric))

    def nearest(
        self, name: str, metric: Metric, vector: npt.NDArray[np.float32], count: int
    ) -> pa.Table:
        """Return the vectors that an index finds nearest, with row addresses."""
        with self.open() as handle:
            stored = self._stored_name(name)
            rows = nearest_rows(handle, stored, metric, vector, count)
        return _renamed(rows, stored, name)

    def embedding_model(self, name: str) -> str | None:
        """Return the model that made all vectors of a property; None if that is unknown."""
        with self.open() as handle:
            return embedding_model(handle.schema.field(self._stored_name(name)))

    def embedding_models(self) -> dict[str, str | None]:
        """Return the recorded model of each vector property."""
        properties = self.type.definition.properties.values()
        names = [p.name for p in properties if p.type.dimension is not None]
        return {name: self.embedding_model(name) for name in names}

    def has_vectors(self, name: str) -> bool:
        """Return whether some entity has a vector."""
        return self.count(f"`{name}` IS NOT NULL") > 0

    def keeps_vectors_of(self, base: VersionReader, name: str) -> bool:
        """Return whether fragments that this version shares with another contain a vector."""
        with self.open() as handle, base.open() as other:
            return (
                count_in_base_fragments(handle, other, self._stored_filter(f"`{name}` IS NOT NULL"))
                > 0
            )

    def embedding_model_by_id(self, property_id: int) -> str | None:
        """Return the model recorded for a property that this version may lack."""
        with self.open() as handle:
            name = physical_columns(handle.schema).get(property_id)
            return None if name is None else embedding_model(handle.schema.field(name))

    def has_vectors_by_id(self, property_id: int) -> bool:
        """Return whether some entity has a vector of a property that this version may lack."""
        with self.open() as handle:
            name = physical_columns(handle.schema).get(property_id)
            return name is not None and count_rows(handle, f"`{name}` IS NOT NULL") > 0

    # --- stored columns ------------------------------------------------------------------------

    def to_stored(self, rows: pa.Table) -> pa.Table:
        """Return rows of a change in the columns that store them, for staging."""
        with self.open() as handle:
            fields = [handle.schema.field(self._stored_name(name)) for name in rows.column_names]
        return to_stored(rows, fields)

    def check_columns(self) -> None:
        """Raise OmniError if the version was reclaimed or lacks a column."""
        self._stored_list(self.column_names)

    def is_stored_like(self, other: VersionReader, name: str) -> bool:
        """Return whether another version holds a column in the same stored column."""
        return self._stored_name(name) == other._stored_name(name)

    def column_layout(self) -> ColumnLayout:
        """Return the stored columns; versions of equal layouts may share fragments."""
        with self.open() as handle:
            return column_layout(handle.schema)

    def has_column(self, name: str) -> bool:
        """Return whether the version has a column; one of a newer schema may lack it."""
        property_id = self.type.property_ids.get(name)
        return property_id is None or property_id in self._stored_columns()

    def _stored_name(self, name: str) -> str:
        property_id = self.type.property_ids.get(name)
        return name if property_id is None else self._stored_columns()[property_id]

    def _stored_columns(self) -> dict[int, str]:
        if self._columns is None:
            with self.open() as handle:
                self._columns = physical_columns(handle.schema)
        return self._columns

    def _stored_list(self, names: Sequence[str]) -> list[str]:
        return [self._stored_name(name) for name in names]

    def _stored_filter(self, condition: str | None) -> Any:  # noqa: ANN401 - None stays None
        """Return a condition over stored columns; text inside literals stays unchanged."""
        if condition is None or "`" not in condition:
            return condition

        def stored(match: re.Match[str]) -> str:
            return match[0] if match[1] is None else f"`{self._stored_name(match[1])}`"

        return _LITERAL_OR_COLUMN.sub(stored, condition)

    def _with_blob_bytes(self, rows: pa.Table, names: Sequence[str]) -> pa.Table:
        """Give columns their logical names, and blobs the form they have in a change."""
        blobs, columns = blob_properties(self.type), {}
        for name, column in zip([*names, ROW_ADDRESS], rows.columns, strict=True):
            columns[name] = _blob_cells(column) if name in blobs else column
        return pa.table(columns)


class DatasetView(VersionReader):
    """A type as a commit shows it: the version of its dataset that an entry names."""

    def __init__(self, manifest: Manifest, type_: AcceptedType, entry: DatasetEntry) -> None:
        super().__init__(type_)
        self.manifest = manifest
        self.entry = entry

    @classmethod
    def of(cls, manifest: Manifest, snapshot: Snapshot, type_: AcceptedType) -> DatasetView:
        """Return a type that the snapshot has."""
        return DatasetView(manifest, type_, snapshot.entry(type_.entity))

    @property
    def rows(self) -> int:
        """The number of entities."""
        return self.entry.rows

    def at(self, entry: DatasetEntry) -> DatasetView:
        """Return the same type at another version."""
        return DatasetView(self.manifest, self.type, entry)

    def open(self) -> AbstractContextManager[Any]:
        """Return the Lance handle of the version, for functions of `storage`."""
        return self.manifest.reading(self.type.entity, self.entry)


class StagedView(VersionReader):
    """A type at a version that is open already, committed or not."""

    def __init__(self, type_: AcceptedType, handle: Any) -> None:  # noqa: ANN401 - a Lance handle
        super().__init__(type_)
        self.handle = handle

    @property
    def rows(self) -> int:
        """The number of entities."""
        return int(self.handle.count_rows())

    def open(self) -> AbstractContextManager[Any]:
        """Return the handle."""
        return nullcontext(self.handle)

    def record_embedding_models(self, models: Mapping[str, str | None]) -> Any:  # noqa: ANN401 - a Lance handle
        """Return a staged version that records the models of vector properties."""
        recorded = self.embedding_models()
        marks = {self._stored_name(n): m for n, m in models.items() if m != recorded[n]}
        return record_embedding_models(self.handle, marks) if marks else self.handle

    def index_task(self, column: str, kind: IndexKind, metric: Metric) -> IndexTask | None:
        """Return the task that makes an index cover all fragments; None if it does."""
        return index_task(self.handle, self._stored_name(column), kind, metric)

    def uncovered_fragments(self, column: str, kind: IndexKind, metric: Metric) -> set[int]:
        """Return the fragments that an index does not cover."""
        name = index_name(self._stored_name(column), kind, metric)
        return set(uncovered_fragments(self.handle, name))

    def write_column(
        self, datasets: Datasets, path: str, name: str, values: Iterable[pa.Array]
    ) -> dict[str, Any]:
        """Write a column for all rows of a fragment; return the metadata of the file."""
        return write_column(datasets, path, self.handle, self._stored_name(name), values)


def _renamed(rows: Any, old: str, new: str) -> Any:  # noqa: ANN401 - a batch or a table
    names = [new if name == old else name for name in rows.schema.names]
    return rows if old == new else rows.rename_columns(names)


def _blob_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = []
    for chunk in column.chunks:
        data = pc.cast(chunk, pa.large_binary())
        parts = [data, pa.nulls(len(chunk), pa.string())]
        mask = chunk.is_null() if chunk.null_count else None
        chunks.append(pa.StructArray.from_arrays(parts, fields=list(BLOB), mask=mask))
    return pa.chunked_array(chunks, BLOB)


def _blob_value(cell: bytes | str | None) -> dict[str, bytes | str | None] | None:
    if cell is None:
        return None
    is_here = isinstance(cell, bytes)
    return {"data": cell if is_here else None, "uri": None if is_here else cell}
