"""Resolve a change set against the committed state: the final row of each entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Cardinality, EdgeType
from omnigraph.commit.model import Counts
from omnigraph.dataset_view import blob_properties
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.storage.scan import EXTERNAL_BLOB
from omnigraph.types.arrow import Mask, same_values
from omnigraph.write.change_set import (
    GIVEN_PROPERTIES,
    INPUT_POSITION,
    ChangeSet,
    RowBatch,
    RowSchema,
    TypeChange,
)
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.embedding_models import (
    clear_vectors,
    embedded_sources,
    supplies_vectors,
    texts_differ,
    vector_properties,
)
from omnigraph.write.ids import ids_except

_NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class ResolvedChange:
    """What a change makes of one type.

    `batches` are the whole rows of each batch, `rows` the final images of changed entities, one
    per id. `replaced` are the committed rows that they replace or that are deleted, `removed` the
    ids that are gone afterwards. `unchanged` of the rows are written again as they are committed.
    """

    change: TypeChange
    batches: tuple[pa.Table, ...]
    rows: pa.Table
    replaced: pa.Table
    removed: pa.Array
    unchanged: int = 0

    @property
    def shape(self) -> RowSchema:
        """The type."""
        return self.change.shape

    def counts(self) -> Counts:
        """Count what happens to entities."""
        before = self.replaced["id"]
        is_update = (
            pc.is_in(self.rows["id"], value_set=_single_chunk(before)) if len(before) else None
        )
        updated = 0 if is_update is None else pc.sum(is_update).as_py() or 0
        return Counts(
            inserted=self.rows.num_rows - updated,
            updated=updated - self.unchanged,
            deleted=len(before) - updated,
        )

    @property
    def repeats(self) -> bool:
        """Return whether the change has several rows for some id."""
        return bool(self.rows.num_rows != sum(batch.num_rows for batch in self.batches))


def resolve_changes(changes: ChangeSet, committed: CommittedState) -> dict[str, ResolvedChange]:
    """Return the image of every type that changes, nodes before edges."""
    images = (
        _resolve_type(change, committed) for change in changes.in_order() if not change.is_empty
    )
    return {image.shape.table_key: image for image in images}


def _resolve_type(change: TypeChange, committed: CommittedState) -> ResolvedChange:
    batches = tuple(complete_rows(batch, change.shape, committed) for batch in change.batches)
    return resolve_rows(change, batches, committed)


def resolve_rows(
    change: TypeChange, batches: tuple[pa.Table, ...], committed: CommittedState
) -> ResolvedChange:
    """Return the image of a type of which these are the rows, with at least their keys."""
    shape = change.shape
    all_rows = pa.concat_tables(batches) if batches else shape.no_rows()
    rows = all_rows if all(batch.fresh for batch in change.batches) else _last_by_id(all_rows)
    deleted = pa.array(change.deleted, pa.string())
    if change.replace:
        columns = ["id", "src"] if _has_cardinality(shape) else ["id"]
        replaced = committed.read(shape).select(None, columns)
        stays = pc.is_in(replaced["id"], value_set=_single_chunk(rows["id"]))
        removed = _single_chunk(replaced["id"].filter(pc.invert(stays)))
        return ResolvedChange(change, batches, rows, replaced, removed)
    columns_given = [batch.rows["id"] for batch in change.batches if not batch.fresh]
    chunks = (chunk for column in columns_given for chunk in column.chunks)
    ids = pa.chunked_array([*chunks, deleted])
    replaced = committed.lookup_ids(shape, ids)
    removed = ids_except(deleted, rows["id"]) if len(deleted) else deleted
    return ResolvedChange(change, batches, rows, replaced, removed)


def _has_cardinality(shape: RowSchema) -> bool:
    definition = shape.definition
    return isinstance(definition, EdgeType) and definition.cardinality != Cardinality()


def complete_rows(batch: RowBatch, shape: RowSchema, committed: CommittedState) -> pa.Table:
    """Return whole rows: what a partial batch does not give, an entity that exists keeps.

    It does not keep a vector that was made from another text than the one given.
    """
    rows = batch.rows
    if INPUT_POSITION not in rows.column_names:
        rows = rows.append_column(INPUT_POSITION, pa.nulls(rows.num_rows, pa.int64()))
    if batch.given:
        names = [
            n for n in shape.properties if any(n not in properties for properties in batch.given)
        ]
        texts = [source for property_, source in embedded_sources(shape) if property_.name in names]
        columns = list(dict.fromkeys(["id", *names, *texts]))
        kept = committed.by_key(shape).lookup("id", rows["id"], columns)
        where = pc.index_in(rows["id"], value_set=_single_chunk(kept["id"]))
        lacking = {}
        for name in names:
            lacks = pa.array([name not in properties for properties in batch.given]).take(
                rows[GIVEN_PROPERTIES]
            )
            lacking[name] = pc.and_(lacks, where.is_valid())
            column = choose_rows(lacking[name], kept[name].take(where), rows[name])
            rows = rows.set_column(rows.column_names.index(name), name, column)
        for property_, source in embedded_sources(shape):
            if property_.name in lacking:
                changed = texts_differ(kept[source].take(where), rows[source])
                stale = np.asarray(lacking[property_.name], np.bool_) & changed
                rows = clear_vectors(rows, property_.name, stale)
    return rows.select([*shape.schema.names, INPUT_POSITION])


def choose_rows(
    mask: Mask | pa.ChunkedArray, one: pa.ChunkedArray, other: pa.ChunkedArray
) -> pa.ChunkedArray:
    """Return `one` where the mask is true, else `other`, for columns of any type."""
    both = pa.chunked_array([*one.chunks, *other.chunks], other.type)
    rows = np.arange(len(mask))
    return both.take(pa.array(np.where(np.asarray(mask), rows, rows + len(one))))


def _last_by_id(rows: pa.Table) -> pa.Table:
    """Return the last row of each id, in the order of the rows that are kept."""
    ids = rows["id"]
    if len(ids.unique()) == rows.num_rows:
        return rows
    backwards = np.asarray(_single_chunk(ids).dictionary_encode().indices)[::-1]
    _, places = np.unique(backwards, return_index=True)
    return rows.take(pa.array(np.sort(rows.num_rows - 1 - places)))


def _single_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def removed_ids(images: Mapping[str, ResolvedChange], table_key: str) -> pa.Array:
    """Return the ids of a type that are gone after the change."""
    return images[table_key].removed if table_key in images else _NO_IDS


def changed_ids(images: Mapping[str, ResolvedChange], table_key: str) -> pa.Array:
    """Return the ids of a type that have a final image."""
    return _single_chunk(images[table_key].rows["id"]) if table_key in images else _NO_IDS


# ----------------------------------------------------------------------
# Leave rows out of a change that are exactly what is committed.
#
# Values are compared as a difference of two states compares them, so that the counts of a commit
# are those of its difference. Only rows whose id is committed are read, a few columns at a time:
# vectors and blobs only of rows that are equal so far, and the bytes of a blob only where its size
# is equal.


PLAIN_BATCH_ROWS = 65_536
VECTOR_BATCH_ROWS = 4_096
BLOB_BATCH_ROWS = 64

_RowNumbers = npt.NDArray[np.int64]


def column_groups(shape: RowSchema) -> Iterator[tuple[Sequence[str], int]]:
    """Yield columns to compare together, cheap ones first, and of how many rows at once."""
    blobs = blob_properties(shape.type)
    vectors = [p.name for p in vector_properties(shape)]
    heavy = {"id", *blobs, *vectors}
    plain = [name for name in shape.schema.names if name not in heavy]
    for names, step in (
        (plain, PLAIN_BATCH_ROWS),
        (vectors, VECTOR_BATCH_ROWS),
        (blobs, BLOB_BATCH_ROWS),
    ):
        if names:
            yield names, step


def drop_unchanged_rows(image: ResolvedChange, committed: CommittedState) -> ResolvedChange | None:
    """Return what is left of a change of one type; None when nothing is.

    A type that is replaced is written whole if anything in it changes; only the counts differ.
    """
    if image.change.adopted is not None:
        return image
    same = _CommittedRowComparison(image, committed).same()
    number = int(same.sum())
    if number and _changes_recorded_model(image, committed):
        # The model is recorded with the rows that have its vectors.
        return replace(image, unchanged=number)
    if image.change.replace:
        if number == image.rows.num_rows == image.replaced.num_rows:
            return None
        return replace(image, unchanged=number)
    rows, replaced = image.rows, image.replaced
    if number:
        ids = rows["id"].filter(pa.array(same)).combine_chunks()
        replaced = replaced.filter(pc.invert(pc.is_in(replaced["id"], value_set=ids)))
        rows = rows.filter(pa.array(~same))
    if not rows.num_rows and not replaced.num_rows:
        return None
    return replace(image, rows=rows, replaced=replaced)


def _changes_recorded_model(image: ResolvedChange, committed: CommittedState) -> bool:
    """Return whether a change names a model of vectors that is not the one recorded."""
    change, names = image.change, [p.name for p in vector_properties(image.shape)]
    supplied = {
        name: change.supplied_model(name) for name in names if supplies_vectors(change, name)
    }
    models = {name: model for name, model in (supplied | change.made).items() if model is not None}
    view = committed.view(image.shape)
    return any(view.embedding_model(name) != model for name, model in models.items())


@dataclass(frozen=True, slots=True)
class _CommittedRowComparison:
    image: ResolvedChange
    committed: CommittedState

    @property
    def _shape(self) -> RowSchema:
        return self.image.shape

    def same(self) -> Mask:
        """Return which rows of the change are exactly those that are committed."""
        rows, replaced = self.image.rows, self.image.replaced
        mask = np.zeros(rows.num_rows, np.bool_)
        if not replaced.num_rows or not rows.num_rows:
            return mask
        where = pc.index_in(rows["id"], value_set=replaced["id"].combine_chunks())
        places: _RowNumbers = np.flatnonzero(np.asarray(where.is_valid()))
        addresses = replaced[ROW_ADDRESS].take(where.drop_null()).to_numpy()
        for names, step in column_groups(self._shape):
            masks = [
                self._alike(names, places[start : start + step], addresses[start : start + step])
                for start in range(0, len(places), step)
            ]
            alike = np.concatenate([np.zeros(0, np.bool_), *masks])
            places, addresses = places[alike], addresses[alike]
        mask[places] = True
        return mask

    def _alike(self, names: Sequence[str], places: _RowNumbers, addresses: Any) -> Mask:  # noqa: ANN401
        """Return which of some rows are the same in some columns."""
        old = self.committed.view(self._shape).rows_at(addresses, names)
        new = self.image.rows.select(list(names)).take(pa.array(places))
        mask = np.ones(len(places), np.bool_)
        for name in names:
            if name in blob_properties(self._shape.type):
                mask &= self._same_blobs(name, old[name], new[name], addresses)
                continue
            before = old[name]
            if before.type != new[name].type:
                before = pc.cast(before, new[name].type)
            mask &= same_values(before, new[name]) | self._is_made(name, before, new[name])
        return mask

    def _is_made(self, name: str, old: pa.ChunkedArray, new: pa.ChunkedArray) -> Mask:
        """Return where a vector would only be made again: its text is compared, too."""
        property_ = self._shape.properties.get(name)
        if property_ is None or property_.embed is None or property_.type.nullable:
            return np.zeros(len(new), np.bool_)
        if self.image.change.replace:
            return np.zeros(len(new), np.bool_)
        mask: Mask = np.asarray(old.is_valid()) & np.asarray(new.is_null())
        return mask

    def _same_blobs(
        self,
        name: str,
        old: pa.ChunkedArray,
        new: pa.ChunkedArray,
        addresses: Any,  # noqa: ANN401 - an array of row addresses
    ) -> Mask:
        """Compare blobs; an external one is only the same while it is referred to as before."""
        blobs = new.combine_chunks()
        uris = pc.struct_field(blobs, "uri").to_pylist()
        sizes = pc.binary_length(pc.struct_field(blobs, "data")).to_pylist()
        missing = blobs.is_null().to_pylist()
        mask = np.zeros(len(blobs), np.bool_)
        unsure = []
        for place, cell in enumerate(old.to_pylist()):
            if cell is None or missing[place]:
                mask[place] = cell is None and missing[place]
            elif cell["kind"] == EXTERNAL_BLOB:
                same_uri = uris[place] == cell["blob_uri"]
                mask[place] = self.image.change.replace and same_uri
            elif uris[place] is None and sizes[place] == cell["size"]:
                unsure.append(place)
        if unsure:
            contents = self.committed.view(self._shape).blobs_at(addresses[unsure], name)
            expected = pc.struct_field(blobs, "data").take(pa.array(unsure)).to_pylist()
            mask[unsure] = [one == other for one, other in zip(contents, expected, strict=True)]
        return mask
