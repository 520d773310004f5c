"""Build the rows of a change set from input values, type by type.

Values become columns of the property's type, ids are made or checked, and whatever is wrong is
noted with its place. Rows that cannot have an id are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedSchema, TypeKind
from omnigraph.catalog.defaults import default_value
from omnigraph.catalog.model import EdgeType
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_column
from omnigraph.write.change_set import (
    GIVEN_PROPERTIES,
    INPUT_POSITION,
    ChangeSet,
    RowBatch,
    RowSchema,
    file_position_base,
    find_row_schema,
    locate_position,
    type_violation,
)
from omnigraph.write.coercion import (
    DEFAULT_RULES,
    CoercionRules,
    InvalidValueHandler,
    coerce_column,
    coerce_values,
)
from omnigraph.write.ids import generate_ids, ids_from_keys
from omnigraph.write.rejected_rows import cell_value, to_record
from omnigraph.write.spilling import SpillableRows, SpillManager
from omnigraph.write.violations import InputLocation, ViolationRule, abbreviate_value

InputCells: TypeAlias = pa.Array | Sequence[Any]
_TEXT_TYPE = PropertyType(Scalar.STRING)
_ENDPOINT_MEMBERS = {"src": "from", "dst": "to"}


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows of one type as an input gave them: cells by column, and where each row stood.

    `given` are the properties that each row gives; used by partial loads only.
    """

    columns: Mapping[str, InputCells]
    at: pa.Array
    text: bool = False
    forgiving: bool = False
    given: Sequence[frozenset[str]] | frozenset[str] = frozenset()

    @classmethod
    def from_records(
        cls,
        shape: RowSchema,
        records: Sequence[tuple[int, Mapping[str, Any]]],
        *,
        forgiving: bool = False,
    ) -> InputRows:
        """Return rows given as values by column, each with its place."""
        columns = {name: [row.get(name) for _, row in records] for name in shape.schema.names}
        at = pa.array([at for at, _ in records], pa.int64())
        properties = [frozenset(row) for _, row in records]
        return cls(columns, at, forgiving=forgiving, given=properties)


