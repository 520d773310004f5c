"""The registry of scalar types: one row has all facts of a type.

Parsers, type checker, parameter coercion, ids, engines and docs read the row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import Any

from omnigraph.types.temporal import (
    epoch_days,
    epoch_milliseconds,
    parse_date,
    parse_datetime,
    to_milliseconds,
)


class Scalar(StrEnum):
    """The scalar types; the value is the spelling in `.pg` and `.gq`."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE_TIME = "DateTime"
    DATE = "Date"
    VECTOR = "Vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSpec:
    """One scalar type.

    `arrow` is the pyarrow type alias of the stored value, `spark` the name of the Spark type.
    `wire` is the word clients see in result and parameter descriptors. `from_json` turns a decoded
    JSON value (or the natural Python value) into ours or raises ValueError; `key_text` renders a
    stored value as the canonical text from which ids and unique tuples are built, None where no
    key is possible.
    """

    scalar: Scalar
    arrow: str
    spark: str
    wire: str
    about: str
    from_json: Callable[[Any], Any]
    key_text: Callable[[Any], str] | None = None
    numeric: bool = False
    orderable: bool = True
    bounds: tuple[int, int] | None = None

    @property
    def integer(self) -> bool:
        """Whether values are whole numbers."""
        return self.bounds is not None


_MAX_NUMBER_TEXT = 40
_MAX_SHOWN_BITS = 128
_F32_CONTEXTS = tuple(
    Context(prec=digits, rounding=rounding)
    for digits in range(1, 10)
    for rounding in (ROUND_HALF_EVEN, ROUND_CEILING, ROUND_FLOOR)
)


