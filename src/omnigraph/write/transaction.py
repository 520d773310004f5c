"""Prepare, validate, stage and publish a change, and retry after a lost race.

A change that only adds may be prepared again, based on the commit that won; one that changes or
removes what it has read raises a conflict instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.commit.history import first_parents, read_commits
from omnigraph.commit.lineage import Lineage
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.commit.publish import publish
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.staged_commit import StagedCommit, new_commit_id
from omnigraph.errors import (
    CleanupBegan,
    Contention,
    ExpectedVersionMismatch,
    PreconditionFailed,
    SchemaMoved,
)
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.request import MAINTENANCE_OPERATION, WriteRequest, check_changes_allowed
from omnigraph.write.staging import stage_changes
from omnigraph.write.validator import validate

MAX_REPREPARES = 32
"""How often a change that lost a race is prepared again."""


MAX_PUBLISH_ROUNDS = 8
"""How often the whole budget of a publish may be lost to commits of other types."""

_NOT_RETRYABLE = ("stage_expired", "commit_fenced")
"""Refusals that the same staged commit would only get again."""


def apply_changes(
    manifest: Manifest,
    request: WriteRequest,
    prepare: Callable[[CommittedState], ChangeSet],
    *,
    again: Callable[[], bool],
    always: bool = False,
    complete: Callable[[StagedCommit], StagedCommit] | None = None,
) -> Commit | None:
    """Publish the change `prepare` makes of the newest state; return None when it is none.

    `again` says whether the change may be prepared again after a lost race. With `always`, even
    nothing is a commit. `complete` adds what a staged commit says beyond its change.
    """
    expected_head = request.if_commit
    commit_id = new_commit_id()
    began: str | None = None
    for attempt in range(MAX_REPREPARES + 1):
        snapshot = head_snapshot(manifest, request.branch)
        if expected_head is not None and snapshot.commit_id != expected_head:
            raise PreconditionFailed(expected_head, snapshot.commit_id)
        # Files of the first attempt may be used by all.
        began = snapshot.head.last_cleanup if began is None else began
        committed = CommittedState(manifest, snapshot)
        changes = prepare(committed)
        for change in changes.types.values():
            change.vectors_from = request.vectors_from
        if changes.is_empty and not changes.findings and not always:
            return None
        check_changes_allowed(changes, request, committed)
        images = validate(changes, committed)
        if not images and not always:
            return None
        staged = stage_changes(manifest, request, images, committed, commit_id)
        staged = replace(staged, began=began)
        if complete is not None:
            staged = complete(staged)
        try:
            return publish_with_retry(
                manifest.lineage(snapshot.lineage_id), snapshot.branch, staged
            )
        except (CleanupBegan, ExpectedVersionMismatch, SchemaMoved):
            if attempt == MAX_REPREPARES or not (
                again() or only_maintenance_since(manifest, snapshot)
            ):
                raise
    raise AssertionError("the last attempt returns or raises")


def only_maintenance_since(manifest: Manifest, before: Snapshot) -> bool:
    """Return whether nothing but maintenance happened to a branch since a snapshot."""
    state = manifest.lineage(before.lineage_id).state()
    commits = read_commits(manifest.history_states(state))
    for commit_id in first_parents(commits, state.head.commit_id):
        if commit_id == before.commit_id:
            return True
        if commits[commit_id].commit.operation != MAINTENANCE_OPERATION:
            return False
    return False


def publish_with_retry(lineage: Lineage, branch: str, staged: StagedCommit) -> Commit:
    """Publish with retries: after losing to commits of other types nothing is prepared again."""
    for _ in range(MAX_PUBLISH_ROUNDS):
        try:
            return publish(lineage, branch, staged)
        except Contention as error:
            if error.code in _NOT_RETRYABLE:
                raise
    return publish(lineage, branch, staged)
