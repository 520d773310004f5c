"""This module compares two versions of one type: which entities differ, and how they look.

Versions are compared by the files they are made of, so that cost follows the change; entities that
were only rewritten do not differ. Where upkeep rewrote files, the versions between are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.changes.version_history import VersionHistory, VersionRange
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.errors import VersionReclaimed
from omnigraph.storage.columns import rows_at
from omnigraph.storage.layout import embedding_model, physical_columns
from omnigraph.storage.row_lookup import ROW_ADDRESS, count_rows, lookup_rows
from omnigraph.storage.scan import read_blobs
from omnigraph.storage.version_diff import RowAddresses, differing_rows, rewritten_rows
from omnigraph.types import Scalar
from omnigraph.types.arrow import BLOB, Mask, same_values

ENTITY_BATCH = 4_096
"""Entities whose images are read together."""
BLOB_ENTITY_BATCH = 64
"""The same, where images have blobs."""
REWRITTEN_ROWS_THRESHOLD = 4_096
"""So many rows in other files make it worth while to look whether upkeep moved them."""


@dataclass(frozen=True, slots=True)
class TypeSnapshot:
    """One type as a snapshot shows it."""

    type: AcceptedType
    entry: DatasetEntry

    @classmethod
    def of(cls, snapshot: Snapshot, type_: AcceptedType) -> TypeSnapshot:
        """Return a type that the snapshot has."""
        return cls(type_, snapshot.entry(type_.entity))

    @property
    def system(self) -> tuple[str, ...]:
        """The columns that are no properties."""
        return ("id", "src", "dst") if self.type.kind is TypeKind.EDGE else ("id",)


@dataclass(frozen=True, slots=True)
class TypeDelta:
    """Entities of one type that differ, by id, with all their columns under logical names.

    An entity stands in `before`, in `after`, or in both. Blobs are given as bytes, or as the URI
    they are at.
    """

    before: pa.Table
    after: pa.Table


def compare_type(
    manifest: Manifest,
    old: TypeSnapshot | None,
    new: TypeSnapshot | None,
    steps: VersionHistory | None = None,
    *,
    after: str | None = None,
) -> Iterator[TypeDelta]:
    """Yield the entities in which two states of a type differ, in the order of their ids.

    `steps` lead from one state to the other and save reading what upkeep moved. `after` leaves out
    ids up to this one.
    """
    if old is not None and new is not None and old.entry.physical == new.entry.physical:
        return
    with ExitStack() as stack:
        readers = [
            None if side is None else stack.enter_context(open_entity_reader(manifest, side))
            for side in (old, new)
        ]
        places = _differing(manifest, readers[0], readers[1], steps)
        yield from _compare(readers[0], readers[1], places, after)


@contextmanager
def open_entity_reader(manifest: Manifest, side: TypeSnapshot) -> Iterator[EntityReader]:
    """Give what reads the entities of a type."""
    with manifest.reading(side.type.entity, side.entry) as handle:
        yield EntityReader(handle, side)


_RowLocations: TypeAlias = tuple[pa.Table, pa.Table]
"""Ids and addresses of rows on both sides."""


def _compare(
    old: EntityReader | None, new: EntityReader | None, places: _RowLocations, after: str | None
) -> Iterator[TypeDelta]:
    before, later = places
    ids = pa.concat_arrays([_combine_chunks(before["id"]), _combine_chunks(later["id"])]).unique()
    if after is not None:
        ids = ids.filter(pc.greater(ids, after))
    ids = ids.take(pc.sort_indices(ids))
    addresses = [_find_addresses(found, ids) for found in places]
    step = BLOB_ENTITY_BATCH if any(r is not None and r.blobs for r in (old, new)) else ENTITY_BATCH
    for start in range(0, len(ids), step):
        one, other = (part.slice(start, step).drop_null() for part in addresses)
        delta = TypeDelta(_read_rows(old, one), _read_rows(new, other))
        if old is not None and new is not None:
            delta = _drop_equal(delta, old.side.type, new.side.type)
        yield delta


def _differing(
    manifest: Manifest,
    old: EntityReader | None,
    new: EntityReader | None,
    steps: VersionHistory | None,
) -> _RowLocations:
    """Return ids and addresses of the rows in which the sides may differ."""
    if old is None or new is None:
        return _all_rows(old), _all_rows(new)
    if steps is not None and rewritten_rows(old.handle, new.handle) > REWRITTEN_ROWS_THRESHOLD:
        ids = _changed_ids(manifest, old.side, new.side, steps)
        if ids is not None:
            return old.places(ids), new.places(ids)
    found = differing_rows(old.handle, new.handle)
    return found.old, found.new


def _changed_ids(
    manifest: Manifest, old: TypeSnapshot, new: TypeSnapshot, steps: VersionHistory
) -> pa.Array | None:
    """Return the ids something happened to on the way; None when it must be compared directly."""
    runs = steps.runs(old.entry, new.entry)
    if runs is None or runs == [(old.entry, new.entry)]:
        return None
    parts = [pa.array([], pa.string())]
    try:
        for run in runs:
            one, other = _compare_versions(manifest, new.type, run)
            parts += [_combine_chunks(one["id"]), _combine_chunks(other["id"])]
    except VersionReclaimed:
        return None
    return pa.concat_arrays(parts).unique()


def _compare_versions(manifest: Manifest, type_: AcceptedType, run: VersionRange) -> _RowLocations:
    old, new = run
    with (
        manifest.reading(type_.entity, old) as earlier,
        manifest.reading(type_.entity, new) as later,
    ):
        found = differing_rows(earlier, later)
    return found.old, found.new


def _all_rows(reader: EntityReader | None) -> pa.Table:
    return _NO_ROWS if reader is None else reader.everything()


_NO_ROWS = pa.table({"id": pa.array([], pa.string()), ROW_ADDRESS: pa.array([], pa.uint64())})


def _find_addresses(found: pa.Table, ids: pa.Array) -> pa.Array:
    """Return where each id was found, null where it was not."""
    return _combine_chunks(found[ROW_ADDRESS]).take(
        pc.index_in(ids, value_set=_combine_chunks(found["id"]))
    )


def _read_rows(reader: EntityReader | None, addresses: pa.Array) -> pa.Table:
    return _NO_ROWS.select(["id"]) if reader is None else reader.images(addresses.to_numpy())


class EntityReader:
    """Reads whole entities of one version."""

    def __init__(self, handle: Any, side: TypeSnapshot) -> None:  # noqa: ANN401 - a Lance handle
        self.handle = handle
        self.side = side
        columns = physical_columns(handle.schema)
        properties = side.type.definition.properties
        self.names: Mapping[str, str] = {
            **{name: name for name in side.system},
            **{name: columns[side.type.property_ids[name]] for name in properties},
        }
        self.blobs = [p.name for p in properties.values() if p.type.scalar is Scalar.BLOB]

    def everything(self) -> pa.Table:
        """Return ids and addresses of all rows."""
        return self.handle.to_table(columns=["id"], with_row_address=True)

    def model(self, property_id: int) -> str | None:
        """Return the model noted for the vectors of a property."""
        name = physical_columns(self.handle.schema).get(property_id)
        return None if name is None else embedding_model(self.handle.schema.field(name))

    def has_vectors(self, property_id: int) -> bool:
        """Return whether some entity has a vector of a property."""
        name = physical_columns(self.handle.schema).get(property_id)
        return name is not None and count_rows(self.handle, f"`{name}` IS NOT NULL") > 0

    def places(self, ids: pa.Array) -> pa.Table:
        """Return ids and addresses of those of the ids that are there."""
        return lookup_rows(self.handle, "id", ids, ["id"], self.side.entry.rows)

    def by_id(self, ids: pa.Array) -> pa.Table:
        """Return those of the entities that are there."""
        return self.images(_combine_chunks(self.places(ids)[ROW_ADDRESS]).to_numpy())

    def images(self, addresses: RowAddresses) -> pa.Table:
        """Return whole entities."""
        found = rows_at(self.handle, addresses, list(self.names.values()))
        columns = dict(zip(self.names, found.columns, strict=True))
        if self.blobs:
            rows = found.append_column(ROW_ADDRESS, pa.array(addresses, pa.uint64()))
            for name in self.blobs:
                columns[name] = _blob_column(read_blobs(self.handle, self.names[name], rows))
        return pa.table(columns)


def _blob_column(cells: Iterator[bytes | str | None]) -> pa.Array:
    found = [_blob_value(cell) for cell in cells]
    return pa.array(found, BLOB)


def _blob_value(cell: bytes | str | None) -> dict[str, bytes | str | None] | None:
    if cell is None:
        return None
    is_here = isinstance(cell, bytes)
    return {"data": cell if is_here else None, "uri": None if is_here else cell}


def _drop_equal(delta: TypeDelta, old: AcceptedType, new: AcceptedType) -> TypeDelta:
    """Leave out entities that are the same on both sides."""
    where = pc.index_in(delta.after["id"], value_set=_combine_chunks(delta.before["id"]))
    in_both = np.flatnonzero(np.asarray(where.is_valid()))
    theirs = np.asarray(where.drop_null(), np.int64)
    same = same_rows(
        delta.before.take(pa.array(theirs)), delta.after.take(pa.array(in_both)), old, new
    )
    return TypeDelta(_drop_rows(delta.before, theirs[same]), _drop_rows(delta.after, in_both[same]))


def same_rows(before: pa.Table, after: pa.Table, old: AcceptedType, new: AcceptedType) -> Mask:
    """Tell row by row whether two entities are the same; a property one type lacks is null."""
    found = np.ones(before.num_rows, np.bool_)
    former = {id_: name for name, id_ in old.property_ids.items()}
    pairs = [(former.get(id_), name) for name, id_ in new.property_ids.items()]
    ends = ("src", "dst") if new.kind is TypeKind.EDGE else ()
    for one, other in [*((name, name) for name in ends), *pairs]:
        right = after[other]
        left = pa.nulls(before.num_rows, right.type) if one is None else before[one]
        if left.type != right.type:
            left = pc.cast(left, right.type)
        found &= same_values(left, right)
    return found


def _drop_rows(rows: pa.Table, places: np.ndarray) -> pa.Table:
    kept = np.ones(rows.num_rows, np.bool_)
    kept[places] = False
    return rows.filter(pa.array(kept))


def _combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
