"""This module puts the entities of several states side by side, in the shape of the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType
from omnigraph.catalog.defaults import default_value
from omnigraph.errors import InvalidInput
from omnigraph.types.column import to_column
from omnigraph.types.equal import Mask, same_values
from omnigraph.write.shape import Shape


def shaped(rows: pa.Table, type_: AcceptedType, shape: Shape) -> pa.Table:
    """Return entities of one state as another shapes them: by identity.

    What is new is null, or has its default.
    """
    former = {id_: name for name, id_ in type_.property_ids.items()}
    columns = {name: rows[name] for name in shape.system}
    for name, id_ in shape.type.property_ids.items():
        wanted = shape.schema.field(name).type
        if id_ not in former:
            default = default_value(shape.properties[name])
            columns[name] = to_column([default] * rows.num_rows, shape.properties[name].type)
        else:
            column = rows[former[id_]]
            columns[name] = column if column.type == wanted else _cast(column, wanted, shape, name)
    return pa.table(columns)


def _cast(column: pa.ChunkedArray, wanted: pa.DataType, shape: Shape, name: str) -> pa.ChunkedArray:
    """Return values in the type they have here; what a narrower type cannot hold is refused."""
    try:
        made = pc.cast(column, wanted)
        lost = np.flatnonzero(~same_values(pc.cast(made, column.type), column))
    except pa.ArrowInvalid:
        made, wraps = None, pc.cast(column, wanted, safe=False)
        lost = np.flatnonzero(~same_values(pc.cast(wraps, column.type, safe=False), column))
    if made is not None and not len(lost):
        return made
    values = "1 value does" if len(lost) == 1 else f"{len(lost)} values do"
    message = (
        f"{shape.name}.{name}: {values} not fit {shape.properties[name].type}; "
        "widen the property here first"
    )
    raise InvalidInput(message, code="type_mismatch", type=shape.name, property=name)


@dataclass(frozen=True, slots=True)
class Aligned:
    """Entities by their ids; a row of nulls stands for one that is not there."""

    rows: pa.Table
    there: Mask

    @classmethod
    def of(cls, ids: pa.Array, found: pa.Table) -> Aligned:
        """Align what was found of some ids."""
        places = pc.index_in(ids, value_set=found["id"].combine_chunks())
        return cls(found.take(places), np.asarray(places.is_valid()))

    def at_places(self, places: np.ndarray) -> Aligned:
        """Return some of the entities."""
        return Aligned(self.rows.take(pa.array(places)), self.there[places])

    def same(self, other: Aligned) -> Mask:
        """Tell for each id whether both sides hold the same, or both nothing."""
        alike: Mask = self.there == other.there
        for name in self.rows.column_names:
            alike &= self.same_in(other, name)
        return alike | ~(self.there | other.there)

    def same_in(self, other: Aligned, name: str) -> Mask:
        """Tell for each id whether one column is the same."""
        return same_values(self.rows[name], other.rows[name])


def choose(mask: Mask, one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return `one` where the mask is true, else `other`, for columns of any type."""
    both = pa.chunked_array([*one.chunks, *other.chunks], other.type)
    rows = np.arange(len(mask))
    return both.take(pa.array(np.where(mask, rows, rows + len(one))))
