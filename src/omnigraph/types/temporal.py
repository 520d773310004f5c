"""Parse Date and DateTime text, the same way for literals, parameters and data.

A Date is a `datetime.date`; a DateTime is a UTC `datetime.datetime` cut to milliseconds,
which is what the storage keeps.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_DATETIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
    r"(?: ?([Zz]|[+-]\d{2}(?::?\d{2})?))?)?",
    re.ASCII,
)
EPOCH_DAY = date(1970, 1, 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def parse_date(text: str) -> date:
    """Read `YYYY-MM-DD`; raise ValueError for anything else."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid Date literal '{text[:40]}': expected YYYY-MM-DD")
    try:
        return date(*(int(part) for part in match.groups()))
    except ValueError as error:
        raise ValueError(f"invalid Date literal '{text}': {error}") from error


def parse_datetime(text: str) -> datetime:
    """Read RFC 3339 / ISO text with optional offset, or a bare date (midnight UTC)."""
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ValueError(
            f"invalid DateTime literal '{text[:40]}': expected e.g. 2024-05-01T12:30:00Z"
        )
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    milliseconds = int((fraction or "0").ljust(3, "0")[:3])
    try:
        naive = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0))
        local = naive + timedelta(seconds=_second(second), milliseconds=milliseconds)
        return local.replace(tzinfo=_zone(offset)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"invalid DateTime literal '{text}': {error}") from error


def to_milliseconds(value: datetime) -> datetime:
    """Return `value` in UTC without what the storage cannot keep; a naive time is UTC already."""
    try:
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"DateTime {value} is out of range in UTC") from error
    return aware.replace(microsecond=aware.microsecond // 1000 * 1000)


def epoch_days(value: date) -> int:
    """Return days since 1970-01-01, the stored form of a Date."""
    return (value - EPOCH_DAY).days


def epoch_milliseconds(value: datetime) -> int:
    """Return milliseconds since 1970-01-01T00:00Z, the stored form of a DateTime."""
    return (value - EPOCH) // _MILLISECOND


def _second(text: str | None) -> int:
    second = int(text or 0)
    if second > 59:
        raise ValueError("second must be in 0..59")
    return second


def _zone(offset: str | None) -> timezone:
    if offset is None or offset in "Zz":
        return UTC
    digits = offset[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError("an offset is at most 23:59")
    delta = timedelta(hours=hours, minutes=minutes)
    return timezone(-delta if offset[0] == "-" else delta)
