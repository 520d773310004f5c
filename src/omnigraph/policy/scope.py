"""This module says which types and properties an actor may see or change.

A rule grants types, and hides properties of them. What several rules grant adds up: a property is
shown if one of them shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grant:
    """The types one rule is about, None for all, and the properties it does not show."""

    types: frozenset[str] | None = None
    masks: frozenset[tuple[str, str]] = frozenset()

    def covers(self, type_name: str) -> bool:
        """Tell whether the rule is about a type."""
        return self.types is None or type_name in self.types

    def masked(self, type_name: str) -> frozenset[str]:
        """Return the properties of a type that the rule does not show."""
        return frozenset(name for owner, name in self.masks if owner == type_name)


ALL = Grant()
"""What a rule grants that says nothing about types."""


@dataclass(frozen=True, slots=True)
class TypeScope:
    """What all rules that allow an action grant together; without grants, nothing."""

    grants: frozenset[Grant] = frozenset()

    @classmethod
    def of(cls, grants: Iterable[Grant]) -> TypeScope:
        """Return what some rules grant together."""
        found = frozenset(grants)
        return EVERYTHING if ALL in found else cls(found)

    @property
    def is_everything(self) -> bool:
        """Tell whether no type or property is left out."""
        return ALL in self.grants

    def covers(self, type_name: str) -> bool:
        """Tell whether a type is granted, possibly without some properties."""
        return any(grant.covers(type_name) for grant in self.grants)

    def shows_all(self, type_name: str) -> bool:
        """Tell whether a type is granted with all its properties."""
        return frozenset() in self.masks_of(type_name)

    def types_and(self, other: TypeScope) -> TypeScope:
        """Return the types of both scopes, with all properties."""
        return TypeScope.of(Grant(grant.types) for grant in self.grants | other.grants)

    def masks_of(self, type_name: str) -> tuple[frozenset[str], ...]:
        """Return, for each rule that grants a type, the properties that rule does not show."""
        return tuple(g.masked(type_name) for g in self.grants if g.covers(type_name))


EVERYTHING = TypeScope(frozenset({ALL}))
NOTHING = TypeScope()
