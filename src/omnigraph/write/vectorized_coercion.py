"""Convert whole columns at once, wherever the result equals that of `from_data`.

Every function returns None when it is not sure of each single value; nothing is reported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import BLOB, arrow_type
from omnigraph.types.temporal import epoch_days, epoch_milliseconds

_DAYS = (epoch_days(date.min), epoch_days(date.max))
_MILLISECONDS = (
    epoch_milliseconds(datetime.min.replace(tzinfo=UTC)),
    epoch_milliseconds(datetime.max.replace(tzinfo=UTC)),
)
_DAY = 86_400_000
_PER_UNIT = {"s": 1_000, "ms": 1, "us": 1_000, "ns": 1_000_000}
_DATE_TEXT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_INTEGER_TEXT = r"^-?[0-9]{1,20}$"
_NUMBER_TEXT = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_INSTANT_TEXT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?%s$"


def coerce_vectorized(
    column: pa.Array, type_: PropertyType, *, text: bool = False
) -> pa.Array | None:
    """Return a column as a property stores it, or None when values have to be looked at."""
    if column.null_count == len(column):
        return pa.nulls(len(column), arrow_type(type_))
    column = _normalize_layout(column)
    try:
        if type_.is_list or type_.dimension is not None:
            return None if _is_text(column) else _list(column, type_)
        convert = _TEXT_CONVERTERS.get(type_.scalar) if text and _is_text(column) else None
        return (convert or _CONVERTERS[type_.scalar])(column, arrow_type(type_))
    except pa.ArrowException:
        return None


def _normalize_layout(column: pa.Array) -> pa.Array:
    """Return the same values without dictionary, view or extension, text with short offsets."""
    kind, types = column.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _normalize_layout(column.storage)
    if types.is_dictionary(kind):
        return _normalize_layout(column.dictionary_decode())
    if types.is_string_view(kind) or types.is_large_string(kind):
        return column.cast(pa.string())
    return column


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type))


def _text(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    if not _is_text(column):
        return None
    # Arrow itself does not look whether the text of a file is UTF-8.
    column.validate(full=True)
    return column


def _bool(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    return column if pa.types.is_boolean(column.type) else None


def _integer(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    if pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        return pc.cast(column, type_)
    return None


def _float(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    types = pa.types
    if not (types.is_integer(column.type) or types.is_floating(column.type)):
        return None
    # By way of the wide float, because that is how one value is rounded.
    wide = pc.cast(column, pa.float64(), safe=False)
    narrow = pc.cast(wide, type_, safe=False)
    return narrow if _all_true(pc.is_finite(narrow)) else None


def _date(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    types, kind = pa.types, column.type
    if types.is_date32(kind) or types.is_integer(kind):
        days = column.view(pa.int32()) if types.is_date32(kind) else pc.cast(column, pa.int64())
    elif types.is_timestamp(kind) or types.is_date64(kind):
        numbers = _as_milliseconds(column)
        days = _floor_divide(numbers, _DAY)
        if not _all_true(pc.equal(pc.multiply(days, _DAY), numbers)):
            return None
    elif _is_text(column) and _all_true(pc.match_substring_regex(column, _DATE_TEXT)):
        days = pc.cast(column, type_).view(pa.int32())
    else:
        return None
    return pc.cast(days, pa.int32()).view(type_) if _within(days, _DAYS) else None


def _instant(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    types, kind = pa.types, column.type
    if types.is_timestamp(kind) or types.is_date64(kind):
        numbers = _as_milliseconds(column)
    elif types.is_integer(kind):
        numbers = pc.cast(column, pa.int64())
    elif types.is_date32(kind):
        numbers = pc.multiply_checked(pc.cast(column.view(pa.int32()), pa.int64()), _DAY)
    elif _is_text(column):
        read = _instant_text(column)
        if read is None:
            return None
        numbers = _as_milliseconds(read)
    else:
        return None
    return numbers.view(type_) if _within(numbers, _MILLISECONDS) else None


def _instant_text(column: pa.Array) -> pa.Array | None:
    """Read instants when all are written in the same simple way."""
    if _all_true(pc.match_substring_regex(column, _INSTANT_TEXT % "Z")):
        return pc.cast(column, pa.timestamp("us", "UTC"))
    if _all_true(pc.match_substring_regex(column, _INSTANT_TEXT % "")):
        return pc.cast(column, pa.timestamp("us"))
    return None


def _blob(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    types = pa.types
    kinds = (types.is_binary, types.is_large_binary, types.is_binary_view)
    if not any(is_kind(column.type) for is_kind in kinds):
        return None
    parts = [column.cast(pa.large_binary()), pa.nulls(len(column), pa.string())]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(BLOB), mask=mask)


# --- text files --------------------------------------------------------------------------------


def _integer_text(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    if not _all_true(pc.match_substring_regex(column, _INTEGER_TEXT)):
        return None
    return pc.cast(column, type_)


def _float_text(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    if not _all_true(pc.match_substring_regex(column, _NUMBER_TEXT)):
        return None
    return _float(pc.cast(column, pa.float64()), type_)


def _bool_text(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    words = pa.array(["true", "false", None])
    if not _all_true(pc.is_in(column, value_set=words)):
        return None
    return pc.equal(column, "true")


# --- lists -------------------------------------------------------------------------------------


def _list(column: pa.Array, type_: PropertyType) -> pa.Array | None:
    types, kind = pa.types, column.type
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if not any(is_kind(kind) for is_kind in kinds):
        return None
    items = column.flatten()
    if items.null_count:
        return None
    scalar = Scalar.F32 if type_.dimension is not None else type_.scalar
    converted = coerce_vectorized(items, PropertyType(scalar))
    if converted is None:
        return None
    lengths = pc.list_value_length(column)
    if type_.dimension is not None:
        return _vectors(converted, lengths, type_.dimension, arrow_type(type_))
    sizes = np.asarray(pc.fill_null(lengths, 0))
    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    mask = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), converted, type=arrow_type(type_), mask=mask)


def _vectors(
    items: pa.Array, lengths: pa.Array, dimension: int, type_: pa.DataType
) -> pa.Array | None:
    if not _all_true(pc.equal(lengths, dimension)):
        return None
    if not lengths.null_count:
        return pa.FixedSizeListArray.from_arrays(items, type=type_)
    rows = np.zeros((len(lengths), dimension), np.float32)
    rows[np.asarray(lengths.is_valid())] = np.asarray(items).reshape(-1, dimension)
    filled = pa.array(rows.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(filled, type=type_, mask=lengths.is_null())


# --- shared ------------------------------------------------------------------------------------


def _as_milliseconds(column: pa.Array) -> pa.Array:
    """Return a column of instants as milliseconds since 1970, cut like single values are."""
    if pa.types.is_date64(column.type):
        return column.view(pa.int64())
    numbers, unit = column.view(pa.int64()), column.type.unit
    if unit == "s":
        return pc.multiply_checked(numbers, _PER_UNIT[unit])
    return _floor_divide(numbers, _PER_UNIT[unit])


def _floor_divide(numbers: pa.Array, by: int) -> pa.Array:
    if by == 1:
        return numbers
    divided = np.asarray(pc.fill_null(numbers, 0)) // by
    mask = np.asarray(numbers.is_null()) if numbers.null_count else None
    return pa.array(divided, mask=mask)


def _within(numbers: pa.Array, bounds: tuple[int, int]) -> bool:
    extremes = pc.min_max(numbers)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    return bool(bounds[0] <= low and high <= bounds[1])


def _all_true(mask: pa.Array) -> bool:
    """Return whether a mask is true wherever it is not null."""
    return pc.all(mask).as_py() is not False


_CONVERTERS: Mapping[Scalar, Callable[[pa.Array, pa.DataType], pa.Array | None]] = MappingProxyType(
    {
        Scalar.STRING: _text,
        Scalar.BLOB: _blob,
        Scalar.BOOL: _bool,
        **dict.fromkeys((Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64), _integer),
        Scalar.F32: _float,
        Scalar.F64: _float,
        Scalar.DATE: _date,
        Scalar.DATE_TIME: _instant,
    }
)

_TEXT_CONVERTERS: Mapping[Scalar, Callable[[pa.Array, pa.DataType], pa.Array | None]] = (
    MappingProxyType(
        {
            Scalar.BOOL: _bool_text,
            **dict.fromkeys((Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64), _integer_text),
            Scalar.F32: _float_text,
            Scalar.F64: _float_text,
        }
    )
)
