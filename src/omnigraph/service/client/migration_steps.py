"""Decode migration steps of the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, get_args

from omnigraph.catalog import MigrationStep, TypeKind
from omnigraph.catalog.constraints import VALUE_CONSTRAINTS
from omnigraph.catalog.migration_steps import (
    WIRE_NAMES,
    ChangeCardinality,
    ChangeKey,
    DropMode,
    WidenProperty,
)
from omnigraph.catalog.model import (
    Annotation,
    Cardinality,
    Constraint,
    Index,
    Key,
    Metric,
    Unique,
)
from omnigraph.lang import Code
from omnigraph.types import PropertyType

_STEP_CLASSES: Mapping[str, Any] = MappingProxyType(
    {kind.kind: kind for kind in get_args(MigrationStep)}
)


def read_steps(members: Sequence[Mapping[str, Any]]) -> tuple[MigrationStep, ...]:
    """Read steps."""
    return tuple(_read_step(facts) for facts in members)


def _read_step(facts: Mapping[str, Any]) -> MigrationStep:
    kind = _STEP_CLASSES[facts["kind"]]
    values = {}
    for field in fields(kind):
        name = WIRE_NAMES.get(field.name, field.name)
        if name in facts:
            values[field.name] = _step_reader(kind, field.name)(facts[name])
    step: MigrationStep = kind(**values)
    return step


def _step_reader(kind: object, name: str) -> Callable[[Any], Any]:
    if name in ("old", "new"):
        if kind is WidenProperty:
            return PropertyType.from_wire
        if kind is ChangeCardinality:
            return _cardinality
        if kind is ChangeKey:
            return _constraint
    return _READERS.get(name, lambda value: value)


def read_code(text: str) -> Code:
    """Read the code of a diagnostic."""
    return next(code for code in Code if code == text)


def _cardinality(text: str) -> Cardinality:
    low, _, high = text.partition("..")
    return Cardinality(int(low), None if high in ("", "*") else int(high))


def _annotations(members: Sequence[Mapping[str, Any]]) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(one["name"], one["value"], tuple(one.get("kwargs", {}).items()))
        for one in members
    )


def _constraint(members: Mapping[str, Any]) -> Constraint:
    [(word, facts)] = members.items()
    match word:
        case "Key":
            return Key(tuple(facts))
        case "Unique":
            return Unique(tuple(facts))
        case "Index" if isinstance(facts, Mapping):
            return Index(tuple(facts["properties"]), Metric(facts["metric"]))
        case "Index":
            return Index(tuple(facts))
        case _:
            kind = VALUE_CONSTRAINTS[word.lower()].type
            return kind(facts["property"], *(facts[name] for name in kind.json_members))


_READERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "type_kind": TypeKind,
        "property_type": PropertyType.from_wire,
        "constraint": _constraint,
        "added_values": tuple,
        "annotations": _annotations,
        "mode": DropMode,
        "code": read_code,
    }
)
