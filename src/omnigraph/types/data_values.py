"""Convert values of data files; they have more forms of dates than queries.

A query parameter may write a large integer as text, because JavaScript has to; data may not. Data
may write a Date as days and a DateTime as milliseconds since 1970, because columns do.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from omnigraph.types.property_type import PropertyType
from omnigraph.types.scalar import SCALARS, Scalar
from omnigraph.types.temporal import EPOCH, EPOCH_DAY

_DayT = TypeVar("_DayT", date, datetime)


def from_data(type_: PropertyType, value: Any) -> Any:
    """Return the value a JSON value of a data file means, or raise ValueError saying why not."""
    if value is None:
        return None
    return type_.convert(value, _PARSERS.get(type_.scalar, type_.spec.from_json))


_PYTHON_TYPES = frozenset((type(None), bool, int, float, str, bytes))


def to_python(value: Any) -> Any:
    """Return a decimal or a value of NumPy or pandas as a plain one; a missing instant is None."""
    if type(value) in _PYTHON_TYPES:
        return value
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        if getattr(value.dtype, "kind", None) == "M":
            # NumPy lists instants of nanoseconds as numbers.
            value = value.astype("datetime64[us]")
        return value.tolist()
    if isinstance(value, Decimal):
        is_whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_whole else float(value)
    if isinstance(value, datetime) and value != value:  # noqa: PLR0124 - only NaT differs from itself
        return None
    return value


def _parse_integer(scalar: Scalar, value: Any) -> int:
    if isinstance(value, str):
        raise ValueError(f"expected integer number, got string '{value[:40]}'")
    number: int = SCALARS[scalar].from_json(value)
    return number


def _parse_date(value: Any) -> date:
    if isinstance(value, int) and not isinstance(value, bool):
        return _add_to_epoch(EPOCH_DAY, value, "days")
    day: date = SCALARS[Scalar.DATE].from_json(value)
    return day


def _parse_datetime(value: Any) -> datetime:
    if isinstance(value, int) and not isinstance(value, bool):
        return _add_to_epoch(EPOCH, value, "milliseconds")
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    instant: datetime = SCALARS[Scalar.DATE_TIME].from_json(value)
    return instant


def _add_to_epoch(epoch: _DayT, amount: int, unit: str) -> _DayT:
    try:
        return epoch + timedelta(**{unit: amount})
    except OverflowError as error:
        raise ValueError(f"{amount} {unit} since 1970 is out of range") from error


_PARSERS: Mapping[Scalar, Callable[[Any], Any]] = MappingProxyType(
    {
        **{
            scalar: partial(_parse_integer, scalar)
            for scalar, spec in SCALARS.items()
            if spec.integer
        },
        Scalar.DATE: _parse_date,
        Scalar.DATE_TIME: _parse_datetime,
    }
)


# ----------------------------------------------------------------------
# Blobs in data: `base64:…` is bytes, other text is a URI


BASE64_PREFIX = "base64:"
MAX_BLOB_URI_BYTES = 65_536


def blob_cell(value: str | bytes | None) -> dict[str, Any] | None:
    """Return the bytes or the URI a value means; raise ValueError when it means neither."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return {"data": value, "uri": None}
    if not isinstance(value, str):
        raise ValueError("expected `base64:…` text or a URI")
    if value.startswith(BASE64_PREFIX):
        try:
            data = base64.b64decode(value[len(BASE64_PREFIX) :], validate=True)
        except binascii.Error as error:
            raise ValueError(f"invalid base64: {error}") from error
        return {"data": data, "uri": None}
    if len(value.encode()) > MAX_BLOB_URI_BYTES:
        raise ValueError(f"a blob URI is at most {MAX_BLOB_URI_BYTES} bytes")
    if "://" not in value:
        raise ValueError(f"expected `base64:…` or an absolute URI, got '{value[:40]}'")
    return {"data": None, "uri": value}


def blob_text(data: bytes) -> str:
    """Write bytes as data files do."""
    return BASE64_PREFIX + base64.b64encode(data).decode()
