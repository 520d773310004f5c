"""Arrow types and columns of property types, the form in which values are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from math import isfinite
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.types.data_values import blob_cell, blob_text
from omnigraph.types.property_type import PropertyType
from omnigraph.types.scalar import Scalar
from omnigraph.types.temporal import EPOCH, epoch_days, epoch_milliseconds

BLOB = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
"""A blob on its way to storage: its bytes, or where they are."""


def arrow_type(type_: PropertyType) -> pa.DataType:
    """Return the Arrow type of a property's values; storage has its own for blobs."""
    if type_.scalar is Scalar.BLOB:
        return BLOB
    if type_.dimension is not None:
        return pa.list_(pa.field("item", pa.float32()), type_.dimension)
    scalar = pa.type_for_alias(type_.spec.arrow)
    return pa.list_(pa.field("item", scalar)) if type_.is_list else scalar


# ----------------------------------------------------------------------
# Conversions between lists of values, Arrow columns and JSON
#
# DateTime columns are `date64`, of which pyarrow's own conversions drop the time of day; those here
# keep it.


ArrowColumn: TypeAlias = pa.Array | pa.ChunkedArray

_EPOCH_ENCODINGS: Mapping[Scalar, tuple[pa.DataType, Callable[[Any], int]]] = MappingProxyType(
    {
        Scalar.DATE: (pa.int32(), epoch_days),
        Scalar.DATE_TIME: (pa.int64(), epoch_milliseconds),
    }
)
"""Scalars that are stored as a number of days or milliseconds."""


def to_column(values: Sequence[Any], type_: PropertyType) -> pa.Array:
    """Return a column of values that are ours already, as `from_data` makes them."""
    if type_.scalar is Scalar.BLOB:
        values = [blob_cell(value) for value in values]
    arrow = arrow_type(type_)
    if type_.scalar not in _EPOCH_ENCODINGS:
        return pa.array(values, arrow)
    stored, number = _EPOCH_ENCODINGS[type_.scalar]
    if not type_.is_list:
        numbers = [None if value is None else number(value) for value in values]
        return pa.array(numbers, stored).view(arrow)
    lists = [None if value is None else [number(v) for v in value] for value in values]
    column = pa.array(lists, pa.list_(stored))
    items = column.values.view(arrow.value_type)
    return pa.ListArray.from_arrays(column.offsets, items, type=arrow, mask=column.is_null())


def to_values(column: ArrowColumn, type_: PropertyType) -> list[Any]:
    """Return a column as Python values: `date`, UTC `datetime`, lists, and so on."""
    if type_.scalar is not Scalar.DATE_TIME:
        values: list[Any] = column.to_pylist()
        return values
    numbers = _as_numbers(column)
    if type_.is_list:
        return [None if row is None else [_instant(n) for n in row] for row in numbers]
    return [None if number is None else _instant(number) for number in numbers]


