"""Branches, tags, commits and changes of a graph."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from omnigraph.changes.baseline import Baseline, capture_baseline
from omnigraph.changes.commit_changes import CommitChangesPage, Limits, read_commit_page
from omnigraph.changes.feed import FeedPage, FeedRequest, poll
from omnigraph.changes.model import ChangeFilter
from omnigraph.commit.branches import create_branch, create_tag, delete_branch, delete_tag
from omnigraph.commit.commit_log import AheadBehind, CommitLog, find_divergence, newest_first
from omnigraph.commit.history import find_commit
from omnigraph.commit.model import Branch, Commit, Tag
from omnigraph.commit.snapshot import SnapshotRef, apply_scope_to_commit, head_snapshot
from omnigraph.errors import InvalidInput
from omnigraph.graph.context import GraphContext
from omnigraph.graph.listings import BranchNames, CommitList, TagList
from omnigraph.graph.protocol import (
    BranchesApi,
    ChangesApi,
    CommitsApi,
    TagsApi,
)
from omnigraph.maintain.export import export_lines
from omnigraph.policy import PolicyAction


class Branches(BranchesApi[GraphContext, SnapshotRef]):
    """The branches of a graph."""

    def create(self, name: str, from_: SnapshotRef | None = None) -> Branch:
        source = self._context.check_create(from_, name)
        self._context.require_writable()
        actor = self._context.gate.actor
        permit = self._context.permit(name)
        return create_branch(self._context.manifest, name, source, actor=actor, permit=permit)

    def list(self) -> list[str]:
        return BranchNames(self._context.known_branches())

    def exists(self, name: str) -> bool:
        """Return whether a branch of this name exists."""
        return self._context.has_branch(name)

    def get(self, name: str) -> Branch:
        self._context.gate.check(PolicyAction.READ)
        return self._context.manifest.branch(name)

    def delete(self, name: str, *, force: bool = False) -> None:
        self._context.gate.check(PolicyAction.BRANCH_DELETE, target_branch=name.strip())
        self._context.require_writable()
        permit = self._context.permit(name)
        delete_branch(self._context.manifest, name, reparent=force, permit=permit)


class Tags(TagsApi[GraphContext, SnapshotRef]):
    """The tags of a graph."""

    def create(self, name: str, at: SnapshotRef | None = None) -> Tag:
        source = self._context.check_create(at, name)
        self._context.require_writable()
        actor = self._context.gate.actor
        permit = self._context.permit(name)
        return create_tag(self._context.manifest, name, source, actor=actor, permit=permit)

    def list(self) -> list[Tag]:
        self._context.gate.check(PolicyAction.READ)
        return TagList(sorted(self._context.manifest.tags().values(), key=lambda tag: tag.name))

    def delete(self, name: str) -> None:
        self._context.gate.check(PolicyAction.BRANCH_DELETE, target_branch=name.strip())
        self._context.require_writable()
        delete_tag(self._context.manifest, name, permit=self._context.permit(name))


class Commits(CommitsApi[GraphContext, SnapshotRef]):
    """The history of a graph."""

    def list(
        self, branch: str | None = None, limit: int | None = None, *, actor: str | None = None
    ) -> list[Commit]:
        if limit is not None and limit < 0:
            raise InvalidInput(f"a limit cannot be negative: {limit}", code="limit_invalid")
        name = self._branch(branch)
        sight = self._context.gate.check(PolicyAction.READ, name.strip())
        snapshot = head_snapshot(self._context.manifest, name)
        state = self._context.manifest.lineage(snapshot.lineage_id).state()
        log = CommitLog(self._context.manifest.history_states(state))
        ordered = newest_first(log, snapshot.commit_id)
        selected = (commit for commit in ordered if actor is None or commit.actor == actor)
        return CommitList(
            apply_scope_to_commit(commit, sight) for commit in islice(selected, limit)
        )

    def get(self, id: str) -> Commit:
        sight = self._context.gate.check(PolicyAction.READ)
        return apply_scope_to_commit(find_commit(self._context.manifest, id)[0].commit, sight)

    def _changes(
        self, id: str, scope: ChangeFilter, page_token: str | None, limits: Limits | None
    ) -> CommitChangesPage:
        scope = replace(scope, sight=self._context.commit_sight(id))
        manifest = self._context.manifest
        return read_commit_page(manifest, id, scope, page_token=page_token, limits=limits)

    def divergence(self, one: SnapshotRef, other: SnapshotRef) -> AheadBehind:
        manifest = self._context.manifest
        states = [self._context.snapshot(target) for target in (one, other)]
        heads = [manifest.lineage(state.lineage_id).state() for state in states]
        log = CommitLog(state for head in heads for state in manifest.history_states(head))
        diverged = find_divergence(log, states[0].commit_id, states[1].commit_id)
        ahead, behind = len(diverged.only_one), len(diverged.only_other)
        return AheadBehind(tuple(diverged.bases), ahead=ahead, behind=behind)


class Changes(ChangesApi[GraphContext, SnapshotRef]):
    """What happened on a branch, commit by commit, for a reader that keeps a copy of it."""

    def _poll(self, request: FeedRequest) -> FeedPage:
        sight = self._context.gate.check(PolicyAction.READ, request.branch.strip())
        scope = replace(request.scope, sight=sight)
        return poll(self._context.manifest, replace(request, scope=scope))

    def _baseline(self, branch: str, scope: ChangeFilter) -> Baseline:
        manifest = self._context.manifest
        sight = self._context.gate.check(PolicyAction.EXPORT, branch.strip())
        info = capture_baseline(manifest, branch, replace(scope, sight=sight))
        lines = export_lines(manifest, info.snapshot, info.types) if info.types else iter(())
        return Baseline(info.snapshot.commit_id, info.resume_cursor, lines)
