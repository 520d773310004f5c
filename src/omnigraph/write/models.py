"""Record which model made the vectors of a property.

The record is about all vectors of a version of a dataset: every one was made by this model. It is
removed as soon as that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from omnigraph.catalog.model import Property
from omnigraph.embed.config import same_model
from omnigraph.embed.embedder import check_given, check_model, unknown_model
from omnigraph.storage.layout import embedding_model
from omnigraph.storage.probe import count, count_beside
from omnigraph.write.change_set import TypeChange
from omnigraph.write.shape import Shape


def vectors(shape: Shape) -> Iterator[Property]:
    """Yield the vector properties of a type."""
    yield from (p for p in shape.properties.values() if p.type.dimension is not None)


def known_models(
    shape: Shape,
    handle: Any,  # noqa: ANN401 - a Lance handle
    names: Mapping[str, str],
) -> dict[str, str | None]:
    """Return what a version of a dataset records about each vector property."""
    return {p.name: embedding_model(handle.schema.field(names[p.name])) for p in vectors(shape)}


def has_vectors(handle: Any, column: str) -> bool:  # noqa: ANN401 - a Lance handle
    """Return whether some row of a dataset has a vector."""
    return count(handle, f"`{column}` IS NOT NULL") > 0


def makers_beside(
    change: TypeChange,
    name: str,
    before: str | None,
    base: Any,  # noqa: ANN401 - a Lance handle
    column: str,
) -> set[str | None]:
    """Return the models of the vectors beside which a change embeds; None is an unknown one."""
    found = {change.given_by(name)} if gives(change, name) else set()
    if not change.replace and (before is not None or has_vectors(base, column)):
        found.add(before)
    return found


def check_made(change: TypeChange, name: str, others: Collection[str | None]) -> None:
    """Raise OmniError when vectors were made that those of others cannot be compared with."""
    property_ = change.shape.properties[name]
    place, model = f"{change.shape.name}.{name}", change.made[name]
    if None in others and (property_.embed is None or property_.embed.model is None):
        raise unknown_model(place)
    for other in others:
        check_model(place, other, model, declared=False)


def check_declared(change: TypeChange) -> None:
    """Raise OmniError when vectors are given of another model than the schema declares."""
    for property_ in vectors(change.shape):
        model = change.given_by(property_.name)
        if property_.embed is not None and model is not None and gives(change, property_.name):
            place = f"{change.shape.name}.{property_.name}"
            check_given(place, property_.embed.model, model, declared=True)


def replaces_all(
    made: Any,  # noqa: ANN401 - Lance handles
    base: Any,  # noqa: ANN401
    column: str,
    *,
    keeps: bool,
) -> bool:
    """Return whether a change brings every vector a version has.

    `keeps` tells that rows of the change may have vectors of committed entities.
    """
    if keeps:
        return not has_vectors(base, column)
    return not count_beside(made, base, f"`{column}` IS NOT NULL")


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
    return {name: _after(change, name, model, rows, is_alone) for name, model in before.items()}


def _after(
    change: TypeChange,
    name: str,
    before: str | None,
    rows: int,
    is_alone: Callable[[str], bool],
) -> str | None:
    makers = _makers(change, name)
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
    given = change.given_by(name)
    if before is not None and given is not None and gives(change, name):
        check_given(f"{change.shape.name}.{name}", before, given, declared=False)
    return None


def _makers(change: TypeChange, name: str) -> set[str | None]:
    """Return the models of the vectors that a change brings; None stands for an unknown one."""
    makers: set[str | None] = {change.made[name]} if name in change.made else set()
    return makers | ({change.given_by(name)} if gives(change, name) else set())


def gives(change: TypeChange, name: str) -> bool:
    """Return whether a change brings vectors that were made elsewhere."""
    return any(
        name not in batch.kept and batch.rows[name].null_count < batch.rows.num_rows
        for batch in change.batches
    )


def keeps(change: TypeChange, name: str) -> bool:
    """Return whether rows of a change may have vectors of the entities they change."""
    return any(
        name in batch.kept or any(name not in given for given in batch.given)
        for batch in change.batches
    )
