"""Profile columns: which types fit every value, how many are null, and whether any repeats."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInput
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.coercion import CoercionRules, coerce_column
from omnigraph.write.inference.input_tables import MIXED, InputFile
from omnigraph.write.inputs.byte_streams import UnreadableInput

_TEXT_FORMS: dict[Scalar, str] = {
    Scalar.BOOL: r"^(?i:true|false)$",
    Scalar.I64: r"^(0|-?[1-9][0-9]{0,18})$",
    Scalar.F64: r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$",
    Scalar.DATE: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    Scalar.DATE_TIME: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}",
}
"""How the values of a type are written, in the order in which types are preferred.

Text that the loader would read, too, but that the value would not give back, such as `007`, is not
among them.
"""
_JSON_FORMS = (Scalar.DATE, Scalar.DATE_TIME)
_ZEROS = r"^-?0[0-9]"
_LONG_NUMBER = r"^-?[0-9.]{19,}"
_FINE_TIME = r"\.[0-9]{3}0*[1-9]"
_NO_OFFSET = r"[T ][0-9:.]+$"
_LIST_TEXT = r"^\s*\["
_TEXT_RULES = CoercionRules(text=True)
_WIDER: dict[frozenset[pa.DataType], pa.DataType] = {
    frozenset((pa.int64(), pa.float64())): pa.float64(),
    frozenset((pa.int32(), pa.int64())): pa.int64(),
    frozenset((pa.float32(), pa.float64())): pa.float64(),
    frozenset((pa.list_(pa.int64()), pa.list_(pa.float64()))): pa.list_(pa.float64()),
}


class _Misfit(Exception):
    """A value that a type cannot hold."""


@dataclass(slots=True)
class ColumnProfile:
    """What is known about a column after some batches."""

    name: str
    is_text: bool
    rows: int = 0
    nulls: int = 0
    kind: pa.DataType | None = None
    is_mixed: bool = False
    repeats: str | None = None
    """A value that stands in two rows of one batch."""
    forms: list[Scalar] = field(default_factory=list)
    """The types that all texts so far fit."""
    seen: set[str] = field(default_factory=set)
    """Facts about values for notes, as words."""
    lengths: tuple[int, int] | None = None

    @property
    def values(self) -> int:
        """How many values are not null."""
        return self.rows - self.nulls

    def add(self, column: pa.Array, *, is_mixed: bool = False) -> None:
        """Look at more values."""
        first = not self.values
        self.rows += len(column)
        self.nulls += column.null_count
        if column.null_count == len(column) and self.kind not in (None, pa.null()):
            return
        self.is_mixed |= is_mixed
        self._widen(_plain_type(column.type))
        if column.null_count == len(column):
            return
        if _is_text(column.type):
            self._add_texts(column.cast(pa.string()), is_first=first)
        self._look(column)

    def missing(self, rows: int) -> None:
        """Count rows of a batch without the column as null."""
        self.rows += rows
        self.nulls += rows

    def _widen(self, kind: pa.DataType) -> None:
        if self.kind is None or pa.types.is_null(self.kind):
            self.kind = kind
        elif kind != self.kind and not pa.types.is_null(kind):
            wider = _WIDER.get(frozenset((kind, self.kind)))
            self.is_mixed |= wider is None
            self.kind = wider or self.kind

    def _add_texts(self, texts: pa.Array, *, is_first: bool) -> None:
        try:
            texts.validate(full=True)
        except pa.ArrowException as error:
            message = f"column `{self.name}` is not UTF-8; give its encoding, such as latin-1"
            raise UnreadableInput(message) from error
        if is_first:
            self.forms = list(_TEXT_FORMS if self.is_text else _JSON_FORMS)
        self.forms = [scalar for scalar in self.forms if _fits(texts, scalar)]
        if _any(texts, _ZEROS):
            self.seen.add("zeros")
        if _any(texts, _LONG_NUMBER):
            self.seen.add("long number")
            self.forms = [scalar for scalar in self.forms if scalar is not Scalar.F64]
        if _any(texts, _LIST_TEXT):
            self.seen.add("list")
        if Scalar.DATE_TIME in self.forms:
            self.seen |= {"fine time"} if _any(texts, _FINE_TIME) else set()
            self.seen |= {"no offset"} if _any(texts, _NO_OFFSET) else set()

    def _look(self, column: pa.Array) -> None:
        kind = column.type
        if pa.types.is_floating(kind) and not pc.all(pc.is_finite(column)).as_py():
            self.seen.add("not finite")
        if pa.types.is_timestamp(kind) and kind.unit in ("us", "ns"):
            step = {"us": 1_000, "ns": 1_000_000}[kind.unit]
            numbers = column.view(pa.int64())
            cut = pc.multiply(pc.divide(numbers, step), step)
            if not pc.all(pc.equal(numbers, cut)).as_py():
                self.seen.add("fine time")
        if _is_list(kind):
            if pc.list_flatten(column).null_count:
                self.seen.add("null item")
            bounds = pc.min_max(pc.list_value_length(column)).as_py()
            low, high = self.lengths or (bounds["min"], bounds["max"])
            self.lengths = (min(low, bounds["min"]), max(high, bounds["max"]))
        texts = key_texts_of(column)
        if texts is not None and self.repeats is None:
            self.repeats = first_repeated(texts)


def first_repeated(texts: pa.Array) -> str | None:
    """Return the first of the texts that stands there twice, None when all are different."""
    values = texts.drop_null()
    if pc.count_distinct(values).as_py() == len(values):
        return None
    counted = pc.value_counts(values)
    repeated = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    text: str = repeated[0].as_py()
    return text


def key_texts_of(column: pa.Array) -> pa.Array | None:
    """Return the values of a column as the texts of ids; None for what no id is made from."""
    if _is_text(column.type):
        return column.cast(pa.string())
    if pa.types.is_dictionary(column.type):
        return key_texts_of(column.dictionary_decode())
    return column.cast(pa.string()) if pa.types.is_integer(column.type) else None


def profile_table(table: InputFile) -> list[ColumnProfile]:
    """Read a table once; return its columns in the order of the file."""
    try:
        return _profile(table)
    except UnreadableInput as error:
        message = f"cannot read {table.label}: {error}"
        raise InvalidInput(message, code="input_unreadable", file=table.label) from error


def _profile(table: InputFile) -> list[ColumnProfile]:
    columns: dict[str, ColumnProfile] = {}
    rows = 0
    for batch in table.batches():
        for name, field_, column in zip(
            batch.schema.names, batch.schema, batch.columns, strict=True
        ):
            profile = columns.setdefault(name, ColumnProfile(name, table.is_text, rows, rows))
            is_mixed = MIXED.encode() in (field_.metadata or {}) and table.kind == "json"
            profile.add(column, is_mixed=is_mixed)
        rows += batch.num_rows
        for profile in columns.values():
            profile.missing(rows - profile.rows)
    return list(columns.values())


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    checks = (types.is_string, types.is_large_string, types.is_string_view)
    return any(check(kind) for check in checks)


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    checks = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(check(kind) for check in checks)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    return _plain_type(kind.value_type) if pa.types.is_dictionary(kind) else kind


def _any(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _fits(texts: pa.Array, scalar: Scalar) -> bool:
    """Return whether the loader reads all texts as values of a type."""
    matches = pc.match_substring_regex(texts, _TEXT_FORMS[scalar])
    if pc.all(matches).as_py() is False:
        return False
    try:
        coerce_column(texts, PropertyType(scalar, nullable=True), _misfit, _TEXT_RULES)
    except _Misfit:
        return False
    return True


def _misfit(row: int, value: Any, reason: str) -> NoReturn:  # noqa: ANN401 - any value
    raise _Misfit(reason)


# --- the type of a column ----------------------------------------------------------------------


_SCALARS: dict[pa.DataType, Scalar] = {
    pa.bool_(): Scalar.BOOL,
    pa.float16(): Scalar.F32,
    pa.float32(): Scalar.F32,
    pa.float64(): Scalar.F64,
    pa.uint32(): Scalar.U32,
    pa.uint64(): Scalar.U64,
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), Scalar.I32),
    pa.int64(): Scalar.I64,
    pa.date32(): Scalar.DATE,
    pa.date64(): Scalar.DATE_TIME,
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), Scalar.STRING),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), Scalar.BLOB),
}
_SEEN_NOTES = {
    "not finite": "some values are NaN or infinite, which a load refuses: map them to null",
    "fine time": "some values are finer than milliseconds, which are cut off",
    "null item": "some lists contain null, which a load refuses",
}


def column_type(profile: ColumnProfile) -> tuple[PropertyType | None, list[str]]:
    """Return the type of a column and the evidence; None with the reason when there is no type."""
    nullable = profile.nulls > 0 or not profile.rows
    if not profile.values:
        text = "no value in any row" if profile.rows else "no rows"
        return PropertyType(Scalar.STRING, nullable=True), [f"{text}: the type is a guess"]
    if profile.is_mixed:
        return None, ["its values are of several kinds"]
    assert profile.kind is not None, "it has values"
    notes = [f"null in {profile.nulls:,} of {rows_text(profile.rows)}"] if profile.nulls else []
    notes += [note for word, note in _SEEN_NOTES.items() if word in profile.seen]
    kind = profile.kind
    if _is_list(kind):
        type_ = _list_type(profile, kind, notes)
    else:
        scalar = _text_scalar(profile, notes) if _is_text(kind) else _scalar(kind, notes)
        type_ = None if scalar is None else PropertyType(scalar)
    if type_ is None:
        return None, [f"no property type holds {kind}"]
    return _with_nullability(type_, nullable), notes


def _with_nullability(type_: PropertyType, nullable: bool) -> PropertyType:
    return PropertyType(type_.scalar, nullable, type_.is_list, None, type_.dimension)


def _scalar(kind: pa.DataType, notes: list[str]) -> Scalar | None:
    if pa.types.is_timestamp(kind):
        return Scalar.DATE_TIME
    if pa.types.is_fixed_size_binary(kind):
        return None
    if pa.types.is_decimal(kind):
        if kind.scale == 0 and kind.precision <= 18:
            return Scalar.I64
        notes.append(f"{kind} is rounded to a double")
        return Scalar.F64
    return _SCALARS.get(kind)


def _text_scalar(profile: ColumnProfile, notes: list[str]) -> Scalar:
    if not profile.forms:
        if profile.is_text and "zeros" in profile.seen:
            notes.append("numbers with leading zeros, kept as text")
        if profile.is_text and "long number" in profile.seen:
            notes.append("numbers with more digits than a double has, kept as text")
        if profile.is_text and "list" in profile.seen:
            notes.append("some values begin like JSON arrays: `[String]` or `[F64]` reads them")
        return Scalar.STRING
    scalar = profile.forms[0]
    words = {Scalar.I64: "a whole number", Scalar.F64: "a number", Scalar.BOOL: "true or false"}
    notes.append(f"every value is {words.get(scalar, f'a {scalar}')}")
    if scalar is Scalar.DATE_TIME and "no offset" in profile.seen:
        notes.append("without an offset, read as UTC")
    return scalar


def _list_type(profile: ColumnProfile, kind: pa.DataType, notes: list[str]) -> PropertyType | None:
    item = _plain_type(kind.value_type)
    scalar = _scalar(item, notes)
    if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(item):
        return PropertyType(Scalar.VECTOR, dimension=kind.list_size)
    if scalar is None or scalar is Scalar.BLOB:
        return None
    if scalar.value in ("F32", "F64") and profile.lengths is not None:
        low, high = profile.lengths
        if low == high and low > 1:
            notes.append(f"all lists have {low} numbers: `Vector({low})` makes them searchable")
    return PropertyType(scalar, is_list=True)


def shown(text: str) -> str:
    """Return a value for a comment: short, on one line.

    >>> shown("a\\nb")
    '"a\\\\nb"'
    """
    return json.dumps(text[:40], ensure_ascii=False)


def rows_text(count: int) -> str:
    """Return `1 row`, `1,000 rows`."""
    return f"{count:,} row" + ("" if count == 1 else "s")


def holds_id_values(type_: PropertyType | None) -> bool:
    """Return whether values of a type are used as ids of other rows."""
    kinds = (Scalar.STRING, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64)
    return type_ is not None and type_.scalar in kinds and not type_.is_list
