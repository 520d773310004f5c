"""This module keeps the note of which model made the vectors of a property.

The note says something about all vectors of a version of a dataset: that every one was made by this
model. It is taken away as soon as that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.storage.layout import embedding_model
from omnigraph.write.change_set import TypeChange
from omnigraph.write.fill import embedded
from omnigraph.write.shape import Shape


def known_models(
    shape: Shape,
    handle: Any,  # noqa: ANN401 - a Lance handle
    names: Mapping[str, str],
) -> dict[str, str | None]:
    """Return what a version of a dataset notes about each property that has vectors of texts."""
    return {p.name: embedding_model(handle.schema.field(names[p.name])) for p in embedded(shape)}


def models_after(
    change: TypeChange, before: Mapping[str, str | None], rows: int
) -> dict[str, str | None]:
    """Return what is true of each property after a change; `rows` is how many were there before."""
    return {name: _after(change, name, model, rows) for name, model in before.items()}


def _after(change: TypeChange, name: str, before: str | None, rows: int) -> str | None:
    makers: set[str | None] = set()
    if name in change.made:
        makers.add(change.made[name])
    if any(_gives(change, name)):
        makers.add(None)
    if rows and not change.replace and name not in change.alone:
        makers.add(before)
    return makers.pop() if len(makers) == 1 else None


def _gives(change: TypeChange, name: str) -> list[bool]:
    """Tell of each batch whether it brings vectors that somebody else made."""
    return [
        name not in batch.kept and batch.rows[name].null_count < batch.rows.num_rows
        for batch in change.batches
    ]
