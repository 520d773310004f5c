"""This module lists what an actor may be allowed to do, and what a rule may say about each."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
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


class BundleScope(StrEnum):
    """What a bundle is for: one graph, or the server that has several."""

    GRAPH = "graph"
    SERVER = "server"


class BranchScope(StrEnum):
    """Which branches a rule is about."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


SERVER_ACTIONS = frozenset({Action.GRAPH_LIST})
BRANCH_ACTIONS = frozenset({Action.READ, Action.EXPORT, Action.CHANGE})
"""Actions on a branch: their rules may have `branch_scope`, and `types`."""
TARGET_ACTIONS = frozenset(
    {Action.SCHEMA_APPLY, Action.BRANCH_CREATE, Action.BRANCH_DELETE, Action.BRANCH_MERGE}
)
"""Actions that target a branch: their rules may have `target_branch_scope`."""
READ_ACTIONS = frozenset({Action.READ, Action.EXPORT})
"""Actions that show data: their rules may have a `mask`."""


def bundle_scope(action: Action) -> BundleScope:
    """Return the kind of bundle an action belongs into."""
    return BundleScope.SERVER if action in SERVER_ACTIONS else BundleScope.GRAPH
