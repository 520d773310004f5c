"""Export a graph as NDJSON lines that `load` reads, or as Parquet files.

Edge types come before node types, both sorted by name, and entities are sorted by ID, so that
exports of equal states are equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.catalog.model import endpoint_column_names
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.dataset_view import DatasetView, blob_properties
from omnigraph.errors import InvalidInput, OmniError, translate_disk_errors
from omnigraph.query.entities import find_types
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_json, to_timestamps
from omnigraph.types.data_values import blob_text


def export_lines(
    manifest: Manifest, snapshot: Snapshot, types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield every entity as one line of JSON, without the line end."""
    for type_ in select_types(snapshot, types):
        for batch in entity_batches(manifest, snapshot, type_):
            yield from entity_lines(batch, type_)


def entity_lines(batch: pa.RecordBatch, type_: AcceptedType) -> Iterator[str]:
    """Yield entities as lines of JSON."""
    ends = _ends(type_).values()
    for data in entity_records(batch, type_):
        between = zip(("from", "to"), [data.pop(name) for name in ends], strict=False)
        word = "edge" if type_.kind is TypeKind.EDGE else "type"
        record = {word: type_.name, **dict(between), "data": data}
        yield json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def entity_records(batch: pa.RecordBatch, type_: AcceptedType) -> Iterator[dict[str, Any]]:
    """Yield entities as JSON values by name: `id`, the endpoints of an edge, properties."""
    properties = type_.definition.properties.values()
    system = {"id": "id", **_ends(type_)}
    columns = [batch[name].to_pylist() for name in system]
    columns += [_json(batch[p.name], p.type) for p in properties]
    names = column_names(type_)
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def column_names(type_: AcceptedType) -> list[str]:
    """Return the names of the exported columns of a type."""
    return ["id", *_ends(type_).values(), *type_.definition.properties]


def _ends(type_: AcceptedType) -> dict[str, str]:
    """Return the endpoint columns of an edge and their exported names."""
    return endpoint_column_names(type_.definition.properties) if type_.kind is TypeKind.EDGE else {}


def export_parquet(
    manifest: Manifest, snapshot: Snapshot, folder: Path, types: Sequence[str] = ()
) -> dict[str, int]:
    """Write one Parquet file per type; return the number of entities by `node:T`."""
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty", code="export_folder_not_empty")
    with translate_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for type_ in select_types(snapshot, types):
        path = folder / f"{type_.kind}-{type_.name}.parquet"
        try:
            with translate_disk_errors(path):
                batches = entity_batches(manifest, snapshot, type_)
                counts[type_.entity] = write_parquet(batches, type_, path)
        except OmniError:
            path.unlink(missing_ok=True)
            raise
    return counts


def write_parquet(
    batches: Iterator[pa.RecordBatch], type_: AcceptedType, file: Path | BinaryIO
) -> int:
    """Write entities to a file, if there are any, and return their number."""
    count, writer = 0, None
    for batch in batches:
        rows = to_export_columns(batch, type_)
        writer = writer or pq.ParquetWriter(file, rows.schema)
        writer.write_table(rows)
        count += rows.num_rows
    if writer is not None:
        writer.close()
    return count


def select_types(snapshot: Snapshot, names: Sequence[str]) -> list[AcceptedType]:
    """Return the types with the given names, or all, in the order of the export."""
    selected = {type_.entity for name in names for type_ in find_types(snapshot, name)}
    kinds = (TypeKind.EDGE, TypeKind.NODE)
    types = [type_ for kind in kinds for type_ in snapshot.schema.of_kind(kind)]
    return [type_ for type_ in types if not names or type_.entity in selected]


def entity_batches(
    manifest: Manifest,
    snapshot: Snapshot,
    type_: AcceptedType,
    fragments: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the entities of a type, or of some fragments, by ID, with logical column names."""
    view, blobs = DatasetView.of(manifest, snapshot, type_), blob_properties(type_)
    for batch in view.scan(view.column_names, by_id=True, fragments=fragments):
        columns = {name: batch[name] for name in view.column_names}
        for name in blobs:
            texts = map(_blob_text, view.read_blobs(name, batch))
            columns[name] = pa.array(texts, pa.string())
        yield pa.RecordBatch.from_pydict(columns)


def _blob_text(value: bytes | str | None) -> str | None:
    return blob_text(value) if isinstance(value, bytes) else value


def _json(column: pa.Array, type_: PropertyType) -> list[Any]:
    return list(column.to_pylist()) if type_.scalar is Scalar.BLOB else to_json(column, type_)


def to_export_columns(batch: pa.RecordBatch, type_: AcceptedType) -> pa.Table:
    """Return rows for other programs: exported endpoint names, DateTime as timestamps."""
    properties = type_.definition.properties.values()
    columns = [batch[name] for name in ("id", *_ends(type_))]
    columns += [to_timestamps(batch[p.name], p.type) for p in properties]
    return pa.table(columns, names=column_names(type_))
