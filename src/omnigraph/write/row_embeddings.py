"""Embed the texts of rows whose required vectors are missing.

It runs when rows are written: all violations of a change have been reported by then, and nothing is
embedded for a change that is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Property
from omnigraph.embed import Embedder, Role
from omnigraph.embed.embedder import embedder_for_model
from omnigraph.write.change_set import RowSchema
from omnigraph.write.embedding_models import embedded_sources
from omnigraph.write.resolved_change import ResolvedChange
from omnigraph.write.spilling import SpillManager

EMBED_BATCH_ROWS = 8_192
"""Rows whose texts are embedded together."""


def has_text(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return where there is a text that a vector can be made from."""
    return pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(texts), ""), False)


def fill_required_vectors(
    image: ResolvedChange,
    others: Callable[[str], Collection[str | None]],
    embedder: Embedder,
    spill: SpillManager,
) -> pa.Table:
    """Return the rows of an image with every required vector; those made wait in `spill`.

    `others` returns the models of the other vectors of a property, None for an unknown one.
    """
    rows = image.rows
    for property_, _ in embedded_sources(image.shape):
        name = property_.name
        if property_.type.nullable or not rows[name].null_count:
            continue
        agreed = embedder_for_property(image.shape, property_, others(name), embedder)
        image.change.made[name] = agreed.model
        gathered = spill.new_rows(pa.schema([rows.schema.field(name)]))
        for start in range(0, rows.num_rows, EMBED_BATCH_ROWS):
            part = rows.slice(start, EMBED_BATCH_ROWS)
            missing = part[name].combine_chunks().is_null()
            column = embed_rows(part, property_, np.asarray(missing), agreed)
            gathered.add(pa.table([column], schema=gathered.schema))
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, gathered.table()[0])
    return rows


def embedder_for_property(
    shape: RowSchema, property_: Property, others: Collection[str | None], embedder: Embedder
) -> Embedder:
    """Return what embeds for a property; raise OmniError when its model is another or unknown."""
    assert property_.embed is not None, "only such a property is filled"
    place = f"{shape.name}.{property_.name}"
    return embedder_for_model(embedder, place, property_.embed.model, others)


def embed_rows(
    rows: pa.Table, property_: Property, where: npt.NDArray[np.bool_], embedder: Embedder
) -> pa.Array:
    """Return a vector property of rows, made from their texts where that is wanted."""
    assert property_.embed is not None, "only such a property is made"
    dimension = property_.type.dimension or 0
    texts = rows[property_.embed.source].filter(pa.array(where)).to_pylist()
    vectors = embedder.embed(texts, dimension, Role.DOCUMENT)
    return replace_vectors(rows[property_.name].combine_chunks(), where, vectors)


def replace_vectors(
    column: pa.FixedSizeListArray, where: npt.NDArray[np.bool_], vectors: npt.NDArray[np.float32]
) -> pa.Array:
    """Return a column of vectors with others in some places."""
    valid = np.asarray(column.is_valid())
    numbers = np.zeros((len(column), column.type.list_size), np.float32)
    kept = column.drop_null().flatten().to_numpy(zero_copy_only=False)
    numbers[valid] = kept.reshape(-1, column.type.list_size)
    numbers[where] = vectors
    mask = pa.array(~(valid | where))
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), type=column.type, mask=mask)
