"""List what one commit changed, compared with its first parent, in a fixed order.

Nodes come before edges, then types by an identity that survives renames, then entities by id.
Values are those of the schema of the commit, written as exports write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.changes.cursors import (
    PagePosition,
    TokenKind,
    decode_token,
    digest,
    encode_token,
    filter_digest,
)
from omnigraph.changes.diff import delta_changes, pair_types
from omnigraph.changes.errors import (
    ChangeFeedGap,
    ChangeSchemaBoundary,
    CommitHasNoParent,
    CursorRejected,
    PageLimitExceeded,
)
from omnigraph.changes.model import Change, ChangeFilter, check_filter_types
from omnigraph.changes.type_delta import compare_type
from omnigraph.changes.version_history import VersionHistory
from omnigraph.commit.history import find_commit
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.commit.snapshot import apply_scope, apply_scope_to_commit, snapshot_of_commit
from omnigraph.dataset_view import DatasetView
from omnigraph.errors import InvalidInput, VersionReclaimed
from omnigraph.notebook.changes import commit_changes_html

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_CHANGES = 8_192
_MAX_LIMITS = {
    "changes": ("commit_changes_page_changes", MAX_CHANGES),
    "bytes": ("commit_changes_page_bytes", 32 * 1024 * 1024),
    "commits": ("change_feed_commits_per_poll", 512),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one page may hold; bytes are those of its changes as JSON."""

    changes: int = 1_000
    bytes: int = 4 * 1024 * 1024
    commits: int = 128

    def __post_init__(self) -> None:
        """Refuse pages that could hold nothing, or too much."""
        for field in fields(self):
            limit, (resource, most) = getattr(self, field.name), _MAX_LIMITS[field.name]
            if limit < 1:
                message = f"a page holds at least one of {field.name}, not {limit}"
                raise InvalidInput(message, code="limit_invalid", limit=limit)
            if limit > most:
                raise PageLimitExceeded(resource, most, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChange(Change):
    """A change of a block; `type_id` stays when the type is renamed, and is new when re-added."""

    type_id: str

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        # Called on the base by name: a dataclass with slots is another class than the one here.
        return {**Change.to_json(self), "type": {"id": self.type_id, "name": self.type}}


@dataclass(frozen=True, slots=True)
class ChangeBlock:
    """What one commit changed, or a part of it that fits on a page."""

    commit: Commit
    changes: tuple[EntityChange, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"cause": commit_cause(self.commit), "changes": [c.to_json() for c in self.changes]}


def commit_cause(commit: Commit) -> dict[str, Any]:
    """Return the wire form of the commit behind a block."""
    parents = dict(
        zip(("parent_commit_id", "merged_parent_commit_id"), commit.parents, strict=False)
    )
    return {
        "graph_commit_id": commit.id,
        **parents,
        "authored_branch": commit.branch,
        **({} if commit.actor is None else {"actor_id": commit.actor}),
        "authored_at": (commit.created_at - _EPOCH) // timedelta(microseconds=1),
    }


@dataclass(frozen=True, slots=True)
class CommitSnapshots:
    """A commit with the state before it and the state it made."""

    commit: Commit
    old: Snapshot
    new: Snapshot


def block_changes(
    manifest: Manifest,
    pair: CommitSnapshots,
    scope: ChangeFilter,
    steps: VersionHistory,
    behind: PagePosition | None = None,
) -> Iterator[EntityChange]:
    """Yield what a commit changed, behind a place if one is given.

    Raises:
        ChangeSchemaBoundary: the commit changed the schema.
        ChangeFeedGap: a version it needs has been cleaned up.
        CursorRejected: the commit has no such position.
    """
    _check_schema(pair)
    types = {_type_id(pair.new, new.type): (old, new) for old, new in _type_pairs(manifest, pair)}
    if behind is not None and behind.type_id not in types:
        raise CursorRejected("the commit has no such position")
    ordered = sorted(
        types, key=lambda type_id: (types[type_id][1].type.kind is TypeKind.EDGE, type_id)
    )
    start = ordered.index(behind.type_id) if behind is not None else 0
    try:
        for type_id in ordered[start:]:
            old, new = types[type_id]
            if scope.covers(new.type.kind, new.type.name):
                place = behind if behind is not None and behind.type_id == type_id else None
                changes = _type_changes((old, new), steps, place)
                yield from (_with_type_id(c, type_id) for c in changes if scope.wants(c.op))
    except VersionReclaimed as error:
        raise ChangeFeedGap(pair.commit.id) from error


def _check_schema(pair: CommitSnapshots) -> None:
    """Raise for a commit that changed the schema, whatever is requested."""
    old, new = pair.old.schema, pair.new.schema
    if old == new:
        return
    former = {t.id: t for t in old.types}
    present = {t.id: t for t in new.types}
    ids = dict.fromkeys([*present, *former])
    changed = (present.get(i) or former[i] for i in ids if present.get(i) != former.get(i))
    raise ChangeSchemaBoundary(pair.commit.id, next((t.name for t in changed), None))


def _type_pairs(
    manifest: Manifest, pair: CommitSnapshots
) -> Iterator[tuple[DatasetView, DatasetView]]:
    for old, new in pair_types(manifest, pair.old, pair.new):
        assert old is not None, "one schema has the same types before and after"
        assert new is not None, "one schema has the same types before and after"
        yield old, new


def _type_id(snapshot: Snapshot, type_: AcceptedType) -> str:
    return digest(snapshot.schema.domain, f"{type_.id}", f"{type_.incarnation}")


def _with_type_id(change: Change, type_id: str) -> EntityChange:
    facts = {field.name: getattr(change, field.name) for field in fields(change)}
    return EntityChange(**facts, type_id=type_id)


def _type_changes(
    sides: tuple[DatasetView, DatasetView],
    steps: VersionHistory,
    behind: PagePosition | None,
) -> Iterator[Change]:
    after = behind.id if behind is not None else None
    deltas = compare_type(*sides, steps, after=after)
    changes = (change for delta in deltas for change in delta_changes(delta, *sides))
    # Other IDs may share the prefix of an ID too long for a token; those up to it were returned.
    exact = None if behind is None else behind.exact
    if exact is not None and not any(digest(change.id) == exact for change in changes):
        raise CursorRejected("the commit has no such position")
    yield from changes


class PageBudget:
    """What is left of a page. The first change always fits, however large it is."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._changes = self._bytes = 0

    def take(self, changes: Iterable[EntityChange]) -> tuple[tuple[EntityChange, ...], bool]:
        """Return the changes that fit, and whether those are all."""
        taken: list[EntityChange] = []
        for change in changes:
            if not self._admits(change):
                return tuple(taken), False
            taken.append(change)
        return tuple(taken), True

    def _admits(self, change: EntityChange) -> bool:
        if self._changes == self._limits.changes:
            return False
        size = len(json.dumps(change.to_json(), ensure_ascii=False, separators=(",", ":")).encode())
        if self._changes and self._bytes + size > self._limits.bytes:
            return False
        self._changes += 1
        self._bytes += size
        return True


# ----------------------------------------------------------------------
# Pages of the changes of one commit.


@dataclass(frozen=True, slots=True)
class CommitChangesPage:
    """Some changes of a commit; `next_page_token` is set until the last page."""

    commit: Commit
    changes: tuple[EntityChange, ...]
    next_page_token: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts, token = ChangeBlock(self.commit, self.changes).to_json(), self.next_page_token
        return facts if token is None else {**facts, "next_page_token": token}

    def _repr_html_(self) -> str:
        return commit_changes_html(
            commit_cause(self.commit),
            [change.to_json() for change in self.changes],
            more=self.next_page_token is not None,
        )


def read_commit_page(
    manifest: Manifest,
    commit_id: str,
    scope: ChangeFilter,
    *,
    page_token: str | None = None,
    limits: Limits | None = None,
) -> CommitChangesPage:
    """Return what a commit changed against its first parent, or the next page of it.

    Raises:
        CommitHasNoParent: it is the first commit of the graph.
        ChangeSchemaBoundary: it changed the schema.
        ChangeFeedGap: a version it needs has been cleaned up.
        CursorRejected: the token is damaged or for something else.
    """
    row, _ = find_commit(manifest, commit_id)
    if not row.commit.parents:
        raise CommitHasNoParent(row.commit.id)
    ids, sight = (row.commit.parents[0], row.commit.id), scope.sight
    old, new = (apply_scope(manifest, snapshot_of_commit(manifest, id_), sight) for id_ in ids)
    commit = apply_scope_to_commit(row.commit, sight)
    bound = _token_binding(new, scope)
    behind = None
    if page_token is not None:
        behind = PagePosition.from_json(decode_token(page_token, TokenKind.COMMIT_PAGE, bound))
    check_filter_types(scope, [new.schema])
    pair, steps = CommitSnapshots(commit, old, new), VersionHistory(manifest, (old, new))
    changes = block_changes(manifest, pair, scope, steps, behind)
    taken, complete = PageBudget(limits or Limits()).take(changes)
    if complete:
        return CommitChangesPage(commit, taken)
    place = PagePosition.behind(taken[-1].type_id, taken[-1].id)
    token = encode_token(TokenKind.COMMIT_PAGE, bound, place.to_json())
    return CommitChangesPage(commit, taken, token)


def _token_binding(snapshot: Snapshot, scope: ChangeFilter) -> Mapping[str, str]:
    return {
        "graph": digest(snapshot.schema.domain),
        "commit": snapshot.commit_id,
        "filter": filter_digest(scope),
    }
