"""Steps of a migration, as JSON and as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from omnigraph.catalog.model import (
    Annotation,
    Cardinality,
    Constraint,
    Index,
    Key,
    TypeKind,
    Unique,
    ValueConstraint,
    annotation_text,
    constraint_text,
    constraint_to_json,
)
from omnigraph.errors import OmniError
from omnigraph.lang import Code
from omnigraph.notebook.results import schema_result_html
from omnigraph.types import PropertyType


class DropMode(StrEnum):
    """Whether older snapshots keep what is dropped (soft) or lose it immediately (hard)."""

    SOFT = "soft"
    HARD = "hard"


class _Step:
    """A step: as JSON its kind and its fields, as text one line by a template."""

    __slots__ = ()
    kind: ClassVar[str]
    template: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        wire: dict[str, Any] = {"kind": self.kind}
        for member in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, member.name)
            if value is not None:
                wire[WIRE_NAMES.get(member.name, member.name)] = _step_value_to_json(value)
        return wire

    def describe(self) -> str:
        """Return one line of text."""
        names = [member.name for member in fields(self)]  # type: ignore[arg-type]  # as above
        texts = {name: _step_value_to_text(getattr(self, name)) for name in names}
        path = [texts[name] for name in ("name", "type_name", "property_name") if name in texts]
        place = f"{texts.get('type_kind')} {'.'.join(path)}"
        return self.template.format(self, place=place, **texts)


WIRE_NAMES = {"old": "from", "new": "to"}


def _step_value_to_json(value: object) -> object:
    match value:
        case Key() | Unique() | Index() | ValueConstraint():
            return constraint_to_json(value)
        case PropertyType() | Annotation():
            return value.to_json()
        case int():
            return value
        case tuple():
            return [_step_value_to_json(item) for item in value]
        case _:
            return str(value)


def _step_value_to_text(value: object) -> str:
    match value:
        case Key() | Unique() | Index() | ValueConstraint():
            return constraint_text(value)
        case Annotation():
            return annotation_text(value)
        case tuple():
            separator = " " if any(isinstance(item, Annotation) for item in value) else ", "
            return separator.join(map(_step_value_to_text, value)) or "none"
        case _:
            return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class _NamedTypeStep(_Step):
    type_kind: TypeKind
    name: str


@dataclass(frozen=True, slots=True)
class _TypeStep(_Step):
    type_kind: TypeKind
    type_name: str


@dataclass(frozen=True, slots=True)
class _ConstraintStep(_TypeStep):
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class _PropertyStep(_TypeStep):
    property_name: str


@dataclass(frozen=True, slots=True)
class AddType(_NamedTypeStep):
    """A type exists from now on."""

    template = "add type {place}"


@dataclass(frozen=True, slots=True)
class RenameType(_Step):
    """A type has another name from now on."""

    template = "rename type {type_kind} {old} -> {new}"
    type_kind: TypeKind
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AddProperty(_PropertyStep):
    """A type has one more property; existing entities have its `default`, or null."""

    template = "add property {place}: {property_type}{0.default_text}"
    property_type: PropertyType
    default: str | None = None

    @property
    def default_text(self) -> str:
        """The default as a schema has it."""
        return "" if self.default is None else f" = {self.default}"


@dataclass(frozen=True, slots=True)
class RenameProperty(_TypeStep):
    """A property has another name from now on."""

    template = "rename property {place}.{old} -> {new}"
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AddConstraint(_ConstraintStep):
    """A type has one more constraint."""

    template = "add constraint {place} {constraint}"


@dataclass(frozen=True, slots=True)
class RemoveConstraint(_ConstraintStep):
    """A type has one constraint less."""

    template = "remove constraint {place} {constraint}"


@dataclass(frozen=True, slots=True)
class ChangeKey(_TypeStep):
    """The IDs of edges are made from another key: existing ones are written again with new IDs.

    `edges` is the number of existing ones, None where there is no graph to count them.
    """

    template = "change key {place}: {0.old_text} -> {0.new_text}{0.effect}"
    old: Key | None = None
    new: Key | None = None
    edges: int | None = field(default=None, compare=False)

    @property
    def old_text(self) -> str:
        """The key before, as a schema has it."""
        return _step_value_to_text(self.old) or "none"

    @property
    def new_text(self) -> str:
        """The key afterwards, as a schema has it."""
        return _step_value_to_text(self.new) or "none"

    @property
    def effect(self) -> str:
        """What happens to existing edges."""
        if self.edges == 0:
            return ""
        number = "all" if self.edges is None else f"{self.edges:,}"
        noun = "edge" if self.edges == 1 else "edges"
        return f" (rewrites {number} {noun}, ids change)"


@dataclass(frozen=True, slots=True)
class ChangeCardinality(_TypeStep):
    """Another number of edges may leave a node; fewer only if none has too many."""

    template = "change cardinality {place}: {old} -> {new}"
    old: Cardinality
    new: Cardinality


@dataclass(frozen=True, slots=True)
class ExtendEnum(_PropertyStep):
    """An enum property allows more values; the name is the one the property has afterwards."""

    template = "extend enum {place}: {added_values}"
    added_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WidenProperty(_PropertyStep):
    """A property has a type that holds all its values and more."""

    template = "widen property {place}: {0.old.base_text} -> {0.new.base_text}"
    old: PropertyType
    new: PropertyType


@dataclass(frozen=True, slots=True)
class MakeOptional(_PropertyStep):
    """A required property may be null from now on."""

    template = "make optional {place}"


@dataclass(frozen=True, slots=True)
class MakeRequired(_PropertyStep):
    """A nullable property is required from now on; it is null nowhere."""

    template = "make required {place}"


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata(_NamedTypeStep):
    """A type is described differently; `annotations` are all it has afterwards."""

    template = "update metadata {place}: {annotations}"
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata(_PropertyStep):
    """A property is described differently; `annotations` are all it has afterwards."""

    template = "update metadata {place}: {annotations}"
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class DeclareEmbeddingModel(_PropertyStep):
    """The model that made the vectors of a property is declared; no vector changes."""

    template = "declare embedding model {place}: {model}"
    model: str


@dataclass(frozen=True, slots=True)
class DropType(_NamedTypeStep):
    """A type exists no longer."""

    template = "drop type {place} ({mode})"
    mode: DropMode = DropMode.SOFT


@dataclass(frozen=True, slots=True)
class DropProperty(_PropertyStep):
    """A property exists no longer."""

    template = "drop property {place} ({mode})"
    mode: DropMode = DropMode.SOFT


@dataclass(frozen=True, slots=True)
class UnsupportedChange(_Step):
    """A change that cannot be made; `entity` is spelled `node:T`, `edge:T.p`, `interface:I`."""

    template = "refused {0.code_text}{entity}: {reason}"
    entity: str
    reason: str
    code: Code | None = None

    @property
    def code_text(self) -> str:
        """The code as errors give it: `[CODE] ` where there is one."""
        return "" if self.code is None else f"[{self.code}] "

    @property
    def message(self) -> str:
        """The reason as errors give it: `[CODE] reason` where there is a code."""
        return f"{self.code_text}{self.reason}"


MigrationStep: TypeAlias = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | AddConstraint
    | RemoveConstraint
    | ChangeKey
    | ChangeCardinality
    | ExtendEnum
    | WidenProperty
    | MakeOptional
    | MakeRequired
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DeclareEmbeddingModel
    | DropType
    | DropProperty
    | UnsupportedChange
)


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The steps from one accepted schema to another, in the order they are taken."""

    steps: tuple[MigrationStep, ...] = ()

    @property
    def refusals(self) -> tuple[UnsupportedChange, ...]:
        """The changes that cannot be made."""
        return tuple(step for step in self.steps if isinstance(step, UnsupportedChange))

    @property
    def supported(self) -> bool:
        """Whether every step can be taken."""
        return not self.refusals

    def with_data_loss(self) -> MigrationPlan:
        """Return the same plan with every drop made hard."""
        return MigrationPlan(tuple(_with_hard_drop(step) for step in self.steps))

    def with_edge_counts(self, count: Callable[[str], int]) -> MigrationPlan:
        """Return the same plan with the number of edges that each step writes again.

        `count` is called with the name that an edge type has after the migration.
        """
        steps = (
            replace(step, edges=count(step.type_name)) if isinstance(step, ChangeKey) else step
            for step in self.steps
        )
        return MigrationPlan(tuple(steps))

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [step.to_json() for step in self.steps],
        }

    def _repr_html_(self) -> str:
        return schema_result_html(
            {**self.to_json(), "descriptions": [step.describe() for step in self.steps]}
        )


class SchemaChangeRefused(OmniError):
    """A schema cannot become another; nothing was changed. `refusals` are all the reasons."""

    def __init__(self, refusals: tuple[UnsupportedChange, ...]) -> None:
        self.refusals = refusals
        super().__init__(
            "; ".join(f"{refusal.entity}: {refusal.message}" for refusal in refusals),
            code="schema_change_unsupported",
            details={"steps": [refusal.to_json() for refusal in refusals]},
        )


def _with_hard_drop(step: MigrationStep) -> MigrationStep:
    return replace(step, mode=DropMode.HARD) if isinstance(step, DropType | DropProperty) else step
