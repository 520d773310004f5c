"""Clear vectors that were made from another text than the one beside them.

A vector of an `@embed` property that a change does not give was made from the text its entity had.
When the change gives another text, the vector is set to null: a required one is made again when the
rows are written (`write/fill.py`), an optional one by the next `embed`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Property
from omnigraph.write.shape import Shape

Mask = npt.NDArray[np.bool_]


def embedded(shape: Shape) -> Iterator[tuple[Property, str]]:
    """Yield the properties of a type whose vectors are made from texts, and the names of these."""
    for property_ in shape.properties.values():
        if property_.embed is not None:
            yield property_, property_.embed.source


def differing(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Mask:
    """Return where two columns of texts differ; null is a text of its own."""
    unequal = pc.fill_null(pc.not_equal(one, other), False)
    found: Mask = np.asarray(pc.or_(unequal, pc.xor(one.is_null(), other.is_null())), np.bool_)
    return found


def cleared(rows: pa.Table, name: str, where: Mask) -> pa.Table:
    """Return rows without the vectors of a property in some places."""
    if not where.any():
        return rows
    kept = rows[name].take(pa.array(np.arange(rows.num_rows), mask=where))
    return rows.set_column(rows.column_names.index(name), rows.field(name), kept)
