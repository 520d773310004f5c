"""This module turns lists of our values into Arrow columns, and columns into values and JSON.

DateTime columns are `date64`, of which pyarrow's own conversions drop the time of day; those here
keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from math import isfinite
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.types.arrow import arrow_type
from omnigraph.types.blob import blob_cell, blob_text
from omnigraph.types.property_type import PropertyType
from omnigraph.types.scalar import Scalar
from omnigraph.types.temporal import epoch_days, epoch_milliseconds

Column: TypeAlias = pa.Array | pa.ChunkedArray

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERED: Mapping[Scalar, tuple[pa.DataType, Callable[[Any], int]]] = MappingProxyType(
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
    wanted = arrow_type(type_)
    if type_.scalar not in _NUMBERED:
        return pa.array(values, wanted)
    stored, number = _NUMBERED[type_.scalar]
    if not type_.is_list:
        numbers = [None if value is None else number(value) for value in values]
        return pa.array(numbers, stored).view(wanted)
    lists = [None if value is None else [number(v) for v in value] for value in values]
    made = pa.array(lists, pa.list_(stored))
    items = made.values.view(wanted.value_type)
    return pa.ListArray.from_arrays(made.offsets, items, type=wanted, mask=made.is_null())


def to_values(column: Column, type_: PropertyType) -> list[Any]:
    """Return a column as Python values: `date`, UTC `datetime`, lists, and so on."""
    if type_.scalar is not Scalar.DATE_TIME:
        values: list[Any] = column.to_pylist()
        return values
    numbers = _as_numbers(column)
    if type_.is_list:
        return [None if row is None else [_instant(n) for n in row] for row in numbers]
    return [None if number is None else _instant(number) for number in numbers]


def _as_numbers(column: Column) -> list[Any]:
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
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return milliseconds


def to_json(column: Column, type_: PropertyType) -> list[Any]:
    """Return a column as the JSON values results and exports show."""
    render = _RENDERERS.get(type_.scalar)
    values = to_values(column, type_)
    if render is None:
        return values
    if type_.is_list or type_.dimension is not None:
        return [None if v is None else [render(item) for item in v] for v in values]
    return [None if value is None else render(value) for value in values]


def _date_text(value: date) -> str:
    return value.isoformat()


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


_RENDERERS: Mapping[Scalar, Callable[[Any], Any]] = MappingProxyType(
    {
        Scalar.DATE: _date_text,
        Scalar.DATE_TIME: _datetime_text,
        Scalar.F32: _number,
        Scalar.F64: _number,
        Scalar.VECTOR: _component,
        Scalar.BLOB: _blob,
    }
)