class RowBuilder:
    """What was read so far.

    `files` are the inputs; those given at first are read by others. `is_whole` means that every
    input was read to its end. `encoding` is that of text files, UTF-8 by default.
    `respelled` are ids that older data spells differently, by node type.
    """

    def __init__(
        self,
        schema: AcceptedSchema,
        spill: SpillManager,
        *,
        partial: bool = False,
        rules: CoercionRules = DEFAULT_RULES,
        files: Sequence[tuple[str, str]] = (),
        encoding: str | None = None,
    ) -> None:
        self.schema = schema
        self.encoding = encoding
        self.partial = partial
        self.rules = rules
        self.changes = ChangeSet()
        self.is_whole = True
        self.respelled: dict[str, dict[str, str]] = {}
        self.rows = 0
        self.files = list(files)
        self._spill = spill
        self._types: dict[str, _TypeRows] = {}

    # --- inputs --------------------------------------------------------------------------------

    def open_file(self, name: str, unit: str) -> int:
        """Note one more input; return what to add to its line or row numbers."""
        self.files.append((name, unit))
        return file_position_base(len(self.files) - 1)

    def shape(self, kind: TypeKind, name: str) -> RowSchema:
        """Return the shape of a type that exists."""
        key = f"{kind}:{name}"
        if key not in self._types:
            return find_row_schema(self.schema, kind, name)
        return self._types[key].shape

    def problem(
        self,
        rule: ViolationRule,
        message: str,
        at: int,
        shape: RowSchema | None = None,
        **facts: Any,  # noqa: ANN401 - further fields of a violation
    ) -> None:
        """Note what is wrong with one line or row."""
        source = locate_position(self.files, at)
        self.changes.findings.add(
            type_violation(rule, message, shape, source=source, at=at, **facts)
        )

    def report_file_error(
        self,
        rule: ViolationRule,
        message: str,
        shape: RowSchema | None = None,
        **facts: Any,  # noqa: ANN401 - further fields of a violation
    ) -> None:
        """Note what is wrong with the newest input as a whole: the rest of it is not read."""
        self.is_whole = False
        name, unit = self.files[-1]
        source = InputLocation(name, None, unit)
        self.changes.findings.add(type_violation(rule, message, shape, source=source, **facts))

    # --- rows ----------------------------------------------------------------------------------

    def include_type(self, shape: RowSchema) -> None:
        """Note that a type is part of the change, even if no row of it follows."""
        self._taken(shape)

    def add(self, shape: RowSchema, raws: Sequence[InputRows]) -> None:
        """Take rows of one type, in the order of their places."""
        taken = self._taken(shape)
        parts = [_InputRowsConverter(self, shape, raw).made(taken) for raw in raws if len(raw.at)]
        if not _are_in_order(parts):
            parts = [pa.Table.from_batches(parts).sort_by(INPUT_POSITION)]
        for part in parts:
            taken.gathered.add(part)
        self.rows += sum(len(raw.at) for raw in raws)

    def _taken(self, shape: RowSchema) -> _TypeRows:
        if shape.table_key not in self._types:
            extra = [
                (INPUT_POSITION, pa.int64()),
                *([(GIVEN_PROPERTIES, pa.int32())] if self.partial else []),
            ]
            gathered = self._spill.new_rows(pa.schema([*shape.schema, *extra]))
            self._types[shape.table_key] = _TypeRows(shape, gathered)
        return self._types[shape.table_key]

    def count_skipped(self, shape: RowSchema, number: int) -> None:
        """Count rows that were given, but are not among those to take."""
        self._taken(shape).rows += number

    def counts(self, kind: TypeKind) -> dict[str, int]:
        """Return how many rows of each type were given, by name."""
        totals = {t.shape.name: t.rows for t in self._types.values() if t.shape.kind is kind}
        return dict(sorted(totals.items()))

    def finish(self, *, strict: bool = False, replace: bool = False) -> ChangeSet:
        """Return everything as a change set."""
        changes = self.changes
        changes.files = tuple(self.files)
        for taken in self._types.values():
            change = changes.of(taken.shape)
            change.strict, change.replace = strict, replace
            rows = self._respelled(taken.gathered.table(), taken.shape)
            properties = tuple(taken.given) if self.partial else ()
            change.batches.append(RowBatch(rows, fresh=taken.fresh, given=properties))
        return changes

    def _respelled(self, rows: pa.Table, shape: RowSchema) -> pa.Table:
        """Return edges whose ends, and so their keys, are spelled like the ids of their nodes."""
        definition, has_changed = shape.definition, False
        if not isinstance(definition, EdgeType):
            return rows
        for end, node in (("src", definition.src), ("dst", definition.dst)):
            names = self.respelled.get(node)
            if names:
                has_changed = True
                olds = pa.array(names.keys(), pa.string())
                news = pa.array(names.values(), pa.string())
                places = pc.index_in(rows[end], value_set=olds)
                column = pc.coalesce(news.take(places), rows[end])
                rows = rows.set_column(rows.column_names.index(end), end, column)
        if has_changed and shape.key:
            ids = ids_from_keys([rows[name] for name in shape.key], shape.key_types)
            rows = rows.set_column(rows.column_names.index("id"), "id", pa.chunked_array([ids]))
        return rows


@dataclass(slots=True)
class _TypeRows:
    """The rows of one type."""

    shape: RowSchema
    gathered: SpillableRows
    rows: int = 0
    fresh: bool = True
    given: dict[frozenset[str], int] = field(default_factory=dict)

    def given_number(self, names: frozenset[str]) -> int:
        return self.given.setdefault(names, len(self.given))


