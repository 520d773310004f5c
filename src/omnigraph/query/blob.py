"""This module opens blobs: bytes that belong to an entity, read in ranges."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.query.entity import find_type
from omnigraph.storage.layout import physical_columns
from omnigraph.storage.read import BlobCell, blob_cell, find_row, read_blob
from omnigraph.types import Scalar

CHUNK = 4 * 1024 * 1024
"""Bytes read at once."""
_ETAG = b"omnigraph/blob-etag/v1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A blob of one entity in one state of a graph; it stays readable as it is.

    An external one has a `uri`, and no bytes here.
    """

    type_name: str
    entity_id: str
    property_name: str
    etag: str
    _manifest: Manifest = field(repr=False)
    _table_key: str = field(repr=False)
    _entry: DatasetEntry = field(repr=False)
    _column: str = field(repr=False)
    _cell: BlobCell = field(repr=False)

    @property
    def uri(self) -> str | None:
        """Where the bytes are, if they are not here."""
        return self._cell.uri

    @property
    def size(self) -> int | None:
        """How many bytes it has; nobody knows of an external one."""
        return None if self._cell.uri is not None else self._cell.size

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes from `start` up to, not including, `end`."""
        return b"".join(self.chunks(start, end))

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a range, a few megabytes at a time."""
        size = self.size
        if size is None:
            message = f"the blob of '{self.entity_id}' is at {self.uri}, not here"
            raise InvalidInput(message, code="blob_external", uri=self.uri)
        stop = size if end is None else end
        if not 0 <= start <= stop <= size:
            message = f"range {start}..{stop} is not within the {size} bytes of the blob"
            facts = {"start": start, "end": stop, "length": size}
            raise InvalidInput(message, code="blob_range_not_satisfiable", **facts)
        with self._manifest.reading(self._table_key, self._entry) as handle:
            for at in range(start, stop, CHUNK):
                yield read_blob(handle, self._column, self._cell, at, min(CHUNK, stop - at))

    def to_json(self) -> dict[str, Any]:
        """Return the facts of the blob as plain JSON values."""
        kind, _, name = self._table_key.partition(":")
        facts: dict[str, Any] = {
            "selector": {
                "entity": kind,
                "type": name,
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
    entry = snapshot.entry(type_.entity)
    identity = type_.property_ids[property_name]
    with manifest.reading(type_.entity, entry) as handle:
        column = physical_columns(handle.schema)[identity]
        found = find_row(handle, id_, ["id", column])
        cell = blob_cell(found, column) if found.num_rows else None
    if cell is None:
        what = f"has no {place}" if found.num_rows else "does not exist"
        message = f"{type_.kind} {type_.name} '{id_}' {what}"
        raise NotFound(message, code="blob_not_found", type=type_.name, id=id_)
    return Blob(
        type_name=type_.name,
        entity_id=id_,
        property_name=property_name,
        etag=_etag(entry, identity, cell),
        _manifest=manifest,
        _table_key=type_.entity,
        _entry=entry,
        _column=column,
        _cell=cell,
    )


def _etag(entry: DatasetEntry, identity: int, cell: BlobCell) -> str:
    """Return a tag that changes whenever the bytes may have."""
    facts = (entry.type_id, entry.incarnation, identity, entry.physical, cell.address, cell.size)
    return f'"{hashlib.sha256(_ETAG + struct.pack(">6Q", *facts)).hexdigest()[:32]}"'
