"""This module resolves a change set against the committed state: what will stand there after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Cardinality, EdgeType
from omnigraph.commit.model import Counts
from omnigraph.write.change_set import Batch, ChangeSet, TypeChange
from omnigraph.write.committed import Committed
from omnigraph.write.sets import without
from omnigraph.write.shape import AT, GIVEN, Shape
from omnigraph.write.stale import cleared, differing, embedded

_NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class Image:
    """What a change makes of one type.

    `batches` are the whole rows of each batch, `rows` the final images of changed entities, one
    per id. `replaced` are the committed rows that give way to them or are deleted, `removed` the
    ids that are gone afterwards. `unchanged` of the rows are written again as they are committed.
    """

    change: TypeChange
    batches: tuple[pa.Table, ...]
    rows: pa.Table
    replaced: pa.Table
    removed: pa.Array
    unchanged: int = 0

    @property
    def shape(self) -> Shape:
        """The type."""
        return self.change.shape

    def counts(self) -> Counts:
        """Count what happens to entities."""
        before = self.replaced["id"]
        known = pc.is_in(self.rows["id"], value_set=_plain(before)) if len(before) else None
        updated = 0 if known is None else pc.sum(known).as_py() or 0
        return Counts(
            inserted=self.rows.num_rows - updated,
            updated=updated - self.unchanged,
            deleted=len(before) - updated,
        )

    @property
    def repeats(self) -> bool:
        """Tell whether the change has several rows for some id."""
        return bool(self.rows.num_rows != sum(batch.num_rows for batch in self.batches))


def resolve(changes: ChangeSet, committed: Committed) -> dict[str, Image]:
    """Return the image of every type that changes, nodes before edges."""
    images = (_image(change, committed) for change in changes.in_order() if not change.is_empty)
    return {image.shape.table_key: image for image in images}


def _image(change: TypeChange, committed: Committed) -> Image:
    shape = change.shape
    batches = tuple(filled(batch, shape, committed) for batch in change.batches)
    given = pa.concat_tables(batches) if batches else shape.no_rows()
    rows = given if all(batch.fresh for batch in change.batches) else _last_by_id(given)
    deleted = pa.array(change.deleted, pa.string())
    columns = ["id", "src"] if _counts_edges(shape) else ["id"]
    if change.replace:
        replaced = committed.where(shape, None, columns)
        stays = pc.is_in(replaced["id"], value_set=_plain(rows["id"]))
        removed = _plain(replaced["id"].filter(pc.invert(stays)))
        return Image(change, batches, rows, replaced, removed)
    known = [batch.rows["id"] for batch in change.batches if not batch.fresh]
    wanted = pa.chunked_array([*(chunk for ids in known for chunk in ids.chunks), deleted])
    replaced = committed.by(shape, "id", wanted, columns)
    removed = without(deleted, rows["id"]) if len(deleted) else deleted
    return Image(change, batches, rows, replaced, removed)


def _counts_edges(shape: Shape) -> bool:
    definition = shape.definition
    return isinstance(definition, EdgeType) and definition.cardinality != Cardinality()


def filled(batch: Batch, shape: Shape, committed: Committed) -> pa.Table:
    """Return whole rows: what a partial batch does not give, an entity that exists keeps.

    It does not keep a vector that was made from another text than the one given.
    """
    rows = batch.rows
    if AT not in rows.column_names:
        rows = rows.append_column(AT, pa.nulls(rows.num_rows, pa.int64()))
    if batch.given:
        names = [n for n in shape.properties if any(n not in given for given in batch.given)]
        texts = [source for property_, source in embedded(shape) if property_.name in names]
        wanted = list(dict.fromkeys(["id", *names, *texts]))
        kept = committed.by(shape, "id", rows["id"], wanted)
        where = pc.index_in(rows["id"], value_set=_plain(kept["id"]))
        lacking = {}
        for name in names:
            lacks = pa.array([name not in given for given in batch.given]).take(rows[GIVEN])
            lacking[name] = pc.and_(lacks, where.is_valid())
            column = _choose(lacking[name], kept[name].take(where), rows[name])
            rows = rows.set_column(rows.column_names.index(name), name, column)
        for property_, source in embedded(shape):
            if property_.name in lacking:
                changed = differing(kept[source].take(where), rows[source])
                stale = np.asarray(lacking[property_.name], np.bool_) & changed
                rows = cleared(rows, property_.name, stale)
    return rows.select([*shape.schema.names, AT])


def _choose(mask: pa.ChunkedArray, one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return `one` where the mask is true, else `other`, for columns of any type."""
    both = pa.chunked_array([*one.chunks, *other.chunks], other.type)
    rows = np.arange(len(mask))
    return both.take(pa.array(np.where(mask.to_numpy(), rows, rows + len(one))))


def _last_by_id(rows: pa.Table) -> pa.Table:
    """Return the last row of each id, in the order of the rows that are kept."""
    ids = rows["id"]
    if len(ids.unique()) == rows.num_rows:
        return rows
    backwards = np.asarray(_plain(ids).dictionary_encode().indices)[::-1]
    _, places = np.unique(backwards, return_index=True)
    return rows.take(pa.array(np.sort(rows.num_rows - 1 - places)))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def removed_ids(images: Mapping[str, Image], table_key: str) -> pa.Array:
    """Return the ids of a type that are gone after the change."""
    return images[table_key].removed if table_key in images else _NO_IDS


def changed_ids(images: Mapping[str, Image], table_key: str) -> pa.Array:
    """Return the ids of a type that have a final image."""
    return _plain(images[table_key].rows["id"]) if table_key in images else _NO_IDS
