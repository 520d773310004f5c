"""Conflicts of a merge, all of them, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from omnigraph.catalog import TypeKind
from omnigraph.changes.model import EntityImage
from omnigraph.errors import Category, OmniError
from omnigraph.merge.conflict_rules import MergeVerdict
from omnigraph.notebook.changes import conflict_blocks
from omnigraph.notebook.style import document
from omnigraph.write.violations import Violation, ViolationRule

_MAX_SHOWN = 3


class ConflictKind(StrEnum):
    """Why two changes do not go together."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    SCHEMA_CONFLICT = "schema_conflict"


_MESSAGES: Mapping[MergeVerdict, str] = MappingProxyType(
    {
        MergeVerdict.DIVERGENT_INSERT: "divergent insert for id '{}'",
        MergeVerdict.DIVERGENT_UPDATE: "divergent update for id '{}'",
        MergeVerdict.DELETE_VS_UPDATE: "delete/update conflict for id '{}'",
    }
)
_BY_RULE: Mapping[ViolationRule, ConflictKind] = MappingProxyType(
    {
        ViolationRule.ENDPOINT: ConflictKind.ORPHAN_EDGE,
        ViolationRule.UNIQUE: ConflictKind.UNIQUE_VIOLATION,
        ViolationRule.KEY_CONFLICT: ConflictKind.UNIQUE_VIOLATION,
        ViolationRule.CARDINALITY: ConflictKind.CARDINALITY_VIOLATION,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One thing two sides do not agree on, with what each of them says.

    `properties` are those both changed differently.
    """

    kind: ConflictKind
    message: str
    entity_kind: TypeKind | None = None
    type: str | None = None
    id: str | None = None
    base: EntityImage | None = None
    source: EntityImage | None = None
    target: EntityImage | None = None
    properties: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; the first five are the wire form."""
        facts: dict[str, Any] = {
            "entity_kind": None if self.entity_kind is None else str(self.entity_kind),
            "type_name": self.type,
            "entity_id": self.id,
            "kind": str(self.kind),
            "message": self.message,
        }
        for name, image in (("base", self.base), ("source", self.source), ("target", self.target)):
            if image is not None:
                facts[name] = image.to_json()
        if self.properties:
            facts["properties"] = list(self.properties)
        return facts

    def _repr_html_(self) -> str:
        return document(*conflict_blocks([self.to_json()]))


def describe_divergence(verdict: MergeVerdict, id_: str) -> tuple[ConflictKind, str]:
    """Return the kind and the message of a conflict the truth table found."""
    return ConflictKind[verdict.name], _MESSAGES[verdict].format(id_)


def rule_conflicts(violations: Iterable[Violation]) -> list[Conflict]:
    """Return what the validator reports about the merged state as conflicts, each of them once."""
    conflicts = (_rule_conflict(violation) for violation in violations)
    return list({(c.kind, c.type, c.id, c.message): c for c in conflicts}.values())


def _rule_conflict(violation: Violation) -> Conflict:
    return Conflict(
        kind=_BY_RULE.get(violation.rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION),
        message=violation.message,
        entity_kind=None if violation.kind is None else TypeKind(violation.kind),
        type=violation.type,
        id=violation.id,
        properties=() if violation.property is None else (violation.property,),
    )


class MergeConflicts(OmniError):
    """Two sides do not go together; nothing was changed.

    `hidden` is the number of conflicts that the actor may not read.
    """

    def __init__(self, conflicts: Sequence[Conflict], target: str, *, hidden: int = 0) -> None:
        self.conflicts = tuple(conflicts)
        shown = "; ".join(_summarize(conflict) for conflict in self.conflicts[:_MAX_SHOWN])
        more = len(self.conflicts) - _MAX_SHOWN
        rest = f"; +{more} more" if more > 0 else ""
        if hidden:
            rest = f"conflicts ({hidden:,}) that only actors who may read both branches see"
        super().__init__(
            f"the changes do not go together with {target}: {shown}{rest}",
            code="merge_conflict",
            category=Category.CONFLICT,
            details={
                "target": target,
                "merge_conflicts": [conflict.to_json() for conflict in self.conflicts],
            },
        )


def _summarize(conflict: Conflict) -> str:
    return f"{conflict.type}: {conflict.message}" if conflict.type else conflict.message
