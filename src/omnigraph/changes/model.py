"""This module defines what a change of an entity is, and which changes somebody asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.catalog import TypeKind
from omnigraph.policy.scope import EVERYTHING, TypeScope


class Op(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Image:
    """An entity as a state shows it: its properties and, of an edge, the ids of its ends."""

    properties: Mapping[str, Any]
    endpoints: tuple[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts: dict[str, Any] = {"properties": dict(self.properties)}
        if self.endpoints is not None:
            facts["endpoints"] = dict(zip(("from", "to"), self.endpoints, strict=True))
        return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happened to one entity; an insert has no `before`, a delete no `after`."""

    kind: TypeKind
    type: str
    id: str
    op: Op
    before: Image | None = None
    after: Image | None = None

    @property
    def changed(self) -> list[str]:
        """The properties that an update changed, ends of an edge as `from` and `to`."""
        if self.before is None or self.after is None:
            return []
        one, other = self.before, self.after
        names = dict.fromkeys([*one.properties, *other.properties])
        # Zero and negative zero are equal and not the same.
        pairs = ((n, one.properties.get(n), other.properties.get(n)) for n in names)
        found = [name for name, old, new in pairs if repr(old) != repr(new)]
        ends = zip(("from", "to"), one.endpoints or (), other.endpoints or (), strict=False)
        return [*(name for name, old, new in ends if old != new), *found]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        facts: dict[str, Any] = {
            "kind": str(self.kind),
            "type": self.type,
            "id": self.id,
            "op": str(self.op),
        }
        if self.before is not None:
            facts["before"] = self.before.to_json()
        if self.after is not None:
            facts["after"] = self.after.to_json()
        return facts


@dataclass(frozen=True, slots=True)
class Scope:
    """Which changes are asked for, an empty set asks for all; and what of them may be seen."""

    kinds: frozenset[TypeKind] = field(default_factory=frozenset)
    types: frozenset[str] = field(default_factory=frozenset)
    ops: frozenset[Op] = field(default_factory=frozenset)
    sight: TypeScope = EVERYTHING

    def covers(self, kind: TypeKind, name: str) -> bool:
        """Tell whether changes of a type are asked for."""
        return (not self.kinds or kind in self.kinds) and (not self.types or name in self.types)

    def wants(self, op: Op) -> bool:
        """Tell whether changes of this sort are asked for."""
        return not self.ops or op in self.ops