def json_kind(value: object) -> str:
    """Name the JSON kind of a decoded value, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
        case _:
            return type(value).__name__


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected string, got {json_kind(value)}")
    return value


def _unicode(value: Any) -> str:
    text = _string(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("text with an unpaired surrogate is not valid Unicode") from error
    return text


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected boolean, got {json_kind(value)}")
    return value


def _integer(name: str, low: int, high: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        if isinstance(value, str):
            digits = value[1:] if value[:1] in ("+", "-") else value
            if not (digits.isascii() and digits.isdigit() and len(value) <= _MAX_NUMBER_TEXT):
                raise ValueError(f"expected integer number, got string '{value[:40]}'")
            number = int(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            number = value
        else:
            raise ValueError(f"expected integer number, got {json_kind(value)}")
        if not low <= number <= high:
            raise ValueError(f"value {_number_for_message(number)} exceeds {name} ({low}..{high})")
        return number

    return convert


def _float(name: str, width: str) -> Callable[[Any], float]:
    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"expected number, got {json_kind(value)}")
        try:
            number: float = struct.unpack(width, struct.pack(width, float(value)))[0]
        except OverflowError as error:
            raise ValueError(f"value {_number_for_message(value)} exceeds {name}") from error
        if not isfinite(number):
            raise ValueError(f"value {value} is not a finite {name}")
        return number

    return convert


def _number_for_message(number: float) -> str:
    """Write a number for a message; Python refuses to write very large integers at all."""
    if isinstance(number, int) and number.bit_length() > _MAX_SHOWN_BITS:
        return f"of {number.bit_length()} bits"
    return str(number)


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    return parse_date(_string(value))


def _datetime(value: Any) -> datetime:
    if isinstance(value, datetime):
        return to_milliseconds(value)
    return parse_datetime(_string(value))


def _vector(value: Any) -> list[float]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected array of numbers, got {json_kind(value)}")
    convert = _float("F32", "<f")
    return [convert(item) for item in value]


def _decimal_text(number: str) -> str:
    """Write a decimal without exponent and without needless zeros, as `1`, `0.1`, `-2.5`."""
    text = format(Decimal(number), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _float_text(value: float, shortest: str) -> str:
    if not isfinite(value):
        raise ValueError(f"non-finite value {value} cannot identify an entity")
    return "0" if value == 0 else _decimal_text(shortest)


def _f64_text(value: float) -> str:
    return _float_text(value, repr(value))


def _f32_text(value: float) -> str:
    """Render with the fewest digits that read back as the same 32-bit float."""
    stored = struct.pack("<f", value)
    # The nearest decimal is not always one: below a power of two, floats are closer together.
    texts = (str(context.create_decimal_from_float(value)) for context in _F32_CONTEXTS)
    return _float_text(value, next((t for t in texts if _packs_to(t, stored)), repr(value)))


def _packs_to(text: str, stored: bytes) -> bool:
    try:
        return struct.pack("<f", float(text)) == stored
    except OverflowError:
        return False


def _integer_spec(scalar: Scalar, spark: str, wire: str, *, bits: int, signed: bool) -> ScalarSpec:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return ScalarSpec(
        scalar=scalar,
        arrow=f"{'' if signed else 'u'}int{bits}",
        spark=spark,
        wire=wire,
        about=f"{'' if signed else 'un'}signed {bits}-bit integer",
        from_json=_integer(str(scalar), low, high),
        key_text=str,
        numeric=True,
        bounds=(low, high),
    )


def _float_spec(
    scalar: Scalar, name: str, width: str, key_text: Callable[[float], str]
) -> ScalarSpec:
    """Return the row of a float; Arrow and Spark have the same name for it."""
    return ScalarSpec(
        scalar=scalar,
        arrow=name,
        spark=name,
        wire="float",
        about=f"{8 * struct.calcsize(width)}-bit float, finite",
        from_json=_float(str(scalar), width),
        key_text=key_text,
        numeric=True,
    )


_ROWS = (
    ScalarSpec(
        scalar=Scalar.STRING,
        arrow="string",
        spark="string",
        wire="string",
        about="UTF-8 text",
        from_json=_unicode,
        key_text=str,
    ),
    ScalarSpec(
        scalar=Scalar.BLOB,
        arrow="large_binary",
        spark="string",
        wire="blob",
        about="bytes kept beside the entity; written as `base64:…` or a URI, never a read value",
        from_json=_unicode,
        orderable=False,
    ),
    ScalarSpec(
        scalar=Scalar.BOOL,
        arrow="bool",
        spark="boolean",
        wire="bool",
        about="`true` or `false`",
        from_json=_bool,
        key_text=lambda value: "true" if value else "false",
    ),
    _integer_spec(Scalar.I32, "int", "int", bits=32, signed=True),
    _integer_spec(Scalar.I64, "bigint", "bigint", bits=64, signed=True),
    # Spark has no unsigned numbers: theirs is the next type that holds them all.
    _integer_spec(Scalar.U32, "bigint", "int", bits=32, signed=False),
    _integer_spec(Scalar.U64, "decimal(20,0)", "bigint", bits=64, signed=False),
    _float_spec(Scalar.F32, "float", "<f", _f32_text),
    _float_spec(Scalar.F64, "double", "<d", _f64_text),
    ScalarSpec(
        scalar=Scalar.DATE_TIME,
        arrow="date64",
        spark="timestamp",
        wire="datetime",
        about="instant in UTC, milliseconds; text is RFC 3339 or ISO, offset optional",
        from_json=_datetime,
        key_text=lambda value: str(epoch_milliseconds(value)),
    ),
    ScalarSpec(
        scalar=Scalar.DATE,
        arrow="date32",
        spark="date",
        wire="date",
        about="calendar day; text is `YYYY-MM-DD`",
        from_json=_date,
        key_text=lambda value: str(epoch_days(value)),
    ),
    ScalarSpec(
        scalar=Scalar.VECTOR,
        arrow="fixed_size_list<float>",
        spark="array<float>",
        wire="vector",
        about="`Vector(n)`: exactly n 32-bit floats, for similarity search",
        from_json=_vector,
        orderable=False,
    ),
)

SCALARS: Mapping[Scalar, ScalarSpec] = MappingProxyType({row.scalar: row for row in _ROWS})

BASE_NAMES: tuple[str, ...] = tuple(str(s) for s in SCALARS if s is not Scalar.VECTOR)
"""Spellings of the types that need no argument, in the order the grammar lists them."""
