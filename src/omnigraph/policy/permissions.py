"""Actions of policies, and the conditions rules can have on each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class PolicyAction(StrEnum):
    """Something an actor does."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    ADMIN = "admin"
    INVOKE_QUERY = "invoke_query"
    GRAPH_LIST = "graph_list"
    BYPASS_PROTECTION = "bypass_protection"


class BundleScope(StrEnum):
    """What a bundle is for: one graph, or the server that has several."""

    GRAPH = "graph"
    SERVER = "server"


class BranchScope(StrEnum):
    """Which branches a rule is about."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


SERVER_ACTIONS = frozenset({PolicyAction.GRAPH_LIST})
BRANCH_ACTIONS = frozenset({PolicyAction.READ, PolicyAction.EXPORT, PolicyAction.CHANGE})
"""Actions on a branch: their rules may have `branch_scope`, and `types`."""
TARGET_ACTIONS = frozenset(
    {
        PolicyAction.SCHEMA_APPLY,
        PolicyAction.BRANCH_CREATE,
        PolicyAction.BRANCH_DELETE,
        PolicyAction.BRANCH_MERGE,
        PolicyAction.BYPASS_PROTECTION,
    }
)
"""Actions that target a branch: their rules may have `target_branch_scope`."""
READ_ACTIONS = frozenset({PolicyAction.READ, PolicyAction.EXPORT})
"""Actions that show data: their rules may have a `mask`."""


def bundle_scope(action: PolicyAction) -> BundleScope:
    """Return the kind of bundle an action belongs to."""
    return BundleScope.SERVER if action in SERVER_ACTIONS else BundleScope.GRAPH


# ----------------------------------------------------------------------
# Types and properties an actor may see or change
#
# A rule grants types, and hides properties of them. What several rules grant adds up: a property is
# shown if one of them shows it.


@dataclass(frozen=True, slots=True)
class TypeGrant:
    """The types one rule is about, None for all, and the properties it does not show."""

    types: frozenset[str] | None = None
    masks: frozenset[tuple[str, str]] = frozenset()

    def covers(self, type_name: str) -> bool:
        """Return whether the rule is about a type."""
        return self.types is None or type_name in self.types

    def masked(self, type_name: str) -> frozenset[str]:
        """Return the properties of a type that the rule does not show."""
        return frozenset(name for owner, name in self.masks if owner == type_name)


GRANT_ALL = TypeGrant()
"""The grant of a rule without types."""


@dataclass(frozen=True, slots=True)
class TypeScope:
    """What all rules that allow an action grant together; without grants, nothing."""

    grants: frozenset[TypeGrant] = frozenset()

    @classmethod
    def of(cls, grants: Iterable[TypeGrant]) -> TypeScope:
        """Return what some rules grant together."""
        types = frozenset(grants)
        return ALL_TYPES if GRANT_ALL in types else cls(types)

    @property
    def is_everything(self) -> bool:
        """Whether no type or property is left out."""
        return GRANT_ALL in self.grants

    def covers(self, type_name: str) -> bool:
        """Return whether a type is granted, possibly without some properties."""
        return any(grant.covers(type_name) for grant in self.grants)

    def union_of_types(self, other: TypeScope) -> TypeScope:
        """Return the types of both scopes, with all properties."""
        return TypeScope.of(TypeGrant(grant.types) for grant in self.grants | other.grants)

    def masks_of(self, type_name: str) -> tuple[frozenset[str], ...]:
        """Return, for each rule that grants a type, the properties that rule does not show."""
        return tuple(g.masked(type_name) for g in self.grants if g.covers(type_name))


ALL_TYPES = TypeScope(frozenset({GRANT_ALL}))
NO_TYPES = TypeScope()
