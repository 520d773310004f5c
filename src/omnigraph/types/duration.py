"""Durations in text, as `90s`, `15m`, `12h`, `30d` or `2w`."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_duration(text: str) -> timedelta:
    """Parse a duration; a number alone is in seconds.

    >>> parse_duration("12h")
    datetime.timedelta(seconds=43200)
    """
    match = re.fullmatch(r"(\d{1,9})\s*([smhdw]?)", text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a duration; write e.g. 90s, 15m, 12h, 30d or 2w")
    try:
        return timedelta(**{_UNITS[match[2] or "s"]: int(match[1])})
    except OverflowError as error:
        raise ValueError(f"'{text}' is too long a duration") from error


def format_duration(duration: timedelta) -> str:
    """Return a duration in the largest unit that divides it.

    >>> format_duration(timedelta(hours=36))
    '36h'
    """
    for letter in ("d", "h", "m"):
        unit = timedelta(**{_UNITS[letter]: 1})
        if duration and duration % unit == timedelta(0):
            return f"{duration // unit}{letter}"
    return f"{duration.total_seconds():g}s"
