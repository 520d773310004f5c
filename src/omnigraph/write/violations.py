"""Violations of a change, collected, and the error they raise.

All are counted, the first hundred are kept: a million bad lines are one report, not a million.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.errors import Category, OmniError

MAX_LISTED = 100
_SUMMARIZED = 3
_MAX_VALUE_CHARS = 200


class ViolationRule(StrEnum):
    """What a violation violates."""

    SYNTAX = "syntax"
    LINE_BYTES = "line_bytes"
    LINE_SLOTS = "line_slots"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_PROPERTY = "unknown_property"
    VALUE = "value"
    ID = "id"
    REQUIRED = "required"
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    BLOB = "blob"
    UNIQUE = "unique"
    KEY_CONFLICT = "key_conflict"
    ENDPOINT = "endpoint"
    CARDINALITY = "cardinality"


@dataclass(frozen=True, slots=True)
class InputLocation:
    """Where in the input something stands: a file and a line, or a row of a table.

    Without a number it is the whole file.
    """

    name: str
    number: int | None
    unit: str = "line"

    def __str__(self) -> str:
        if self.number is None:
            return self.name
        where = f"{self.unit} {self.number}"
        return f"{self.name}, {where}" if self.name else where

    def to_json(self) -> dict[str, Any]:
        """Return the place as plain JSON values."""
        # A number that was read from an array is none JSON knows.
        number = {} if self.number is None else {self.unit: int(self.number)}
        return {"file": self.name or None, **number}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> InputLocation:
        """Return the location described by plain JSON values."""
        [(unit, number)] = [(k, v) for k, v in document.items() if k != "file"] or [("line", None)]
        return cls(document["file"] or "", number, unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing that is wrong with a change; `at` is where it stands in the input, as a number.

    `record` is the row or line as it was given, where that is at hand.
    """

    rule: ViolationRule
    message: str
    kind: str | None = None
    type: str | None = None
    id: str | None = None
    property: str | None = None
    value: Any = None
    source: InputLocation | None = None
    at: int | None = field(default=None, compare=False)
    record: Any = field(default=None, compare=False)

    def __str__(self) -> str:
        place = "" if self.source is None else str(self.source)
        return f"{place}: {self.message}" if place else self.message

    def to_json(self) -> dict[str, Any]:
        """Return the violation as plain JSON values."""
        facts = {
            "rule": str(self.rule),
            "message": self.message,
            "kind": self.kind,
            "type": self.type,
            "id": self.id,
            "property": self.property,
            "value": self.value,
            "source": self.source.to_json() if self.source is not None else None,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], at: int | None = None) -> Violation:
        """Return the violation described by plain JSON values."""
        source = document.get("source")
        facts = {name: fact for name, fact in document.items() if name not in ("rule", "source")}
        place = None if source is None else InputLocation.from_json(source)
        return cls(rule=ViolationRule(document["rule"]), source=place, at=at, **facts)


class ViolationCollector:
    """The violations of one change: all are counted, the first ones kept."""

    def __init__(self, limit: int = MAX_LISTED) -> None:
        self.limit = limit
        self.listed: list[Violation] = []
        self.totals: Counter[ViolationRule] = Counter()

    def __bool__(self) -> bool:
        return bool(self.totals)

    @property
    def remaining(self) -> int:
        """How many more will be kept."""
        return max(self.limit - len(self.listed), 0)

    def add(self, violation: Violation) -> None:
        """Count a violation, and keep it below the limit."""
        self.totals[violation.rule] += 1
        if self.remaining:
            self.listed.append(violation)

    def reserve(self, rule: ViolationRule, number: int) -> int:
        """Return how many of `number` violations will be kept; the others are counted."""
        kept = min(number, self.remaining)
        if number > kept:
            self.count(rule, number - kept)
        return kept

    def count(self, rule: ViolationRule, number: int) -> None:
        """Count violations above the limit."""
        self.totals[rule] += number

    def check(self) -> None:
        """Raise what was found, if anything was."""
        if self:
            self.listed.sort(key=violation_sort_key)
            only_keys = set(self.totals) == {ViolationRule.KEY_CONFLICT}
            raise (KeyConflict if only_keys else ValidationFailed)(self.listed, self.totals)


class ValidationFailed(OmniError):
    """A change breaks rules of the schema; nothing was changed."""

    code_text = "validation_failed"
    category_of = Category.INVALID

    def __init__(self, violations: Sequence[Violation], totals: Counter[ViolationRule]) -> None:
        self.violations = tuple(violations)
        self.total = sum(totals.values())
        self.totals = {str(rule): totals[rule] for rule in ViolationRule if totals[rule]}
        super().__init__(
            _summary(self.violations, self.total),
            code=self.code_text,
            category=self.category_of,
            details={
                "total": self.total,
                "totals": self.totals,
                "violations": [violation.to_json() for violation in self.violations],
            },
        )


class KeyConflict(ValidationFailed):
    """Entities to be inserted exist already; nothing was changed."""

    code_text = "key_conflict"
    category_of = Category.CONFLICT

    def __init__(self, violations: Sequence[Violation], totals: Counter[ViolationRule]) -> None:
        super().__init__(violations, totals)
        first = self.violations[0]
        self.details |= {
            "type_key": f"{first.kind}:{first.type}",
            "entity_kind": first.kind,
            "type_name": first.type,
            "entity_id": first.id,
        }


def violation_sort_key(violation: Violation) -> tuple[str, int]:
    """Return what violations are listed by: the place in the input."""
    place = violation.source
    return ("", 0) if place is None else (place.name, place.number or 0)


def abbreviate_value(value: Any) -> Any:  # noqa: ANN401 - whatever stood in the input
    """Return a value short enough for a report."""
    if isinstance(value, str) and len(value) > _MAX_VALUE_CHARS:
        return value[:_MAX_VALUE_CHARS] + "…"
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such number.
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    try:
        text = str(value)
    except RecursionError:
        text = f"a {type(value).__name__} that is nested too deeply"
    return text if len(text) <= _MAX_VALUE_CHARS else text[:_MAX_VALUE_CHARS] + "…"


def _summary(violations: Sequence[Violation], total: int) -> str:
    shown = [str(violation) for violation in violations[:_SUMMARIZED]]
    more = total - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")
