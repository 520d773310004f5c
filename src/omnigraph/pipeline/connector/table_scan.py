"""A table scan: one type at one physical version, with selected columns.

It is plain data. Planners and executors run in other processes and receive it as it is, so that all
of them read the same rows, whatever is committed in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.catalog.model import endpoint_column_names
from omnigraph.commit.graph_creation import open_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.dataset_view import DatasetView
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.pipeline.connector.columns import arrow_schema, spark_type, to_spark
from omnigraph.query.entities import find_type
from omnigraph.storage import Location
from omnigraph.storage.durability import Durability
from omnigraph.storage.scan import group_fragments
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.data_values import blob_text

PARTITION_ROWS = 262_144
"""The least number of rows of fragments that are read together."""

_TEXT = PropertyType(Scalar.STRING)


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """One column: its name, that of the entity, and what it holds."""

    name: str
    column: str
    type: PropertyType
    is_property: bool = True

    @property
    def is_blob(self) -> bool:
        """Return whether values must be fetched one by one."""
        return self.type.scalar is Scalar.BLOB

    @property
    def field(self) -> StructField:
        """The column as Spark sees it; properties are nullable, the validator checks the rest."""
        return StructField(self.name, spark_type(self.type), self.is_property)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """The rows of a type as one snapshot shows them."""

    location: Location
    entity_type: AcceptedType
    entry: DatasetEntry
    commit_id: str
    columns: tuple[ScanColumn, ...]
    where: str | None = None

    @property
    def entity(self) -> str:
        """The type, with its kind."""
        return self.entity_type.entity

    @property
    def schema(self) -> StructType:
        """The schema Spark sees."""
        return StructType([column.field for column in self.columns])

    def named(self, names: Sequence[str] | None) -> TableScan:
        """Return the same with some columns; without names with all but blobs."""
        known = {column.name: column for column in self.columns}
        if names is None:
            return replace(self, columns=tuple(c for c in self.columns if not c.is_blob))
        unknown = [name for name in names if name not in known]
        if unknown:
            hints = [hint for name in unknown if (hint := did_you_mean(name, known))]
            message = "; ".join([f"{self.entity} has no column {', '.join(unknown)}", *hints])
            raise NotFound(message, code="unknown_column", entity=self.entity, columns=unknown)
        if not names or len(set(names)) < len(names):
            message = f"name at least one column of {self.entity}, and each column once"
            raise InvalidInput(message, code="columns_invalid", entity=self.entity)
        return replace(self, columns=tuple(known[name] for name in names))

    def only(self, schema: StructType) -> TableScan:
        """Return the same with the columns of a given schema."""
        columns = {column.name: column for column in self.columns}
        wrong = []
        for given in schema:
            column = columns.get(given.name)
            if column is None:
                wrong.append(f"there is no column {given.name}")
            elif (ours := column.field.dataType.simpleString()) != given.dataType.simpleString():
                wrong.append(f"{given.name} is {ours}, not {given.dataType.simpleString()}")
        if wrong:
            message = f"{self.entity} cannot be read with this schema: {'; '.join(wrong)}"
            raise InvalidInput(message, code="columns_invalid", entity=self.entity, problems=wrong)
        return replace(self, columns=tuple(columns[name] for name in schema.names))

    def parts(self) -> list[list[int]]:
        """Return the fragments to be read together."""
        return group_fragments(self._view().fragment_rows(), PARTITION_ROWS)

    def rows(self, fragments: Sequence[int], schema: StructType) -> Iterator[pa.RecordBatch]:
        """Yield the rows of fragments in the schema of Spark."""
        if not fragments:
            return
        view, arrow = self._view(), arrow_schema(schema)
        names = [column.column for column in self.columns]
        for batch in view.scan(names or ["id"], condition=self.where, fragments=fragments):
            columns = [
                _texts(view, column.column, batch) if column.is_blob else batch[column.column]
                for column in self.columns
            ]
            yield to_spark(columns, arrow)

    def _view(self) -> DatasetView:
        return DatasetView(manifest_at(self.location), self.entity_type, self.entry)


def _texts(view: DatasetView, column: str, batch: pa.RecordBatch) -> pa.Array:
    blobs = view.read_blobs(column, batch)
    texts = (blob_text(blob) if isinstance(blob, bytes) else blob for blob in blobs)
    return pa.array(texts, pa.string())


def pin_table(manifest: Manifest, snapshot: Snapshot, type_name: str) -> TableScan:
    """Pin the rows of a type, with all its columns."""
    type_ = find_type(snapshot, type_name)
    DatasetView.of(manifest, snapshot, type_).check_columns()
    properties = type_.definition.properties
    ends = endpoint_column_names(properties) if type_.kind is TypeKind.EDGE else {}
    system = {"id": "id", **ends}
    columns = [ScanColumn(name, end, _TEXT, is_property=False) for end, name in system.items()]
    columns += [ScanColumn(p.name, p.name, p.type) for p in properties.values()]
    return TableScan(
        location=manifest.location,
        entity_type=type_,
        entry=snapshot.entry(type_.entity),
        commit_id=snapshot.commit_id,
        columns=tuple(columns),
    )


def manifest_at(location: Location) -> Manifest:
    """Return the graph at a location, cached per process."""
    return _opened(location.uri, tuple(sorted(location.options.items())), location.durability)


@lru_cache(maxsize=8)
def _opened(uri: str, options: tuple[tuple[str, str], ...], durability: Durability) -> Manifest:
    manifest = Manifest(Location(uri, dict(options), durability))
    open_graph(manifest)
    return manifest
