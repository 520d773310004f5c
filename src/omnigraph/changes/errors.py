"""Errors of reading changes."""

from __future__ import annotations

from typing import Any

from omnigraph.commit.model import CommitId
from omnigraph.errors import Category, OmniError


class CommitHasNoParent(OmniError):
    """The first commit of a graph has nothing it could be compared with."""

    def __init__(self, commit_id: CommitId) -> None:
        super().__init__(
            f"commit {commit_id} is the first of the graph: there is no state before it",
            code="parentless_commit",
            category=Category.CONFLICT,
            details={"reason": "parentless_commit", "graph_commit_id": commit_id},
        )


class ChangeSchemaBoundary(OmniError):
    """A commit changed the schema, so entities before and after it do not compare."""

    def __init__(self, commit_id: CommitId, type_name: str | None) -> None:
        changed = f" (of {type_name})" if type_name else ""
        details: dict[str, Any] = {"reason": "schema_boundary", "graph_commit_id": commit_id}
        super().__init__(
            f"commit {commit_id} changed the schema{changed}: take a new baseline, "
            f"or go on behind it with after:{commit_id}",
            code="schema_boundary",
            category=Category.CONFLICT,
            details={**details, **({"type_name": type_name} if type_name else {})},
        )


class ChangeFeedGap(OmniError):
    """The changes of a commit can no longer be read: cleanup removed a version they need."""

    def __init__(self, commit_id: CommitId, cursor: str | None = None) -> None:
        details: dict[str, Any] = {"first_unreadable_commit_id": commit_id}
        super().__init__(
            f"the changes of commit {commit_id} have been cleaned up: take a new baseline",
            code="change_feed_gap",
            category=Category.NOT_FOUND,
            details={**details, **({"cursor": cursor} if cursor else {})},
        )
        self.commit_id = commit_id


class CursorRejected(OmniError):
    """A cursor or page token is damaged, or was made for something else."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"change cursor rejected: {reason}", code="change_cursor_rejected")


class PageLimitExceeded(OmniError):
    """More was requested than one page may hold."""

    def __init__(self, resource: str, limit: int, actual: int) -> None:
        super().__init__(
            f"{resource} is at most {limit:,}, not {actual:,}",
            code="resource_limit",
            category=Category.LIMIT,
            details={"resource": resource, "limit": limit, "actual": actual},
        )
