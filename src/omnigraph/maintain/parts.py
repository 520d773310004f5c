"""This module writes a graph out in parts: a folder per type, a file per some of its fragments.

Each part can be written by itself, by any process, and twice is as good as once. The values are
those of `maintain/export.py`.
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
import pyarrow.parquet as pq

from omnigraph.catalog import AcceptedType
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import snapshot_of_commit
from omnigraph.errors import InvalidInput
from omnigraph.maintain.export import (
    batches,
    chosen_types,
    column_names,
    columnar,
    lines,
    records,
)
from omnigraph.query.entity import find_type
from omnigraph.storage import Location
from omnigraph.storage.objects import Objects
from omnigraph.storage.read import fragment_rows, pack

PART_ROWS = 262_144
"""Fragments are written together until they have so many rows."""


class PartFormat(StrEnum):
    """What a part is; the value is what its name ends in."""

    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"


def part_format(word: str) -> PartFormat:
    """Return the format a word names."""
    try:
        return PartFormat(word)
    except ValueError:
        message = f"unknown format '{word}'; it is one of {', '.join(PartFormat)}"
        raise InvalidInput(message, code="export_format_invalid") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsOptions:
    """What to write, as what, and below which address."""

    target: Location
    format: PartFormat
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some fragments of a type in the state of a commit, and the file they go to."""

    graph: Location
    commit_id: str
    type_key: str
    fragments: tuple[int, ...]
    target: Location
    path: str


Run: TypeAlias = Callable[[Callable[[Part], int], Sequence[Part]], Sequence[int]]
"""Writes parts, each by itself, and returns how many entities each holds."""


def export_parts(
    manifest: Manifest, snapshot: Snapshot, options: PartsOptions, run: Run | None = None
) -> dict[str, int]:
    """Write types in parts; return how many entities of each there are, by `node:T`."""
    if next(iter(Objects(options.target).list("")), None) is not None:
        message = f"{options.target} is not empty"
        raise InvalidInput(message, code="export_folder_not_empty")
    types = chosen_types(snapshot, options.types)
    parts = [part for type_ in types for part in _parts(manifest, snapshot, type_, options)]
    written = (run or _one_by_one)(write_part, parts)
    counts = {type_.entity: 0 for type_ in types}
    for part, count in zip(parts, written, strict=True):
        counts[part.type_key] += count
    return counts


def _one_by_one(work: Callable[[Part], int], parts: Sequence[Part]) -> list[int]:
    return [work(part) for part in parts]


def _parts(
    manifest: Manifest, snapshot: Snapshot, type_: AcceptedType, options: PartsOptions
) -> Iterator[Part]:
    with manifest.reading(type_.entity, snapshot.entry(type_.entity)) as handle:
        packed = pack(fragment_rows(handle), PART_ROWS)
    for number, fragments in enumerate(packed):
        yield Part(
            graph=manifest.location,
            commit_id=snapshot.commit_id,
            type_key=type_.entity,
            fragments=tuple(fragments),
            target=options.target,
            path=f"{type_.kind}-{type_.name}/part-{number:05}.{options.format}",
        )


def write_part(part: Part) -> int:
    """Write one part; return how many entities it holds."""
    manifest = Manifest(part.graph)
    snapshot = snapshot_of_commit(manifest, part.commit_id)
    type_ = find_type(snapshot, part.type_key)
    found = batches(manifest, snapshot, type_, part.fragments)
    data, count = _WRITERS[PartFormat(part.path.rpartition(".")[2])](found, type_)
    Objects(part.target).put(part.path, data)
    return count


def _parquet(found: Iterator[pa.RecordBatch], type_: AcceptedType) -> tuple[bytes, int]:
    file, rows = io.BytesIO(), 0
    writer: pq.ParquetWriter | None = None
    for batch in found:
        table = columnar(batch, type_)
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
        rows += table.num_rows
    if writer is not None:
        writer.close()
    return file.getvalue(), rows


def _ndjson(found: Iterator[pa.RecordBatch], type_: AcceptedType) -> tuple[bytes, int]:
    texts = [line for batch in found for line in lines(batch, type_)]
    return "".join(f"{text}\n" for text in texts).encode(), len(texts)


def _csv(found: Iterator[pa.RecordBatch], type_: AcceptedType) -> tuple[bytes, int]:
    """Return cells as `load` reads them: null is empty, a text is quoted, a list is JSON."""
    names = column_names(type_)
    rows = [record for batch in found for record in records(batch, type_)]
    cells = (",".join(_cell(row[name]) for name in names) for row in rows)
    return "".join(f"{line}\n" for line in (",".join(map(_quoted, names)), *cells)).encode(), len(
        rows
    )


def _cell(value: Any) -> str:  # noqa: ANN401 - any JSON value
    match value:
        case None:
            return ""
        case str():
            return _quoted(value)
        case list():
            return _quoted(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        case _:
            return json.dumps(value)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


_WRITERS: Mapping[
    PartFormat, Callable[[Iterator[pa.RecordBatch], AcceptedType], tuple[bytes, int]]
] = MappingProxyType(
    {
        PartFormat.PARQUET: _parquet,
        PartFormat.CSV: _csv,
        PartFormat.NDJSON: _ndjson,
    }
)
