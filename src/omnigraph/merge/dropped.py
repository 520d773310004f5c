"""Find what one side changed of types and properties that the other side dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedSchema, AcceptedType, Property, TypeId, TypeKind
from omnigraph.catalog.defaults import default_value
from omnigraph.changes.delta import Delta, Side, compare_type
from omnigraph.changes.steps import Steps
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.states import side_of
from omnigraph.types.column import to_column
from omnigraph.types.equal import Mask, same_values


def dropped_changes(
    manifest: Manifest,
    bases: Sequence[Snapshot],
    sides: Sequence[Snapshot],
    merged: AcceptedSchema,
) -> Iterator[Conflict]:
    """Yield a conflict for every dropped type and property that a side has changed since."""
    known: dict[TypeId, Side] = {}
    for base in bases:
        for kind in (TypeKind.NODE, TypeKind.EDGE):
            for type_ in base.schema.of_kind(kind):
                known.setdefault(type_.id, Side.of(base, type_))
    for type_id, before in known.items():
        for snapshot in sides:
            after = side_of(snapshot, before.type)
            if after is not None:
                comparing = compare_type(manifest, before, after, Steps(manifest, (snapshot,)))
                yield from _changed(comparing, before, after, merged.by_id(type_id))


def _changed(
    comparing: Iterator[Delta], before: Side, after: Side, kept: AcceptedType | None
) -> Iterator[Conflict]:
    """Yield what a side changed of a type that is dropped, or of which properties are."""
    if kept is None:
        if any(delta.before.num_rows or delta.after.num_rows for delta in comparing):
            yield _conflict(before.type, "it", "changed its entities")
    elif lost := _lost(after.type, kept):
        for name in sorted(set(_written(comparing, before, after, lost))):
            yield _conflict(kept, name, "set it", (name,))


def _conflict(type_: AcceptedType, what: str, did: str, names: tuple[str, ...] = ()) -> Conflict:
    return Conflict(
        kind=ConflictKind.SCHEMA_CONFLICT,
        message=f"{type_.name}: one side dropped {what}, the other {did}",
        type=type_.name,
        properties=names,
    )


def _lost(type_: AcceptedType, kept: AcceptedType) -> list[str]:
    """Return the properties of a type that the merged schema does not have."""
    remaining = set(kept.property_ids.values())
    return [name for name, id_ in type_.property_ids.items() if id_ not in remaining]


def _written(
    deltas: Iterator[Delta], before: Side, after: Side, names: Sequence[str]
) -> Iterator[str]:
    """Yield those of the properties of a side to which values were written."""
    former = {id_: name for name, id_ in before.type.property_ids.items()}
    for delta in deltas:
        for name in names:
            earlier = former.get(after.type.property_ids[name])
            column = delta.after[name]
            old = _aligned(delta, earlier, column.type)
            default = _is_default(delta, column, after.type.definition.properties[name])
            missing = np.asarray(column.is_null())
            if not np.all(same_values(old, column) | missing | default):
                yield name


def _aligned(delta: Delta, name: str | None, type_: pa.DataType) -> pa.ChunkedArray:
    """Return what entities had before, null for new ones."""
    if name is None or not delta.before.num_rows:
        return pa.chunked_array([pa.nulls(delta.after.num_rows, type_)])
    places = pc.index_in(delta.after["id"], value_set=delta.before["id"].combine_chunks())
    found = delta.before[name].take(places)
    return found if found.type == type_ else pc.cast(found, type_)


def _is_default(delta: Delta, column: pa.ChunkedArray, property_: Property) -> Mask:
    """Return which entities are new and have the default, which no write set."""
    default = default_value(property_)
    if default is None:
        return np.zeros(len(column), np.bool_)
    known = pc.is_in(delta.after["id"], value_set=delta.before["id"].combine_chunks())
    is_new: Mask = ~np.asarray(known)
    return is_new & same_values(column, to_column([default] * len(column), property_.type))