# --- one batch ---------------------------------------------------------------------------------


class _InputRowsConverter:
    """Rows of one type on their way from raw cells to a table."""

    def __init__(self, intake: RowBuilder, shape: RowSchema, raw: InputRows) -> None:
        self.intake = intake
        self.shape = shape
        self.raw = raw
        self.count = len(raw.at)
        self.rules = replace(intake.rules, text=raw.text, forgiving=raw.forgiving)
        self.ids: pa.Array | None = None
        self.keep: pa.Array | None = None
        self.invalid_rows: set[int] = set()

    def made(self, taken: _TypeRows) -> pa.RecordBatch:
        """Return the rows as a change has them."""
        taken.rows += self.count
        is_edge = self.shape.kind is TypeKind.EDGE
        columns = {end: self._end(end) for end in _ENDPOINT_MEMBERS} if is_edge else {}
        columns |= {name: self._property(name) for name in self.shape.key if name not in columns}
        ids = self._ids(columns, taken)
        columns |= {n: self._property(n) for n in self.shape.properties if n not in columns}
        columns |= {"id": ids, INPUT_POSITION: self.raw.at}
        if self.intake.partial:
            columns[GIVEN_PROPERTIES] = self._given(taken)
        schema = taken.gathered.schema
        rows = pa.record_batch([columns[name] for name in schema.names], schema=schema)
        self.intake.changes.invalid_rows |= {self.raw.at[row].as_py() for row in self.invalid_rows}
        return rows if self.keep is None else rows.filter(self.keep)

    # --- values --------------------------------------------------------------------------------

    def _property(self, name: str) -> pa.Array:
        type_ = self.shape.properties[name].type
        rule = ViolationRule.BLOB if type_.scalar is Scalar.BLOB else ViolationRule.VALUE
        handler = self._handler(rule, f"{self.shape.name}.{name}", self.invalid_rows, name)
        column = self._column(name, type_, handler)
        default = default_value(self.shape.properties[name]) if column.null_count else None
        if default is None:
            return column
        # A value that could not be read stays null: the error has been reported.
        filled = pc.coalesce(column, to_column([default], type_)[0])
        if not self.invalid_rows:
            return filled
        reported = pa.array([row in self.invalid_rows for row in range(self.count)])
        return pc.if_else(reported, column, filled)

    def _handler(
        self, rule: ViolationRule, place: str, rows: set[int], name: str | None = None
    ) -> InvalidValueHandler:
        """Return what reports values that do not fit, and adds their rows to a set."""

        def report(row: int, value: Any, reason: str) -> None:  # noqa: ANN401 - any value
            rows.add(row)
            facts = {"property": name, "value": abbreviate_value(value)}
            self._report(row, rule, f"{place}: {reason}", **facts)

        return report

    def _column(self, name: str, type_: PropertyType, report: InvalidValueHandler) -> pa.Array:
        cells = self.raw.columns.get(name)
        if cells is None:
            cells = pa.nulls(self.count)
        convert = coerce_column if isinstance(cells, pa.Array) else coerce_values
        return convert(cells, type_, report, self.rules)

    def _end(self, end: str) -> pa.Array:
        word, name = _ENDPOINT_MEMBERS[end], self.shape.name

        unreadable: set[int] = set()
        handler = self._handler(ViolationRule.VALUE, f"`{word}` of {name}", unreadable)
        column = self._column(end, _TEXT_TYPE, handler)
        if column.null_count:
            self._leave_out(column.is_null(), f"`{word}` of {name} is null or missing", unreadable)
        return column

    # --- ids -----------------------------------------------------------------------------------

    def _ids(self, columns: Mapping[str, pa.Array], taken: _TypeRows) -> pa.Array:
        ids = self._given_ids()
        if self.shape.key:
            taken.fresh = False
            self.ids = self._key_ids(columns, ids)
            return self.ids
        if ids.null_count == self.count:
            return generate_ids(self.count)
        taken.fresh = False
        self.ids = ids
        return pc.coalesce(ids, generate_ids(self.count)) if ids.null_count else ids

    def _given_ids(self) -> pa.Array:
        if self.raw.columns.get("id") is None:
            return pa.nulls(self.count, pa.string())
        refused: set[int] = set()
        report = self._handler(ViolationRule.ID, f"id of {self.shape.name}", refused)
        ids = self._column("id", _TEXT_TYPE, report)
        empty = pc.fill_null(pc.equal(ids, ""), False)
        if not self.shape.key and pc.any(empty).as_py():  # a key may be an empty text
            for row in pc.indices_nonzero(empty).to_pylist():
                report(row, "", "an id is not empty")
        if refused:
            self._drop(pa.array([row in refused for row in range(self.count)]))
        return ids

    def _key_ids(self, columns: Mapping[str, pa.Array], given_ids: pa.Array) -> pa.Array:
        lacking = [columns[name].is_null() for name in self.shape.key if columns[name].null_count]
        if lacking:
            for name in (n for n in self.shape.key if n in self.shape.properties):
                message = f"{self.shape.name}.{name} is required, but null or missing"
                self._leave_out(columns[name].is_null(), message, self.invalid_rows, name)
            whole = pc.invert(reduce(pc.or_, lacking))
            columns = {name: columns[name].filter(whole) for name in self.shape.key}
        ids = ids_from_keys([columns[name] for name in self.shape.key], self.shape.key_types)
        if lacking:
            ids = pc.replace_with_mask(pa.nulls(self.count, pa.string()), whole, ids)
        differs = pc.fill_null(pc.not_equal(given_ids, ids), False)
        if pc.any(differs).as_py():
            for row in pc.indices_nonzero(differs).to_pylist():
                text, key = given_ids[row].as_py(), ids[row].as_py()
                message = f"id '{text}' of {self.shape.name} is not its key '{key}'"
                self._report(row, ViolationRule.ID, message, id=key, value=text)
            self._drop(differs)
        return ids

    # --- what is wrong -------------------------------------------------------------------------

    def _leave_out(
        self, rows: pa.Array, message: str, reported: set[int], name: str | None = None
    ) -> None:
        """Leave rows out, and say why of those of which nothing was said."""
        for row in pc.indices_nonzero(rows).to_pylist():
            if row not in reported:
                self._report(row, ViolationRule.REQUIRED, message, property=name)
        self._drop(rows)

    def _drop(self, rows: pa.Array) -> None:
        keep = pc.invert(rows)
        self.keep = keep if self.keep is None else pc.and_(self.keep, keep)

    def _report(self, row: int, rule: ViolationRule, message: str, **facts: Any) -> None:  # noqa: ANN401
        if not self.intake.changes.findings.remaining:
            self.intake.changes.findings.count(rule, 1)
            return
        if self.ids is not None and "id" not in facts:
            facts["id"] = self.ids[row].as_py()
        cells = {name: cell_value(column, row) for name, column in self.raw.columns.items()}
        facts["record"] = to_record(self.shape, cells, text=self.raw.text)
        self.intake.problem(rule, message, self.raw.at[row].as_py(), self.shape, **facts)

    def _given(self, taken: _TypeRows) -> pa.Array:
        names_by_row = self.raw.given
        if isinstance(names_by_row, frozenset):
            return pa.repeat(pa.scalar(taken.given_number(names_by_row), pa.int32()), self.count)
        return pa.array([taken.given_number(names) for names in names_by_row], pa.int32())


def _are_in_order(parts: Sequence[pa.RecordBatch]) -> bool:
    ends = [
        (part[INPUT_POSITION][0].as_py(), part[INPUT_POSITION][-1].as_py())
        for part in parts
        if part.num_rows
    ]
    return all(before[1] < after[0] for before, after in pairwise(ends))
