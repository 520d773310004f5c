"""Record which model made the vectors of a property.

The record is about all vectors of a version of a dataset: every one was made by this model. It is
removed as soon as that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Property
from omnigraph.dataset_view import StagedView, VersionReader
from omnigraph.embed.config import same_model
from omnigraph.embed.embedder import check_model, unknown_model_error
from omnigraph.write.change_set import RowSchema, TypeChange


def vector_properties(shape: RowSchema) -> Iterator[Property]:
    """Yield the vector properties of a type."""
    yield from (p for p in shape.properties.values() if p.type.dimension is not None)


def models_of_other_vectors(change: TypeChange, name: str, base: VersionReader) -> set[str | None]:
    """Return the models of the vectors beside which a change embeds; None is an unknown one."""
    models = {change.supplied_model(name)} if supplies_vectors(change, name) else set()
    if not change.replace:
        before = base.embedding_model(name)
        if before is not None or base.has_vectors(name):
            models.add(before)
    return models


def check_embedded_model(change: TypeChange, name: str, others: Collection[str | None]) -> None:
    """Raise OmniError when vectors were made that those of others cannot be compared with."""
    property_ = change.shape.properties[name]
    place, model = f"{change.shape.name}.{name}", change.made[name]
    if None in others and (property_.embed is None or property_.embed.model is None):
        raise unknown_model_error(place)
    for other in others:
        check_model(place, other, model, declared=False)


def check_declared_model(change: TypeChange) -> None:
    """Raise OmniError when vectors are given of another model than the schema declares."""
    for property_ in vector_properties(change.shape):
        model = change.supplied_model(property_.name)
        if (
            property_.embed is not None
            and model is not None
            and supplies_vectors(change, property_.name)
        ):
            place = f"{change.shape.name}.{property_.name}"
            check_model(place, property_.embed.model, model, declared=True, supplied=True)


def record_models(
    change: TypeChange,
    staged: StagedView,
    base: VersionReader,
    rows: int,
    keeps: Callable[[str], bool],
) -> Any:  # noqa: ANN401 - a Lance handle
    """Return a staged version that records which model made the vectors of each property.

    `rows` is how many rows the base has; `keeps` returns whether rows of the change may have
    vectors of committed entities.

    Raises:
        OmniError: the vectors given are declared to be of another model than those that stay.
    """

    def is_alone(name: str) -> bool:
        return not (base.has_vectors(name) if keeps(name) else staged.keeps_vectors_of(base, name))

    models = {
        name: _model_after(change, name, model, rows, is_alone)
        for name, model in base.embedding_models().items()
    }
    return staged.record_embedding_models(models)


def _model_after(
    change: TypeChange,
    name: str,
    before: str | None,
    rows: int,
    is_alone: Callable[[str], bool],
) -> str | None:
    """Return the model of all vectors of a property after a change; None if that is unknown."""
    models: set[str | None] = {change.made[name]} if name in change.made else set()
    supplied = change.supplied_model(name) if supplies_vectors(change, name) else None
    if supplies_vectors(change, name):
        models.add(supplied)
    stays = bool(rows) and not change.replace
    if not models:
        return before if stays else None
    model = next(iter(models))
    if model is None or any(m is None or not same_model(m, model) for m in models):
        return None
    if not stays or name in change.alone:
        return model
    if before is not None and same_model(before, model):
        return before
    if is_alone(name):
        return model
    if before is not None and supplied is not None:
        check_model(f"{change.shape.name}.{name}", before, supplied, declared=False, supplied=True)
    return None


def supplies_vectors(change: TypeChange, name: str) -> bool:
    """Return whether a change brings vectors that were made elsewhere."""
    return any(
        name not in batch.kept and batch.rows[name].null_count < batch.rows.num_rows
        for batch in change.batches
    )


def may_keep_vectors(change: TypeChange, name: str) -> bool:
    """Return whether rows of a change may have vectors of the entities they change."""
    return any(
        name in batch.kept or any(name not in names for names in batch.given)
        for batch in change.batches
    )


# ----------------------------------------------------------------------
# Clear vectors that were made from another text than the one beside them.
#
# A vector of an `@embed` property that a change does not give was made from the text its entity
# had. When the change gives another text, the vector is set to null: a required one is made again
# when the rows are written (`write/row_embeddings.py`), an optional one by the next `embed`.


Mask = npt.NDArray[np.bool_]


def embedded_sources(shape: RowSchema) -> Iterator[tuple[Property, str]]:
    """Yield the properties of a type whose vectors are made from texts, and the names of these."""
    for property_ in shape.properties.values():
        if property_.embed is not None:
            yield property_, property_.embed.source


def texts_differ(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Mask:
    """Return where two columns of texts differ; null is a text of its own."""
    unequal = pc.fill_null(pc.not_equal(one, other), False)
    mask: Mask = np.asarray(pc.or_(unequal, pc.xor(one.is_null(), other.is_null())), np.bool_)
    return mask


def clear_vectors(rows: pa.Table, name: str, where: Mask) -> pa.Table:
    """Return rows without the vectors of a property in some places."""
    if not where.any():
        return rows
    kept = rows[name].take(pa.array(np.arange(rows.num_rows), mask=where))
    return rows.set_column(rows.column_names.index(name), rows.field(name), kept)
