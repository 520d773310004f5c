"""Steps of a migration, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from omnigraph.catalog.model import (
    Annotation,
    Cardinality,
    Check,
    Constraint,
    Index,
    Key,
    Range,
    TypeKind,
    Unique,
    annotation_text,
    constraint_text,
    constraint_to_json,
)
from omnigraph.errors import OmniError
from omnigraph.lang import Code
from omnigraph.types import PropertyType


class DropMode(StrEnum):
    """Whether older snapshots keep what is dropped (soft) or lose it immediately (hard)."""

    SOFT = "soft"
    HARD = "hard"


class _JsonStep:
    """Writes a step as its kind and its fields, under the names they have in the class."""

    __slots__ = ()
    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        wire: dict[str, Any] = {"kind": self.kind}
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is not None:
                wire[WIRE_NAMES.get(field.name, field.name)] = _step_value_to_json(value)
        return wire


WIRE_NAMES = {"old": "from", "new": "to"}


def _step_value_to_json(value: object) -> object:
    match value:
        case Key() | Unique() | Index() | Range() | Check():
            return constraint_to_json(value)
        case PropertyType() | Annotation():
            return value.to_json()
        case tuple():
            return [_step_value_to_json(item) for item in value]
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class AddType(_JsonStep):
    """A type exists from now on."""

    kind = "add_type"
    type_kind: TypeKind
    name: str

    def describe(self) -> str:
        """Return one line of text."""
        return f"add type {self.type_kind} {self.name}"


@dataclass(frozen=True, slots=True)
class RenameType(_JsonStep):
    """A type has another name from now on."""

    kind = "rename_type"
    type_kind: TypeKind
    old: str
    new: str

    def describe(self) -> str:
        """Return one line of text."""
        return f"rename type {self.type_kind} {self.old} -> {self.new}"


@dataclass(frozen=True, slots=True)
class AddProperty(_JsonStep):
    """A type has one more property; existing entities have its `default`, or null."""

    kind = "add_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: PropertyType
    default: str | None = None

    def describe(self) -> str:
        """Return one line of text."""
        place = f"{self.type_kind} {self.type_name}.{self.property_name}"
        default = "" if self.default is None else f" = {self.default}"
        return f"add property {place}: {self.property_type}{default}"


@dataclass(frozen=True, slots=True)
class RenameProperty(_JsonStep):
    """A property has another name from now on."""

    kind = "rename_property"
    type_kind: TypeKind
    type_name: str
    old: str
    new: str

    def describe(self) -> str:
        """Return one line of text."""
        return f"rename property {self.type_kind} {self.type_name}.{self.old} -> {self.new}"


@dataclass(frozen=True, slots=True)
class AddConstraint(_JsonStep):
    """A type has one more constraint."""

    kind = "add_constraint"
    type_kind: TypeKind
    type_name: str
    constraint: Constraint

    def describe(self) -> str:
        """Return one line of text."""
        text = constraint_text(self.constraint)
        return f"add constraint {self.type_kind} {self.type_name} {text}"


@dataclass(frozen=True, slots=True)
class RemoveConstraint(_JsonStep):
    """A type has one constraint less."""

    kind = "remove_constraint"
    type_kind: TypeKind
    type_name: str
    constraint: Constraint

    def describe(self) -> str:
        """Return one line of text."""
        text = constraint_text(self.constraint)
        return f"remove constraint {self.type_kind} {self.type_name} {text}"


@dataclass(frozen=True, slots=True)
class ChangeCardinality(_JsonStep):
    """Another number of edges may leave a node; fewer only if none has too many."""

    kind = "change_cardinality"
    type_kind: TypeKind
    type_name: str
    old: Cardinality
    new: Cardinality

    def describe(self) -> str:
        """Return one line of text."""
        return f"change cardinality {self.type_kind} {self.type_name}: {self.old} -> {self.new}"


@dataclass(frozen=True, slots=True)
class ExtendEnum(_JsonStep):
    """An enum property allows more values; the name is the one the property has afterwards."""

    kind = "extend_enum"
    type_kind: TypeKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]

    def describe(self) -> str:
        """Return one line of text."""
        place = f"{self.type_kind} {self.type_name}.{self.property_name}"
        return f"extend enum {place}: {', '.join(self.added_values)}"


@dataclass(frozen=True, slots=True)
class WidenProperty(_JsonStep):
    """A property has a type that holds all its values and more."""

    kind = "widen_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    old: PropertyType
    new: PropertyType

    def describe(self) -> str:
        """Return one line of text."""
        place = f"{self.type_kind} {self.type_name}.{self.property_name}"
        return f"widen property {place}: {self.old.base_text} -> {self.new.base_text}"


@dataclass(frozen=True, slots=True)
class MakeOptional(_JsonStep):
    """A required property may be null from now on."""

    kind = "make_optional"
    type_kind: TypeKind
    type_name: str
    property_name: str

    def describe(self) -> str:
        """Return one line of text."""
        return f"make optional {self.type_kind} {self.type_name}.{self.property_name}"


@dataclass(frozen=True, slots=True)
class MakeRequired(_JsonStep):
    """A nullable property is required from now on; it is null nowhere."""

    kind = "make_required"
    type_kind: TypeKind
    type_name: str
    property_name: str

    def describe(self) -> str:
        """Return one line of text."""
        return f"make required {self.type_kind} {self.type_name}.{self.property_name}"


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata(_JsonStep):
    """A type is described differently; `annotations` are all it has afterwards."""

    kind = "update_type_metadata"
    type_kind: TypeKind
    name: str
    annotations: tuple[Annotation, ...]

    def describe(self) -> str:
        """Return one line of text."""
        return (
            f"update metadata {self.type_kind} {self.name}: {_annotations_text(self.annotations)}"
        )


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata(_JsonStep):
    """A property is described differently; `annotations` are all it has afterwards."""

    kind = "update_property_metadata"
    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[Annotation, ...]

    def describe(self) -> str:
        """Return one line of text."""
        place = f"{self.type_kind} {self.type_name}.{self.property_name}"
        return f"update metadata {place}: {_annotations_text(self.annotations)}"


@dataclass(frozen=True, slots=True)
class DeclareEmbeddingModel(_JsonStep):
    """The model that made the vectors of a property is declared; no vector changes."""

    kind = "declare_embedding_model"
    type_kind: TypeKind
    type_name: str
    property_name: str
    model: str

    def describe(self) -> str:
        """Return one line of text."""
        place = f"{self.type_kind} {self.type_name}.{self.property_name}"
        return f"declare embedding model {place}: {self.model}"


@dataclass(frozen=True, slots=True)
class DropType(_JsonStep):
    """A type exists no longer."""

    kind = "drop_type"
    type_kind: TypeKind
    name: str
    mode: DropMode = DropMode.SOFT

    def describe(self) -> str:
        """Return one line of text."""
        return f"drop type {self.type_kind} {self.name} ({self.mode})"


@dataclass(frozen=True, slots=True)
class DropProperty(_JsonStep):
    """A property exists no longer."""

    kind = "drop_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    mode: DropMode = DropMode.SOFT

    def describe(self) -> str:
        """Return one line of text."""
        place = f"{self.type_kind} {self.type_name}.{self.property_name}"
        return f"drop property {place} ({self.mode})"


@dataclass(frozen=True, slots=True)
class UnsupportedChange(_JsonStep):
    """A change that cannot be made; `entity` is spelled `node:T`, `edge:T.p`, `interface:I`."""

    kind = "unsupported_change"
    entity: str
    reason: str
    code: Code | None = None

    @property
    def message(self) -> str:
        """The reason as errors give it: `[CODE] reason` where there is a code."""
        return self.reason if self.code is None else f"[{self.code}] {self.reason}"

    def describe(self) -> str:
        """Return one line of text."""
        code = "" if self.code is None else f"[{self.code}] "
        return f"refused {code}{self.entity}: {self.reason}"


MigrationStep: TypeAlias = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | AddConstraint
    | RemoveConstraint
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

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [step.to_json() for step in self.steps],
        }


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


def _annotations_text(annotations: Iterable[Annotation]) -> str:
    return " ".join(annotation_text(annotation) for annotation in annotations) or "none"
