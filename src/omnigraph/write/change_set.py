"""This module defines the change set: what people want changed, per type, as Arrow.

It is the only thing the validator and the stager look at, whoever made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.commit.model import DatasetEntry
from omnigraph.embed.config import VectorsFrom, model_of
from omnigraph.write.shape import AT, Shape
from omnigraph.write.violations import Findings, Place

_FILE_BITS = 40


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that were given together: one load, or one statement.

    `rows` has the columns of the shape. `fresh` tells that every id was just made, so none can
    exist yet. In a partial batch, `given` are the sets of properties its rows give, and the column
    `GIVEN` says which of them each row has; an entity that exists keeps the others. `kept` are
    properties whose values nobody gave: they are those the entities have, or were made here.
    """

    rows: pa.Table
    fresh: bool = False
    given: tuple[frozenset[str], ...] = ()
    kept: frozenset[str] = frozenset()


@dataclass(slots=True)
class TypeChange:
    """The change of one type: batches in order, of which the last wins by id, and deleted ids.

    `strict` refuses ids that exist. `replace` makes the batches all the type has. `written` is
    what storage wrote of the batches already, the rows of `written_ids`; `adopted` a version that
    shows the whole change, `shared` fragments of another version with the ids of the rows of the
    batches in them. `made` are the models that made vectors here, by property; `alone` the
    properties of which no other entity has a vector. `vectors_from` is the model that made the
    vectors the batches give, if it is known.
    """

    shape: Shape
    batches: list[Batch] = field(default_factory=list)
    deleted: dict[str, None] = field(default_factory=dict)
    strict: bool = False
    replace: bool = False
    written: Sequence[Any] | None = None
    written_ids: pa.ChunkedArray | None = None
    adopted: DatasetEntry | None = None
    shared: Sequence[tuple[Any, pa.Array]] = ()
    made: dict[str, str] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)
    vectors_from: VectorsFrom = None

    def given_by(self, name: str) -> str | None:
        """Return the model that made the vectors given to a property, if that is known."""
        return model_of(self.vectors_from, f"{self.shape.name}.{name}")

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing would change."""
        return not (self.replace or self.deleted or any(b.rows.num_rows for b in self.batches))


@dataclass(slots=True)
class ChangeSet:
    """A logical change of a graph, by `node:T` and `edge:E`.

    `files` are the names of the inputs that positions refer to. `findings` is what was wrong with
    the input already, `spoiled` the positions of rows with a value that could not be read.
    """

    types: dict[str, TypeChange] = field(default_factory=dict)
    files: Sequence[tuple[str, str]] = ()
    findings: Findings = field(default_factory=Findings)
    spoiled: set[int] = field(default_factory=set)

    def of(self, shape: Shape) -> TypeChange:
        """Return the change of a type, made when first needed."""
        return self.types.setdefault(shape.table_key, TypeChange(shape))

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing would change."""
        return all(change.is_empty for change in self.types.values())

    def in_order(self) -> list[TypeChange]:
        """Return the changes by name, nodes before edges."""
        return sorted(
            self.types.values(),
            key=lambda change: (change.shape.kind != "node", change.shape.name),
        )

    def place(self, rows: pa.Table, index: int) -> Place | None:
        """Return where a row stood in the input."""
        if AT not in rows.column_names:
            return None
        position = rows[AT][index].as_py()
        if position is None:
            return None
        return place_of(self.files, position)


def place_of(files: Sequence[tuple[str, str]], position: int) -> Place | None:
    """Return the place a position means; None when it is of no file people know."""
    number, row = divmod(int(position), position_base(1))
    if number >= len(files):
        return None
    name, unit = files[number]
    return Place(name, row, unit)


def position_base(file_number: int) -> int:
    """Return what to add to a line number of a file to get a position."""
    return file_number << _FILE_BITS
