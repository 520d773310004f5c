"""Values, times and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from omnigraph.notebook.elements import Html, cut, element, join, plural
from omnigraph.notebook.style import note

MAX_ROWS = 20
"""Rows of a table that are shown."""
MAX_COLUMNS = 20
_MAX_VALUE = 200
_FEW_NUMBERS = 8


def value(one: Any) -> Html:  # noqa: ANN401 - any JSON value
    """Return a value of a property."""
    match one:
        case Html():
            return one
        case None:
            return element("span", "null", class_="none")
        case "":
            return element("span", "empty text", class_="none")
        case str():
            return element("bdi", cut(one, _MAX_VALUE))
        case bool():
            return join("true" if one else "false")
        case datetime():
            return join(f"{one:%Y-%m-%d %H:%M:%S %Z}")
        case [int() | float(), *_] if len(one) > _FEW_NUMBERS:
            first = ", ".join(str(number) for number in one[:4])
            return join(f"[{first}, … {plural(len(one), 'number')}]")
        case Mapping() | list() | tuple():
            text = json.dumps(one, ensure_ascii=False, default=str)
            return element("code", cut(text, _MAX_VALUE))
    return join(str(one))


def is_number(one: object) -> bool:
    """Return whether a value stands on the right of its column."""
    return isinstance(one, int | float) and not isinstance(one, bool)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], total: int | None = None
) -> Html:
    """Return the first rows and columns of a table; `total` is the number of all rows."""
    rows = list(rows)
    total = len(rows) if total is None else total
    shown, names = rows[:MAX_ROWS], columns[:MAX_COLUMNS]
    numbers = [any(is_number(row[place]) for row in shown) for place in range(len(names))]
    classes = ["num" if number else None for number in numbers]
    titles = [element("th", c, class_=k, scope="col") for c, k in zip(names, classes, strict=True)]
    body = [
        element(
            "tr", *(element("td", value(v), class_=k) for v, k in zip(row, classes, strict=False))
        )
        for row in shown
    ]
    drawn = element("table", element("thead", element("tr", *titles)), element("tbody", *body))
    hidden_columns = len(columns) - len(names)
    rest = [
        f"{total - len(shown):,} more rows" if total > len(shown) + 1 else None,
        "1 more row" if total == len(shown) + 1 else None,
        plural(hidden_columns, "more column") if hidden_columns else None,
    ]
    more = " and ".join(part for part in rest if part is not None)
    return join(element("div", drawn, class_="scroll"), note(f"{more} not shown") if more else None)


def facts(pairs: Mapping[str, object]) -> Html:
    """Return names with their values; None is left out."""
    rows = [
        element("tr", element("th", name, scope="row"), element("td", value(one)))
        for name, one in pairs.items()
        if one is not None
    ]
    return element("div", element("table", element("tbody", *rows)), class_="scroll")


def moment(micros: int | None) -> str | None:
    """Return microseconds since 1970 as a time in UTC.

    >>> moment(1_700_000_000_000_000)
    '2023-11-14 22:13:20 UTC'
    """
    if micros is None:
        return None
    at = datetime.fromtimestamp(micros / 1_000_000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def commit_id(id_: str | None) -> Html | None:
    """Return the end of a commit ID, which differs most; the whole when pointed at."""
    if id_ is None:
        return None
    text = id_ if len(id_) <= 12 else f"…{id_[-8:]}"
    return element("code", text, title=id_)
