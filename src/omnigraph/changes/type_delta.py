"""Compare two versions of one type: which entities differ, and their values on both sides.

Versions are compared by their files, so that cost follows the size of the change; entities that
were only rewritten do not differ. Where maintenance rewrote files, the versions in between are
compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType, Property, TypeKind
from omnigraph.catalog.defaults import default_value
from omnigraph.changes.version_history import VersionHistory
from omnigraph.dataset_view import DatasetView, blob_properties
from omnigraph.errors import VersionReclaimed
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.storage.version_diff import differing_rows, rewritten_rows
from omnigraph.types.arrow import Mask, same_values, to_column

ENTITY_BATCH = 4_096
"""Entities that are read together."""
BLOB_ENTITY_BATCH = 64
"""Entities that are read together when they have blobs."""
REWRITTEN_ROWS_THRESHOLD = 4_096
"""Rows in other files above which the history is searched for maintenance that moved them."""


@dataclass(frozen=True, slots=True)
class TypeDelta:
    """Entities of one type that differ, by id, with all their columns under logical names.

    An entity is in `before`, in `after`, or in both. Blobs are bytes, or the URI of an external
    one.
    """

    before: pa.Table
    after: pa.Table


def compare_type(
    old: DatasetView | None,
    new: DatasetView | None,
    steps: VersionHistory | None = None,
    *,
    after: str | None = None,
) -> Iterator[TypeDelta]:
    """Yield the entities in which two states of a type differ, in the order of their IDs.

    `steps` lead from one state to the other and avoid reading rows that maintenance moved. `after`
    leaves out IDs up to this one.
    """
    if old is not None and new is not None and old.entry.state == new.entry.state:
        return
    yield from _compare(old, new, _differing(old, new, steps), after)


def count_changes(
    old: DatasetView | None, new: DatasetView | None, steps: VersionHistory | None = None
) -> tuple[int, int, int]:
    """Return how many entities of a type were inserted, updated and deleted between two states.

    Only entities that are in both states, in rows that may differ, are read.
    """
    if old is not None and new is not None and old.entry.state == new.entry.state:
        return 0, 0, 0
    before, after = _differing(old, new, steps)
    kept_before = pc.is_in(before["id"], value_set=after["id"].combine_chunks())
    kept_after = pc.is_in(after["id"], value_set=before["id"].combine_chunks())
    in_both = (before.filter(kept_before), after.filter(kept_after))
    updated = sum(delta.after.num_rows for delta in _compare(old, new, in_both, None))
    deleted = before.num_rows - in_both[0].num_rows
    return after.num_rows - in_both[1].num_rows, updated, deleted


_RowLocations: TypeAlias = tuple[pa.Table, pa.Table]
"""Ids and addresses of rows on both sides."""


def _compare(
    old: DatasetView | None, new: DatasetView | None, places: _RowLocations, after: str | None
) -> Iterator[TypeDelta]:
    before, later = places
    ids = pa.concat_arrays([before["id"].combine_chunks(), later["id"].combine_chunks()]).unique()
    if after is not None:
        ids = ids.filter(pc.greater(ids, after))
    ids = ids.take(pc.sort_indices(ids))
    addresses = [_find_addresses(rows, ids) for rows in places]
    has_blobs = any(view is not None and blob_properties(view.type) for view in (old, new))
    step = BLOB_ENTITY_BATCH if has_blobs else ENTITY_BATCH
    for start in range(0, len(ids), step):
        one, other = (part.slice(start, step).drop_null() for part in addresses)
        delta = TypeDelta(_read_rows(old, one), _read_rows(new, other))
        if old is not None and new is not None:
            delta = _drop_equal(delta, old.type, new.type)
        yield delta


def _differing(
    old: DatasetView | None, new: DatasetView | None, steps: VersionHistory | None
) -> _RowLocations:
    """Return IDs and addresses of the rows in which the sides may differ."""
    if old is None or new is None:
        return _all_rows(old), _all_rows(new)
    if steps is not None:
        with old.open() as earlier, new.open() as later:
            rewritten = rewritten_rows(earlier, later)
        ids = _changed_ids(old, new, steps) if rewritten > REWRITTEN_ROWS_THRESHOLD else None
        if ids is not None:
            return old.addresses_of(ids), new.addresses_of(ids)
    return _compare_versions(old, new)


def _changed_ids(old: DatasetView, new: DatasetView, steps: VersionHistory) -> pa.Array | None:
    """Return the IDs that changed in between; None when the versions must be compared directly."""
    ranges = steps.ranges(old.entry, new.entry)
    if ranges is None or ranges == [(old.entry, new.entry)]:
        return None
    parts = [pa.array([], pa.string())]
    try:
        for start, end in ranges:
            before, after = _compare_versions(new.at(start), new.at(end))
            parts += [before["id"].combine_chunks(), after["id"].combine_chunks()]
    except VersionReclaimed:
        return None
    return pa.concat_arrays(parts).unique()


def _compare_versions(old: DatasetView, new: DatasetView) -> _RowLocations:
    with old.open() as earlier, new.open() as later:
        return differing_rows(earlier, later)


def _all_rows(view: DatasetView | None) -> pa.Table:
    return _NO_ROWS if view is None else view.all_addresses()


_NO_ROWS = pa.table({"id": pa.array([], pa.string()), ROW_ADDRESS: pa.array([], pa.uint64())})


def _find_addresses(rows: pa.Table, ids: pa.Array) -> pa.Array:
    """Return where each id was found, null where it was not."""
    return (
        rows[ROW_ADDRESS]
        .combine_chunks()
        .take(pc.index_in(ids, value_set=rows["id"].combine_chunks()))
    )


def _read_rows(view: DatasetView | None, addresses: pa.Array) -> pa.Table:
    return _NO_ROWS.select(["id"]) if view is None else view.entities_at(addresses.to_numpy())


def _drop_equal(delta: TypeDelta, old: AcceptedType, new: AcceptedType) -> TypeDelta:
    """Leave out entities that are the same on both sides."""
    where = pc.index_in(delta.after["id"], value_set=delta.before["id"].combine_chunks())
    in_both = np.flatnonzero(np.asarray(where.is_valid()))
    theirs = np.asarray(where.drop_null(), np.int64)
    same = same_rows(
        delta.before.take(pa.array(theirs)), delta.after.take(pa.array(in_both)), old, new
    )
    return TypeDelta(_drop_rows(delta.before, theirs[same]), _drop_rows(delta.after, in_both[same]))


def same_rows(before: pa.Table, after: pa.Table, old: AcceptedType, new: AcceptedType) -> Mask:
    """Return row by row whether two entities are the same.

    A property that the old type lacks is null, or has its default.
    """
    mask = np.ones(before.num_rows, np.bool_)
    former = set(old.property_ids.values())
    for name, same in same_columns(before, after, old, new):
        if name in new.property_ids and new.property_ids[name] not in former:
            same = same | _has_default(after[name], new.definition.properties[name])
        mask &= same
    return mask


def _has_default(column: pa.ChunkedArray, property_: Property) -> Mask:
    """Return which values are the default that a new property has where none was set."""
    default = default_value(property_)
    if default is None:
        return np.zeros(len(column), np.bool_)
    return same_values(column, to_column([default] * len(column), property_.type))


def same_columns(
    before: pa.Table, after: pa.Table, old: AcceptedType, new: AcceptedType
) -> Iterator[tuple[str, Mask]]:
    """Yield the ends and properties of the new type, and row by row whether they are the same."""
    former = {id_: name for name, id_ in old.property_ids.items()}
    pairs = [(former.get(id_), name) for name, id_ in new.property_ids.items()]
    ends = ("src", "dst") if new.kind is TypeKind.EDGE else ()
    for one, other in [*((name, name) for name in ends), *pairs]:
        right = after[other]
        left = pa.nulls(before.num_rows, right.type) if one is None else before[one]
        if left.type != right.type:
            type_ = max(left.type, right.type, key=_number_width)
            left, right = pc.cast(left, type_), pc.cast(right, type_)
        yield other, same_values(left, right)


def _number_width(type_: pa.DataType) -> int:
    """Return the bits of a number, or of those of a list: what may differ within one property."""
    is_list = pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_)
    return int(type_.value_type.bit_width if is_list else type_.bit_width)


def _drop_rows(rows: pa.Table, places: np.ndarray) -> pa.Table:
    kept = np.ones(rows.num_rows, np.bool_)
    kept[places] = False
    return rows.filter(pa.array(kept))
