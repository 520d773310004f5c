"""Export a graph in parts: a folder per type, a file per group of fragments.

Each part can be written independently by any process, and writing it twice is harmless. Values are
encoded as in `maintain/export.py`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.catalog import AcceptedType
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import snapshot_of_commit
from omnigraph.dataset_view import DatasetView
from omnigraph.errors import InvalidInput
from omnigraph.maintain.export import (
    column_names,
    entity_batches,
    entity_lines,
    entity_records,
    select_types,
    write_parquet,
)
from omnigraph.query.entities import find_type
from omnigraph.storage import Location
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.scan import group_fragments

PART_ROWS = 262_144
"""Fragments are grouped until a part has this number of rows."""


class ExportPartFormat(StrEnum):
    """The format of a part; the value is its file suffix."""

    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"


def parse_part_format(word: str) -> ExportPartFormat:
    """Return the format with a name."""
    try:
        return ExportPartFormat(word)
    except ValueError:
        message = f"unknown format '{word}'; use one of {', '.join(ExportPartFormat)}"
        raise InvalidInput(message, code="export_format_invalid") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartExportOptions:
    """The types, the format and the target of an export."""

    target: Location
    format: ExportPartFormat
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPart:
    """Some fragments of a type at a commit, and their target file."""

    graph: Location
    commit_id: str
    type_key: str
    fragments: tuple[int, ...]
    target: Location
    path: str


PartRunner: TypeAlias = Callable[[Callable[[ExportPart], int], Sequence[ExportPart]], Sequence[int]]
"""Runs the writer on each part and returns the numbers of entities."""


def export_parts(
    manifest: Manifest,
    snapshot: Snapshot,
    options: PartExportOptions,
    run: PartRunner | None = None,
) -> dict[str, int]:
    """Write types in parts; return the number of entities by `node:T`."""
    if next(iter(ObjectStore(options.target).list("")), None) is not None:
        message = f"{options.target} is not empty"
        raise InvalidInput(message, code="export_folder_not_empty")
    types = select_types(snapshot, options.types)
    parts = [part for type_ in types for part in _plan_parts(manifest, snapshot, type_, options)]
    written = map(write_export_part, parts) if run is None else run(write_export_part, parts)
    counts = {type_.entity: 0 for type_ in types}
    for part, count in zip(parts, written, strict=True):
        counts[part.type_key] += count
    return counts


def _plan_parts(
    manifest: Manifest, snapshot: Snapshot, type_: AcceptedType, options: PartExportOptions
) -> Iterator[ExportPart]:
    rows = DatasetView.of(manifest, snapshot, type_).fragment_rows()
    groups = group_fragments(rows, PART_ROWS)
    for number, fragments in enumerate(groups):
        yield ExportPart(
            graph=manifest.location,
            commit_id=snapshot.commit_id,
            type_key=type_.entity,
            fragments=tuple(fragments),
            target=options.target,
            path=f"{type_.kind}-{type_.name}/part-{number:05}.{options.format}",
        )


def write_export_part(part: ExportPart) -> int:
    """Write one part; return its number of entities."""
    manifest = Manifest(part.graph)
    snapshot = snapshot_of_commit(manifest, part.commit_id)
    type_ = find_type(snapshot, part.type_key)
    batches = entity_batches(manifest, snapshot, type_, part.fragments)
    data, count = _ENCODERS[ExportPartFormat(part.path.rpartition(".")[2])](batches, type_)
    ObjectStore(part.target).put(part.path, data)
    return count


def _encode_parquet(batches: Iterator[pa.RecordBatch], type_: AcceptedType) -> tuple[bytes, int]:
    file = io.BytesIO()
    rows = write_parquet(batches, type_, file)
    return file.getvalue(), rows


def _encode_ndjson(batches: Iterator[pa.RecordBatch], type_: AcceptedType) -> tuple[bytes, int]:
    texts = [line for batch in batches for line in entity_lines(batch, type_)]
    return "".join(f"{text}\n" for text in texts).encode(), len(texts)


def _encode_csv(batches: Iterator[pa.RecordBatch], type_: AcceptedType) -> tuple[bytes, int]:
    """Encode cells as `load` reads them: null is empty, text is quoted, a list is JSON."""
    names = column_names(type_)
    rows = [record for batch in batches for record in entity_records(batch, type_)]
    cells = (",".join(_csv_cell(row[name]) for name in names) for row in rows)
    return "".join(
        f"{line}\n" for line in (",".join(map(_csv_quoted, names)), *cells)
    ).encode(), len(rows)


def _csv_cell(value: Any) -> str:  # noqa: ANN401 - any JSON value
    match value:
        case None:
            return ""
        case str():
            return _csv_quoted(value)
        case list():
            return _csv_quoted(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        case _:
            return json.dumps(value)


def _csv_quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


_ENCODERS: Mapping[
    ExportPartFormat, Callable[[Iterator[pa.RecordBatch], AcceptedType], tuple[bytes, int]]
] = MappingProxyType(
    {
        ExportPartFormat.PARQUET: _encode_parquet,
        ExportPartFormat.CSV: _encode_csv,
        ExportPartFormat.NDJSON: _encode_ndjson,
    }
)
