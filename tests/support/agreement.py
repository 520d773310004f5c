"""Tells where the answer of an engine differs from the reference.

Rows whose sort keys are equal may stand in any order, all of them when there is no `order`; where
`limit` cuts such rows, any of them may be kept. Sums and scores may differ by their slack, and rows
whose order depends on one may change places when the two are that close.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isclose, isinf
from typing import Any

from tests.support.reference import Answer, Inexact

Rows = Sequence[Mapping[str, Any]]


def disagreement(expected: Answer, columns: Sequence[str], rows: Rows) -> str | None:
    """Return what is wrong about columns and rows, or None."""
    if list(columns) != list(expected.columns):
        return f"columns {list(columns)}, not {list(expected.columns)}"
    if len(rows) != len(expected.rows):
        return _reported(f"{len(rows)} rows, not {len(expected.rows)}", expected, rows)
    start = 0
    for group in groups(expected):
        first, last = max(start, expected.offset), min(start + len(group), _end(expected))
        found = rows[first - expected.offset : max(first, last) - expected.offset]
        start += len(group)
        if not _holds(group, found):
            return _reported("other rows", expected, rows)
    return None


def _end(answer: Answer) -> int:
    return answer.offset + len(answer.rows)


def groups(answer: Answer) -> list[list[Mapping[str, Any]]]:
    """Return rows in order, together those that may change places."""
    found: list[list[Mapping[str, Any]]] = []
    last: tuple[Any, ...] | None = None
    for row, key in zip(answer.complete, answer.keys, strict=True):
        if last is None or not _tied(last, key):
            found.append([])
        found[-1].append(row)
        last = key
    return found


def _tied(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    for a, b in zip(one, other, strict=True):
        if isinstance(a, Inexact) and isinstance(b, Inexact):
            if abs(a - b) > a.slack + b.slack:
                return False
            if a != b or a.noisy:
                return True
        elif a != b:
            return False
    return True


def _holds(group: Rows, found: Rows) -> bool:
    """Return whether a group has all the rows found, each as often."""
    inexact = {name for row in group for name, value in row.items() if isinstance(value, Inexact)}
    left: dict[str, list[Mapping[str, Any]]] = {}
    for row in group:
        left.setdefault(_exact(row, inexact), []).append(row)
    for row in found:
        alike = left.get(_exact(row, inexact), [])
        match = next((place for place, other in enumerate(alike) if same_row(other, row)), None)
        if match is None:
            return False
        del alike[match]
    return True


def _exact(row: Mapping[str, Any], inexact: set[str]) -> str:
    return canonical({name: value for name, value in row.items() if name not in inexact})


def same_row(expected: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether two rows are equal in every column, numbers by their JSON form."""
    return list(expected) == list(row) and all(
        same_value(value, row[name]) for name, value in expected.items()
    )


def same_value(expected: Any, value: Any) -> bool:
    """Return whether two JSON values are the same; a sum or score may differ by its slack."""
    if isinstance(expected, Inexact):
        if isinstance(value, str) or isinf(expected.slack):
            return isinstance(value, str | float)
        return isinstance(value, float) and isclose(
            expected, value, rel_tol=1e-12, abs_tol=expected.slack
        )
    return canonical(expected) == canonical(value)


def canonical(value: Any) -> str:
    """Return the JSON text of a value; zero has no sign."""
    return json.dumps(_unsigned(value), ensure_ascii=False)


def _unsigned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _unsigned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_unsigned(item) for item in value]
    return 0.0 if isinstance(value, float) and value == 0 else value


def _reported(what: str, expected: Answer, rows: Rows) -> str:
    wanted = [canonical(row) for row in expected.rows]
    given = [canonical(row) for row in rows]
    if not expected.ordered:
        wanted, given = sorted(wanted), sorted(given)
    cut = "" if len(expected.complete) == len(wanted) else f" of {len(expected.complete)}"
    return "\n".join(
        [f"{what}; expected{cut}:", *wanted[:20], "given:", *given[:20]],
    )