def _as_numbers(column: ArrowColumn) -> list[Any]:
    """Return the milliseconds of a DateTime column, or of a list of them."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    numbers: list[Any] = []
    for chunk in chunks:
        if pa.types.is_list(chunk.type):
            items = iter(chunk.flatten().view(pa.int64()).to_pylist())
            lengths = chunk.value_lengths().to_pylist()
            numbers += [None if n is None else list(islice(items, n)) for n in lengths]
        else:
            numbers += chunk.view(pa.int64()).to_pylist()
    return numbers


def _instant(milliseconds: int) -> datetime | int:
    """Return an instant; one no calendar holds stays a number."""
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return milliseconds


def to_json(column: ArrowColumn, type_: PropertyType) -> list[Any]:
    """Return a column as the JSON values results and exports show."""
    render = _JSON_RENDERERS.get(type_.scalar)
    values = to_values(column, type_)
    if render is None:
        return values
    if type_.is_list or type_.dimension is not None:
        return [None if v is None else [render(item) for item in v] for v in values]
    return [None if value is None else render(value) for value in values]


def _datetime_text(value: datetime | int) -> str | int:
    if isinstance(value, int):
        return value
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z".rjust(24, "0")


def _number(value: float) -> float | str:
    if isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124


def _component(value: float) -> float | None:
    return value if isfinite(value) else None


def _blob(value: Mapping[str, Any] | bytes) -> str:
    if isinstance(value, bytes):
        return blob_text(value)
    data = value["data"]
    return str(value["uri"]) if data is None else blob_text(data)


_JSON_RENDERERS: Mapping[Scalar, Callable[[Any], Any]] = MappingProxyType(
    {
        Scalar.DATE: date.isoformat,
        Scalar.DATE_TIME: _datetime_text,
        Scalar.F32: _number,
        Scalar.F64: _number,
        Scalar.VECTOR: _component,
        Scalar.BLOB: _blob,
    }
)


# ----------------------------------------------------------------------
# Instants in tables for other programs, which take `date64` for days


_TIMESTAMP = pa.timestamp("ms", "UTC")


def to_timestamps(column: pa.Array, type_: PropertyType) -> pa.Array:
    """Return a stored column with instants as timestamps in UTC, also those of lists."""
    if type_.scalar is not Scalar.DATE_TIME:
        return column
    if type_.is_list:
        return column.cast(pa.list_(pa.field("item", _TIMESTAMP)))
    return column.view(pa.int64()).cast(_TIMESTAMP)


def from_timestamps(column: pa.Array, type_: PropertyType) -> pa.Array:
    """Return a column as it is stored, of which instants may be timestamps of any unit."""
    if type_.scalar is not Scalar.DATE_TIME:
        return column
    if not type_.is_list:
        return _stored_instants(column)
    items = _stored_instants(column.flatten())
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    mask = column.is_null()
    return pa.ListArray.from_arrays(offsets, items, type=arrow_type(type_), mask=mask)


def _stored_instants(stamps: pa.Array) -> pa.Array:
    if not pa.types.is_date64(stamps.type):
        stamps = pc.cast(stamps, _TIMESTAMP)
    return stamps.view(pa.int64()).view(pa.date64())


# ----------------------------------------------------------------------
# Compare the values of two columns exactly: null, "" and [] differ, and so do 0.0 and -0.0.


Mask = npt.NDArray[np.bool_]


def same_values(one: pa.Array | pa.ChunkedArray, other: pa.Array | pa.ChunkedArray) -> Mask:
    """Return row by row whether two columns of one type hold the same."""
    left, right = _combine_chunks(one), _combine_chunks(other)
    missing, absent = _to_mask(left.is_null()), _to_mask(right.is_null())
    same = missing & absent
    both = np.flatnonzero(~missing & ~absent)
    if len(both):
        rows = pa.array(both)
        same[both] = _same_non_null(left.take(rows), right.take(rows))
    return same


def _same_non_null(left: pa.Array, right: pa.Array) -> Mask:
    """Compare columns without nulls."""
    type_ = left.type
    if pa.types.is_struct(type_):
        same = np.ones(len(left), np.bool_)
        for number in range(type_.num_fields):
            same &= same_values(pc.struct_field(left, number), pc.struct_field(right, number))
        return same
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return _same_lists(left, right)
    if pa.types.is_floating(type_):
        bits = pa.int32() if type_ == pa.float32() else pa.int64()
        left, right = left.view(bits), right.view(bits)
    return _to_mask(pc.equal(left, right))


def _same_lists(left: pa.Array, right: pa.Array) -> Mask:
    lengths = pc.list_value_length(left)
    same = _to_mask(pc.equal(lengths, pc.list_value_length(right)))
    rows = pa.array(np.flatnonzero(same))
    one, other = left.take(rows), right.take(rows)
    items = same_values(one.flatten(), other.flatten())
    owners = np.repeat(np.flatnonzero(same), np.asarray(lengths.take(rows), np.int64))
    same[owners[~items]] = False
    return same


def _combine_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _to_mask(flags: Any) -> Mask:
    return np.array(flags.to_numpy(zero_copy_only=False), np.bool_)
