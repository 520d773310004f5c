"""The change set: rows to write and IDs to delete, per type, as Arrow tables.

It is the only input of validation and staging, wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from omnigraph.catalog import AcceptedSchema, AcceptedType, TypeKind
from omnigraph.catalog.model import ID, EdgeType, NodeType, Property
from omnigraph.commit.model import DatasetEntry
from omnigraph.dataset_view import logical_schema, system_columns
from omnigraph.embed.config import VectorsFrom, model_for_property
from omnigraph.storage.layout import ColumnLayout
from omnigraph.types import PropertyType
from omnigraph.write.violations import InputLocation, Violation, ViolationCollector, ViolationRule

# ----------------------------------------------------------------------
# Row schemas: the columns of a type in a change.


INPUT_POSITION = "@at"
"""The column that remembers where in the input a row came from; no property has such a name."""

GIVEN_PROPERTIES = "@given"
"""The column of a partial batch that says which properties a row gives."""


@dataclass(frozen=True)
class RowSchema:
    """A type as a change sees it: `id`, endpoints, and properties by name.

    `key` names the members of the key in the order in which they form ids; it is empty when ids
    are generated.
    """

    type: AcceptedType
    key: tuple[str, ...]

    @property
    def table_key(self) -> str:
        """The name of the dataset: `node:Ship` or `edge:CallsAt`."""
        return self.type.entity

    @property
    def kind(self) -> TypeKind:
        """Node or edge."""
        return self.type.kind

    @property
    def name(self) -> str:
        """The name of the type."""
        return self.type.name

    @property
    def definition(self) -> NodeType | EdgeType:
        """What the schema says of the type."""
        assert isinstance(self.type.definition, NodeType | EdgeType), "interfaces store nothing"
        return self.type.definition

    @property
    def properties(self) -> Mapping[str, Property]:
        """The properties by name."""
        return self.definition.properties

    @property
    def key_types(self) -> list[PropertyType]:
        """The types of the members of the key; the ends of an edge are IDs."""
        return [self.column_type(name) for name in self.key]

    def column_type(self, name: str) -> PropertyType:
        """Return the type of a property, an endpoint or the id."""
        property_ = self.properties.get(name)
        return ID.type if property_ is None else property_.type

    @property
    def system(self) -> tuple[str, ...]:
        """The columns that are not properties."""
        return system_columns(self.type)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of a whole row, in order."""
        return logical_schema(self.type)

    def no_rows(self) -> pa.Table:
        """Return a table of this shape without rows."""
        return pa.schema([*self.schema, (INPUT_POSITION, pa.int64())]).empty_table()


def type_violation(
    rule: ViolationRule,
    message: str,
    shape: RowSchema | None,
    **facts: Any,  # noqa: ANN401 - further fields of a violation
) -> Violation:
    """Return a violation by an entity of a type, or of no type that is known."""
    if shape is not None:
        facts |= {"kind": str(shape.kind), "type": shape.name}
    return Violation(rule=rule, message=message, **facts)


def find_row_schema(schema: AcceptedSchema, kind: TypeKind, name: str) -> RowSchema:
    """Return the shape of a type that exists."""
    type_ = schema.find(kind, name)
    assert type_ is not None, "the caller looked the name up"
    return RowSchema(type_, type_.key_order)


_FILE_BITS = 40


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows that were given together: one load, or one statement.

    `rows` has the columns of the shape. `fresh` means that every id was just made, so none can
    exist yet. In a partial batch, `given` are the sets of properties its rows give, and the column
    `GIVEN` says which of them each row has; an entity that exists keeps the others. `kept` are
    properties whose values were not supplied: they are those the entities have, or were made here.
    """

    rows: pa.Table
    fresh: bool = False
    given: tuple[frozenset[str], ...] = ()
    kept: frozenset[str] = frozenset()


@dataclass(slots=True)
class TypeChange:
    """The change of one type: batches in order, of which the last wins by id, and deleted ids.

    `strict` refuses ids that exist. `replace` makes the batches all the type has. `written` is
    what storage wrote of the batches already, the rows of `written_ids` for a dataset with the
    columns of `written_layout`; `adopted` a version that shows the whole change, `shared` fragments
    of another version with the ids of the rows of the batches in them. `made` are the models that
    made vectors here, by property; `alone` the properties of which no other entity has a vector.
    `vectors_from` is the model that made the vectors the batches give, if it is known.
    """

    shape: RowSchema
    batches: list[RowBatch] = field(default_factory=list)
    deleted: dict[str, None] = field(default_factory=dict)
    strict: bool = False
    replace: bool = False
    written: Sequence[Any] | None = None
    written_ids: pa.ChunkedArray | None = None
    written_layout: ColumnLayout | None = None
    adopted: DatasetEntry | None = None
    shared: Sequence[tuple[Any, pa.Array]] = ()
    made: dict[str, str] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)
    vectors_from: VectorsFrom = None

    def supplied_model(self, name: str) -> str | None:
        """Return the model that made the vectors given to a property, if that is known."""
        return model_for_property(self.vectors_from, f"{self.shape.name}.{name}")

    @property
    def is_empty(self) -> bool:
        """Return whether nothing would change."""
        return not (self.replace or self.deleted or any(b.rows.num_rows for b in self.batches))


@dataclass(slots=True)
class ChangeSet:
    """A logical change of a graph, by `node:T` and `edge:E`.

    `files` are the names of the inputs that positions refer to. `findings` is what was wrong with
    the input already, `invalid_rows` the positions of rows with a value that could not be read.
    """

    types: dict[str, TypeChange] = field(default_factory=dict)
    files: Sequence[tuple[str, str]] = ()
    findings: ViolationCollector = field(default_factory=ViolationCollector)
    invalid_rows: set[int] = field(default_factory=set)

    def of(self, shape: RowSchema) -> TypeChange:
        """Return the change of a type, made when first needed."""
        return self.types.setdefault(shape.table_key, TypeChange(shape))

    @property
    def is_empty(self) -> bool:
        """Return whether nothing would change."""
        return all(change.is_empty for change in self.types.values())

    def in_order(self) -> list[TypeChange]:
        """Return the changes by name, nodes before edges."""
        return sorted(
            self.types.values(),
            key=lambda change: (change.shape.kind != "node", change.shape.name),
        )

    def place(self, rows: pa.Table, index: int) -> InputLocation | None:
        """Return where a row stood in the input."""
        return locate_position(self.files, input_position(rows, index))


def input_position(rows: pa.Table, index: int) -> int | None:
    """Return the position of a row in the input, if it has one."""
    if INPUT_POSITION not in rows.column_names:
        return None
    position: int | None = rows[INPUT_POSITION][index].as_py()
    return position


def locate_position(files: Sequence[tuple[str, str]], position: int | None) -> InputLocation | None:
    """Return the place a position means; None when it is of no file people know."""
    if position is None:
        return None
    number, row = divmod(int(position), file_position_base(1))
    if number >= len(files):
        return None
    name, unit = files[number]
    return InputLocation(name, row, unit)


def file_position_base(file_number: int) -> int:
    """Return what to add to a line number of a file to get a position."""
    return file_number << _FILE_BITS
