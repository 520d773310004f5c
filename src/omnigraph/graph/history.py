"""Branches, tags, commits and changes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from omnigraph.changes.baseline import Baseline, capture_baseline
from omnigraph.changes.commit_changes import CommitChangesPage, Limits, read_commit_page
from omnigraph.changes.feed import FeedPage, FeedRequest, poll
from omnigraph.commit.branches import create_branch, create_tag, delete_branch, delete_tag
from omnigraph.commit.history import find_commit, merge_bases, newest_first, read_commits
from omnigraph.commit.model import Branch, Commit, CommitId, Tag
from omnigraph.commit.snapshot import SnapshotRef, apply_scope_to_commit, head_snapshot
from omnigraph.errors import InvalidInput
from omnigraph.graph.context import GraphContext
from omnigraph.graph.protocol import (
    BranchesProtocol,
    ChangesProtocol,
    CommitsProtocol,
    TagsProtocol,
    documented_by,
)
from omnigraph.maintain.export import export_lines
from omnigraph.policy import PolicyAction


@documented_by(BranchesProtocol)
class Branches:
    """The branches of a graph."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def create(self, name: str, from_: SnapshotRef | None = None) -> Branch:
        source = self._context.check_create(from_, name)
        self._context.require_writable()
        actor = self._context.gate.actor
        return create_branch(self._context.manifest, name, source, actor=actor)

    def list(self) -> list[str]:
        return self._context.known_branches()

    def exists(self, name: str) -> bool:
        """Return whether a branch of this name exists."""
        return self._context.has_branch(name)

    def get(self, name: str) -> Branch:
        self._context.gate.check(PolicyAction.READ)
        return self._context.manifest.branch(name)

    def delete(self, name: str, *, force: bool = False) -> None:
        self._context.gate.check(PolicyAction.BRANCH_DELETE, target_branch=name.strip())
        self._context.require_writable()
        delete_branch(self._context.manifest, name, reparent=force)


@documented_by(TagsProtocol)
class Tags:
    """The tags of a graph."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def create(self, name: str, at: SnapshotRef | None = None) -> Tag:
        source = self._context.check_create(at, name)
        self._context.require_writable()
        actor = self._context.gate.actor
        return create_tag(self._context.manifest, name, source, actor=actor)

    def list(self) -> list[Tag]:
        self._context.gate.check(PolicyAction.READ)
        return sorted(self._context.manifest.tags().values(), key=lambda tag: tag.name)

    def delete(self, name: str) -> None:
        self._context.gate.check(PolicyAction.BRANCH_DELETE, target_branch=name.strip())
        self._context.require_writable()
        delete_tag(self._context.manifest, name)


@documented_by(CommitsProtocol)
class Commits:
    """The history of a graph."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def list(
        self, branch: str | None = None, limit: int | None = None, *, actor: str | None = None
    ) -> list[Commit]:
        if limit is not None and limit < 0:
            raise InvalidInput(f"a limit cannot be negative: {limit}", code="limit_invalid")
        asked = branch or self._context.current_branch
        sight = self._context.gate.check(PolicyAction.READ, asked.strip())
        snapshot = head_snapshot(self._context.manifest, asked)
        state = self._context.manifest.lineage(snapshot.lineage_id).state()
        commits = read_commits(self._context.manifest.history_states(state))
        ordered = newest_first(commits, snapshot.commit_id)
        found = (commit for commit in ordered if actor is None or commit.actor == actor)
        return [apply_scope_to_commit(commit, sight) for commit in islice(found, limit)]

    def get(self, id: str) -> Commit:
        sight = self._context.gate.check(PolicyAction.READ)
        return apply_scope_to_commit(find_commit(self._context.manifest, id)[0].commit, sight)

    def changes(
        self,
        id: str,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        page_token: str | None = None,
        limits: Limits | None = None,
    ) -> CommitChangesPage:
        manifest = self._context.manifest
        scope = self._context.scope(self._context.commit_sight(id), kinds, types, ops)
        return read_commit_page(manifest, id, scope, page_token=page_token, limits=limits)

    def merge_base(self, one: SnapshotRef, other: SnapshotRef) -> tuple[CommitId, ...]:
        manifest = self._context.manifest
        states = [self._context.snapshot(target) for target in (one, other)]
        heads = [manifest.lineage(state.lineage_id).state() for state in states]
        commits = read_commits(state for head in heads for state in manifest.history_states(head))
        return tuple(merge_bases(commits, states[0].commit_id, states[1].commit_id))


@documented_by(ChangesProtocol)
class Changes:
    """What happened on a branch, commit by commit, for a reader that keeps a copy of it."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def poll(  # noqa: PLR0913 - the arguments of a poll
        self,
        *,
        branch: str | None = None,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        limits: Limits | None = None,
    ) -> FeedPage:
        name = branch or self._context.current_branch
        sight = self._context.gate.check(PolicyAction.READ, name.strip())
        asked = FeedRequest(
            branch=name,
            start=start,
            cursor=cursor,
            page_token=page_token,
            scope=self._context.scope(sight, kinds, types, ops),
            limits=limits or Limits(),
        )
        return poll(self._context.manifest, asked)

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Baseline:
        manifest, name = self._context.manifest, branch or self._context.current_branch
        sight = self._context.gate.check(PolicyAction.EXPORT, name.strip())
        found = capture_baseline(manifest, name, self._context.scope(sight, kinds, types, ops))
        lines = export_lines(manifest, found.snapshot, found.types) if found.types else iter(())
        return Baseline(found, lines)
