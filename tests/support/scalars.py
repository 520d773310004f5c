"""Odd values of every scalar type a row can be found by, and tables of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from struct import pack, unpack
from typing import Any

from omnigraph.types import PropertyType, Scalar


def f32(value: float) -> float:
    """Return the 32-bit float nearest to a number."""
    number: float = unpack("<f", pack("<f", value))[0]
    return number


def instant(text: str) -> datetime:
    """Return an instant written as ISO text."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ODD: dict[Scalar, tuple[Any, ...]] = {
    Scalar.STRING: (
        "",
        "a",
        "it's",
        "''",
        'say "x"',
        "`tick`",
        "back\\slash",
        "\\'",
        "100%",
        "a_b",
        "line\nbreak",
        "nul\0byte",
        "-- no comment",
        "ünïcödé",
        "e\N{COMBINING ACUTE ACCENT}",
        "\N{LATIN SMALL LETTER E WITH ACUTE}",
        "漢字",
        "\N{GRINNING FACE}",
        "$1 ? {}",
    ),
    Scalar.BOOL: (True, False),
    Scalar.I32: (-(2**31), -1, 0, 1, 2**31 - 1),
    Scalar.I64: (-(2**63), -(2**63) + 1, -(2**53) - 1, -1, 0, 2**53, 2**53 + 1, 2**63 - 1),
    Scalar.U32: (0, 1, 2**32 - 1),
    Scalar.U64: (0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1),
    Scalar.F32: (
        f32(-3.4028234e38),
        -1.5,
        -0.0,
        0.0,
        f32(1e-45),
        f32(0.1),
        f32(0.3),
        1.0,
        16777216.0,
        f32(3.4028234e38),
    ),
    Scalar.F64: (-1.7976931348623157e308, -0.1, -0.0, 0.0, 5e-324, 0.1, 0.3, 2.0**53, 1e300),
    Scalar.DATE: (date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)),
    Scalar.DATE_TIME: (
        instant("0001-01-01T00:00:00"),
        instant("1969-12-31T23:59:59.999"),
        instant("1970-01-01T00:00:00"),
        instant("2024-05-01T12:30:00.123"),
        instant("2024-05-01T12:30:00.124"),
        instant("9999-12-31T23:59:59.999"),
    ),
}
"""Values by scalar, each one stored exactly."""

SCALARS = [PropertyType(scalar, nullable=True) for scalar in ODD]
