"""Record which model made the vectors of a property.

The record is about all vectors of a version of a dataset: every one was made by this model. It is
removed as soon as that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Property
from omnigraph.embed.config import same_model
from omnigraph.embed.embedder import check_model, unknown_model_error
from omnigraph.storage.layout import embedding_model
from omnigraph.storage.row_lookup import count_in_base_fragments, count_rows
from omnigraph.write.change_set import RowSchema, TypeChange


def vector_properties(shape: RowSchema) -> Iterator[Property]:
    """Yield the vector properties of a type."""
    yield from (p for p in shape.properties.values() if p.type.dimension is not None)


def recorded_models(
    shape: RowSchema,
    handle: Any,  # noqa: ANN401 - a Lance handle
    names: Mapping[str, str],
) -> dict[str, str | None]:
    """Return what a version of a dataset records about each vector property."""
    return {
        p.name: embedding_model(handle.schema.field(names[p.name]))
        for p in vector_properties(shape)
    }


def has_vectors(handle: Any, column: str) -> bool:  # noqa: ANN401 - a Lance handle
    """Return whether some row of a dataset has a vector."""
    return count_rows(handle, f"`{column}` IS NOT NULL") > 0


def models_of_other_vectors(
    change: TypeChange,
    name: str,
    before: str | None,
    base: Any,  # noqa: ANN401 - a Lance handle
    column: str,
) -> set[str | None]:
    """Return the models of the vectors beside which a change embeds; None is an unknown one."""
    found = {change.supplied_model(name)} if supplies_vectors(change, name) else set()
    if not change.replace and (before is not None or has_vectors(base, column)):
        found.add(before)
    return found


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


def replaces_all_vectors(
    made: Any,  # noqa: ANN401 - Lance handles
    base: Any,  # noqa: ANN401
    column: str,
    *,
    keeps: bool,
) -> bool:
    """Return whether a change brings every vector a version has.

    `keeps` means that rows of the change may have vectors of committed entities.
    """
    if keeps:
        return not has_vectors(base, column)
    return not count_in_base_fragments(made, base, f"`{column}` IS NOT NULL")


def models_after(
    change: TypeChange,
    before: Mapping[str, str | None],
    rows: int,
    is_alone: Callable[[str], bool],
) -> dict[str, str | None]:
    """Return what is true of each property after a change.

    `rows` is how many rows there were before; `is_alone` returns whether the change brings every
    vector of a property.

    Raises:
        OmniError: the vectors given are declared to be of another model than those that stay.
    """
    return {
        name: _model_after(change, name, model, rows, is_alone) for name, model in before.items()
    }


def _model_after(
    change: TypeChange,
    name: str,
    before: str | None,
    rows: int,
    is_alone: Callable[[str], bool],
) -> str | None:
    makers = _models_of_change(change, name)
    stays = bool(rows) and not change.replace
    if not makers:
        return before if stays else None
    known = next(iter(makers))
    if known is None or any(m is None or not same_model(m, known) for m in makers):
        return None
    if not stays or name in change.alone:
        return known
    if before is not None and same_model(before, known):
        return before
    if is_alone(name):
        return known
    given = change.supplied_model(name)
    if before is not None and given is not None and supplies_vectors(change, name):
        check_model(f"{change.shape.name}.{name}", before, given, declared=False, supplied=True)
    return None


def _models_of_change(change: TypeChange, name: str) -> set[str | None]:
    """Return the models of the vectors that a change brings; None stands for an unknown one."""
    makers: set[str | None] = {change.made[name]} if name in change.made else set()
    return makers | ({change.supplied_model(name)} if supplies_vectors(change, name) else set())


def supplies_vectors(change: TypeChange, name: str) -> bool:
    """Return whether a change brings vectors that were made elsewhere."""
    return any(
        name not in batch.kept and batch.rows[name].null_count < batch.rows.num_rows
        for batch in change.batches
    )


def may_keep_vectors(change: TypeChange, name: str) -> bool:
    """Return whether rows of a change may have vectors of the entities they change."""
    return any(
        name in batch.kept or any(name not in given for given in batch.given)
        for batch in change.batches
    )


# ----------------------------------------------------------------------
# Clear vectors that were made from another text than the one beside them.
#
# A vector of an `@embed` property that a change does not give was made from the text its entity
# had.
# When the change gives another text, the vector is set to null: a required one is made again when
# the
# rows are written (`write/row_embeddings.py`), an optional one by the next `embed`.


Mask = npt.NDArray[np.bool_]


def embedded_sources(shape: RowSchema) -> Iterator[tuple[Property, str]]:
    """Yield the properties of a type whose vectors are made from texts, and the names of these."""
    for property_ in shape.properties.values():
        if property_.embed is not None:
            yield property_, property_.embed.source


def texts_differ(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Mask:
    """Return where two columns of texts differ; null is a text of its own."""
    unequal = pc.fill_null(pc.not_equal(one, other), False)
    found: Mask = np.asarray(pc.or_(unequal, pc.xor(one.is_null(), other.is_null())), np.bool_)
    return found


def clear_vectors(rows: pa.Table, name: str, where: Mask) -> pa.Table:
    """Return rows without the vectors of a property in some places."""
    if not where.any():
        return rows
    kept = rows[name].take(pa.array(np.arange(rows.num_rows), mask=where))
    return rows.set_column(rows.column_names.index(name), rows.field(name), kept)
