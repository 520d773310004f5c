"""Read single entities and blobs of a snapshot."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.dataset_view import DatasetView
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.storage.scan import EXTERNAL_BLOB, BlobCell, blob_cell
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_values


def find_type(snapshot: Snapshot, name: str) -> AcceptedType:
    """Return a node or edge type by name; `node:T` and `edge:T` resolve ambiguous names."""
    types = find_types(snapshot, name)
    if len(types) > 1:
        message = f"'{name}' is a node and an edge type: write `node:{name}` or `edge:{name}`"
        raise InvalidInput(message, code="ambiguous_type", type=name)
    return types[0]


def find_types(snapshot: Snapshot, name: str) -> list[AcceptedType]:
    """Return the node type, the edge type or both that a name means."""
    kind, colon, bare = name.partition(":")
    kinds = [TypeKind(kind)] if colon and kind in ("node", "edge") else list(_KINDS)
    type_name = bare if colon else name
    types = [t for k in kinds if (t := snapshot.schema.find(k, type_name)) is not None]
    if not types:
        names = {*snapshot.catalog.nodes, *snapshot.catalog.edges}
        hint = did_you_mean(type_name, names)
        message = f"unknown type '{name}'" + (f": {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=name)
    return types


_KINDS = (TypeKind.NODE, TypeKind.EDGE)


def read_entity(
    manifest: Manifest, snapshot: Snapshot, type_name: str, id_: str
) -> dict[str, Any] | None:
    """Return one entity under logical names, or None; of a blob only where it is and its size."""
    type_ = find_type(snapshot, type_name)
    types = {p.name: p.type for p in type_.definition.properties.values()}
    view = DatasetView.of(manifest, snapshot, type_)
    row = view.find(id_, view.column_names)
    if not row.num_rows:
        return None
    entity = {name: row[name][0].as_py() for name in view.system_columns}
    for name, property_type in types.items():
        [value] = to_values(row[name], property_type)
        entity[name] = _describe_blob(value, property_type)
    return entity


def _describe_blob(value: Any, type_: PropertyType) -> Any:  # noqa: ANN401 - a value of any type
    if type_.scalar is not Scalar.BLOB or value is None:
        return value
    if value["kind"] == EXTERNAL_BLOB:
        return {"kind": "external", "uri": value["blob_uri"]}
    return {"kind": "managed", "size": value["size"]}


# ----------------------------------------------------------------------
# Blobs: bytes that belong to an entity, read in ranges.


BLOB_CHUNK_BYTES = 4 * 1024 * 1024
"""Bytes read at once."""
_ETAG_PREFIX = b"omnigraph/blob-etag/v1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A blob of one entity in one state of a graph; it stays readable as it is.

    An external one has a `uri`, and no bytes here.
    """

    kind: str
    type_name: str
    entity_id: str
    property_name: str
    etag: str
    size: int | None
    uri: str | None = None
    _read: Callable[[int, int], Iterator[bytes]] = field(repr=False)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes from `start` up to, not including, `end`."""
        return b"".join(self.chunks(start, end))

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a range in pieces."""
        size = self.size
        if size is None:
            message = f"the blob of '{self.entity_id}' is at {self.uri}, not here"
            raise InvalidInput(message, code="blob_external", uri=self.uri)
        stop = size if end is None else end
        if not 0 <= start <= stop <= size:
            message = f"range {start}..{stop} is not within the {size} bytes of the blob"
            facts = {"start": start, "end": stop, "length": size}
            raise InvalidInput(message, code="blob_range_not_satisfiable", **facts)
        if start < stop:
            yield from self._read(start, stop)

    def to_json(self) -> dict[str, Any]:
        """Return the facts of the blob as plain JSON values."""
        facts: dict[str, Any] = {
            "selector": {
                "entity": self.kind,
                "type": self.type_name,
                "id": self.entity_id,
                "property": self.property_name,
            },
            "kind": "managed" if self.uri is None else "external",
        }
        if self.uri is None:
            return {**facts, "size": self.size, "etag": self.etag}
        return {**facts, "uri": self.uri}


def open_blob(
    manifest: Manifest, snapshot: Snapshot, type_name: str, id_: str, property_name: str
) -> Blob:
    """Return the blob of an entity; raise NotFound when there is no entity or no blob in it."""
    type_ = find_type(snapshot, type_name)
    property_ = type_.definition.properties.get(property_name)
    place = f"{type_.name}.{property_name}"
    if property_ is None:
        hint = did_you_mean(property_name, type_.definition.properties)
        message = f"{type_.kind} type {type_.name} has no property '{property_name}'"
        raise InvalidInput(message + (f": {hint}" if hint else ""), code="unknown_property")
    if property_.type.scalar is not Scalar.BLOB:
        raise InvalidInput(f"{place} is {property_.type}, not a Blob", code="not_a_blob")
    view = DatasetView.of(manifest, snapshot, type_)
    row = view.find(id_, ["id", property_name])
    cell = blob_cell(row, property_name) if row.num_rows else None
    if cell is None:
        what = f"has no {place}" if row.num_rows else "does not exist"
        message = f"{type_.kind} {type_.name} '{id_}' {what}"
        raise NotFound(message, code="blob_not_found", type=type_.name, id=id_)
    return Blob(
        kind=str(type_.kind),
        type_name=type_.name,
        entity_id=id_,
        property_name=property_name,
        etag=_etag(view.entry, type_.property_ids[property_name], cell),
        size=None if cell.uri is not None else cell.size,
        uri=cell.uri,
        _read=partial(_read_range, view, property_name, cell),
    )


def _read_range(
    view: DatasetView, property_name: str, cell: BlobCell, start: int, stop: int
) -> Iterator[bytes]:
    starts = range(start, stop, BLOB_CHUNK_BYTES)
    ranges = ((at, min(BLOB_CHUNK_BYTES, stop - at)) for at in starts)
    yield from view.read_blob_ranges(property_name, cell, ranges)


def _etag(entry: DatasetEntry, identity: int, cell: BlobCell) -> str:
    """Return a tag that changes whenever the bytes may have."""
    facts = (entry.type_id, entry.incarnation, identity, entry.physical, cell.address, cell.size)
    return f'"{hashlib.sha256(_ETAG_PREFIX + struct.pack(">6Q", *facts)).hexdigest()[:32]}"'
