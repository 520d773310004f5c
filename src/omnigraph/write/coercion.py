"""Coerce any Arrow column, or a list of values, to the column of a property.

`from_data` is the authority on what a value means. Whole columns are converted at once where that
gives the same; where it might not, each value goes through the authority by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, NoReturn, Protocol

import pyarrow as pa

from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_column
from omnigraph.types.data_values import blob_cell, from_data, to_python
from omnigraph.write.external_blobs import NO_EXTERNAL_BLOBS, ExternalBlobs
from omnigraph.write.vectorized_coercion import coerce_vectorized

# ----------------------------------------------------------------------
# Cells of text files, where the type of a property decides the meaning of the text.


_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLS = {"true": True, "false": False}


def parse_text_value(type_: PropertyType, text: str) -> Any:  # noqa: ANN401 - a value of any type
    """Return the JSON value a cell means; raise ValueError when it means none of its type."""
    if type_.is_list or type_.dimension is not None:
        return _parse_array(text)
    if type_.spec.integer:
        if _INTEGER.fullmatch(text) is None:
            raise ValueError(f"expected integer number, got '{text[:40]}'")
        return int(text)
    if type_.numeric:
        if _NUMBER.fullmatch(text) is None:
            raise ValueError(f"expected number, got '{text[:40]}'")
        return float(text)
    if type_.scalar is Scalar.BOOL:
        if text.lower() not in _BOOLS:
            raise ValueError(f"expected true or false, got '{text[:40]}'")
        return _BOOLS[text.lower()]
    return text


def _parse_array(text: str) -> Any:  # noqa: ANN401 - whatever stands there
    try:
        return json.loads(text, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a JSON array, got '{text[:40]}'") from error


def reject_constant(word: str) -> NoReturn:
    """Refuse NaN and infinity, which Python reads as JSON numbers."""
    raise ValueError(f"{word} is not a number")


class InvalidValueHandler(Protocol):
    """Called with each value that does not fit."""

    def __call__(self, row: int, value: Any, reason: str) -> None:  # noqa: ANN401 - whatever it was
        """Take note of a value."""


@dataclass(frozen=True, slots=True)
class CoercionRules:
    """How values are read.

    `text` says that every cell is text to be parsed, as in CSV. `forgiving` makes values of the
    wrong type null where null is allowed, unless they are text that is merely malformed.
    """

    text: bool = False
    forgiving: bool = False
    external: ExternalBlobs = NO_EXTERNAL_BLOBS


DEFAULT_RULES = CoercionRules()
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def coerce_column(
    column: pa.Array,
    type_: PropertyType,
    report: InvalidValueHandler,
    rules: CoercionRules = DEFAULT_RULES,
) -> pa.Array:
    """Return a column as a property stores it; a value that does not fit is reported and null."""
    converted = coerce_vectorized(column, type_, text=rules.text)
    if converted is not None:
        return converted
    return coerce_values(column_cells(column, type_), type_, report, rules)


def coerce_values(
    values: Iterable[Any],
    type_: PropertyType,
    report: InvalidValueHandler,
    rules: CoercionRules = DEFAULT_RULES,
) -> pa.Array:
    """Return values as a property stores them; one that does not fit is reported and null."""
    fitting = []
    for row, value in enumerate(values):
        try:
            fitting.append(coerce_value(type_, value, rules))
        except ValueError as error:
            fitting.append(None)
            if not (rules.forgiving and _may_become_null(type_, value)):
                report(row, value, str(error))
    return to_column(fitting, type_)


def _may_become_null(type_: PropertyType, value: Any) -> bool:  # noqa: ANN401 - any value
    if not type_.nullable or type_.is_list or type_.dimension is not None:
        return False
    malformed = type_.scalar in (Scalar.DATE, Scalar.DATE_TIME, Scalar.BLOB)
    return not (malformed and isinstance(value, str))


def coerce_value(type_: PropertyType, value: Any, rules: CoercionRules = DEFAULT_RULES) -> Any:  # noqa: ANN401 - any value
    """Return a value as `to_column` takes it; raise ValueError when it does not fit."""
    if value is None:
        return None
    if isinstance(value, UnreadableCell):
        raise ValueError(value.reason)
    if rules.text and isinstance(value, str):
        value = parse_text_value(type_, value)
    if type_.scalar is Scalar.BLOB:
        return _coerce_blob(value, rules.external)
    return from_data(type_, to_data_value(value, type_))


def to_data_value(value: Any, type_: PropertyType) -> Any:  # noqa: ANN401 - any value
    """Return what other libraries call a number, list or day as ours."""
    value = to_python(value)
    if isinstance(value, list | tuple):
        return [_to_day(to_python(item), type_) for item in value]
    return _to_day(value, type_)


def _to_day(value: Any, type_: PropertyType) -> Any:  # noqa: ANN401 - any value
    """Return a day where a property holds days and there is no time of day."""
    if type_.scalar is Scalar.DATE and isinstance(value, datetime) and value.time() == time.min:
        return value.date()
    return value


def _coerce_blob(value: Any, external: ExternalBlobs) -> bytes | str | None:  # noqa: ANN401 - any value
    cell = blob_cell(value)
    if cell is None:
        return None
    if cell["data"] is None:
        external.check(cell["uri"])
    content: bytes | str = cell["uri"] if cell["data"] is None else cell["data"]
    return content


# --- columns as values -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnreadableCell:
    """Represents a cell that Arrow cannot return."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def column_cells(column: pa.Array, type_: PropertyType) -> list[Any]:
    """Return the cells of a column as the values `from_data` knows."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return column_cells(column.storage, type_)
    if pa.types.is_dictionary(kind):
        return column_cells(column.dictionary_decode(), type_)
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        return [_date_or_timestamp(value, type_) for value in _milliseconds(column)]
    if is_text_type(kind):
        binary = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
        return [_decode_text(value) for value in column.cast(binary).to_pylist()]
    if _is_list(kind) and not _is_plain_type(kind.value_type):
        return [None if not cell.is_valid else column_cells(cell.values, type_) for cell in column]
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException):
        return [_read_cell(column, row) for row in range(len(column))]


def _milliseconds(column: pa.Array) -> list[int | None]:
    numbers = column.view(pa.int64()).to_pylist()
    unit = "ms" if pa.types.is_date64(column.type) else column.type.unit
    return [None if n is None else n * _PER_SECOND["ms"] // _PER_SECOND[unit] for n in numbers]


def _date_or_timestamp(number: int | None, type_: PropertyType) -> date | int | None:
    """Return milliseconds as what a property wants; a day only if there is no time of day."""
    if number is None or type_.scalar is Scalar.DATE_TIME:
        return number
    try:
        instant = from_data(PropertyType(Scalar.DATE_TIME), number)
    except ValueError:
        return number
    naive: datetime = instant.replace(tzinfo=None)
    return naive


def _decode_text(value: bytes | None) -> str | UnreadableCell | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError as error:
        return UnreadableCell(f"text is not UTF-8: {error.reason} at byte {error.start}")


def _read_cell(column: pa.Array, row: int) -> Any:  # noqa: ANN401 - any value
    try:
        return column[row].as_py()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        return UnreadableCell(f"unreadable {column.type}: {error}")


def is_text_type(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    views = (types.is_list_view, types.is_large_list_view)
    return any(is_kind(kind) for is_kind in (*lists, *views))


def _is_plain_type(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
