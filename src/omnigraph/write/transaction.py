"""Prepare, validate, stage and publish changes: small ones in groups, others alone.

A small change waits in the queue of its branch (`commit/commit_queue.py`), whose leader prepares
the changes that wait on the newest state and publishes them by one swap (`write/group_commit.py`).
Any other change is prepared and staged before its turn. If other commits were published meanwhile,
it is moved onto the newest state (`commit/rebase.py`); if they changed something it relies on, it
is prepared again or, where that would change what the caller saw, refused.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from omnigraph.commit.commit_queue import (
    CommitQueue,
    QueuedChange,
    TurnLocks,
    lock_folder,
    shared_queue,
    timed_out,
)
from omnigraph.commit.lineage import Lineage
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, CommitId, Snapshot
from omnigraph.commit.prepared_groups import PreparedGroups
from omnigraph.commit.publish import publish
from omnigraph.commit.rebase import commits_since, footprints_since, rebase
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
from omnigraph.write.footprints import keys_of
from omnigraph.write.request import MAINTENANCE_OPERATION, WriteRequest, check_changes_allowed
from omnigraph.write.staging import compact_staged, stage_changes
from omnigraph.write.validator import validate

MAX_REPREPARES = 32
"""How often a change that lost a race is prepared again."""
MAX_PUBLISH_ROUNDS = 8
"""How often the whole budget of a publish may be lost to commits of other types."""
ROUNDS_BEFORE_HOLDING = 3
"""How often a change is prepared outside of its turn; then it is prepared during the turn."""

_NOT_RETRYABLE = ("stage_expired", "commit_fenced")
"""Refusals that the same staged commit would only get again."""


class StagedInspector(Protocol):
    """Looks at a staged commit before it is published."""

    def __call__(self, staged: StagedCommit, base: Snapshot, *, holding: bool) -> StagedCommit:
        """Return the commit to publish, or raise; `holding` keeps other writers waiting."""


@dataclass(slots=True)
class PendingChange:
    """A change that a caller wants to publish.

    `prepare` makes the change of a state. `again` says whether it may be prepared again after
    another commit has changed what it relies on. With `always`, even nothing is a commit.
    `complete` adds what a staged commit says beyond its change. A `small` change may be one of a
    group. `seen` is the state of the branch that the caller has read. `inspect` sees the staged
    commit and the state it is based on before it is published.
    """

    request: WriteRequest
    prepare: Callable[[CommittedState], ChangeSet]
    again: Callable[[], bool] = lambda: True
    always: bool = False
    complete: Callable[[StagedCommit], StagedCommit] | None = None
    small: bool = False
    seen: Snapshot | None = None
    inspect: StagedInspector | None = None
    commit_id: CommitId = field(default_factory=new_commit_id)
    began: str | None = None
    """The last cleanup announced when the first files were staged, which later attempts may use."""

    def check_head(self, snapshot: Snapshot) -> None:
        """Raise PreconditionFailed if the caller requires another head."""
        required = self.request.if_commit
        if required is not None and snapshot.commit_id != required:
            raise PreconditionFailed(required, snapshot.commit_id)

    def changes(self, committed: CommittedState) -> ChangeSet | None:
        """Return the change of a state; None if nothing changes."""
        changes = self.prepare(committed)
        for change in changes.types.values():
            change.vectors_from = self.request.vectors_from
        if changes.is_empty and not changes.findings and not self.always:
            return None
        check_changes_allowed(changes, self.request, committed)
        return changes


class QueuedGroupChange(QueuedChange[Commit]):
    """A small change in the queue; it runs in the context of the caller that queued it."""

    __slots__ = ("change", "context", "is_too_large")

    def __init__(self, change: PendingChange) -> None:
        super().__init__(deadline=time.monotonic() + change.request.timeout)
        self.change = change
        self.context = contextvars.copy_context()
        self.is_too_large = False


def commit_queue(manifest: Manifest, lineage_id: str | None) -> CommitQueue[QueuedChange[Commit]]:
    """Return the queue of a branch, which all handles of a graph in this process share.

    Handles of another durability have another queue: their leader would not sync these changes.
    """
    location = manifest.location
    options = tuple(sorted(location.options.items()))
    key = (location.uri, options, location.durability, lineage_id)
    folder, name = lock_folder(location), lineage_id or MAIN
    groups = PreparedGroups(folder / f"{name}.prepared") if location.is_local else None
    return shared_queue(key, TurnLocks(folder, name, groups))


def apply_alone(manifest: Manifest, change: PendingChange) -> Commit | None:
    """Publish a change alone, prepared and staged before its turn if possible."""
    deadline, rounds = time.monotonic() + change.request.timeout, 0
    while True:
        snapshot = head_snapshot(manifest, change.request.branch)
        queue = commit_queue(manifest, snapshot.lineage_id)
        staged = _stage(manifest, change, snapshot) if rounds < ROUNDS_BEFORE_HOLDING else None
        if staged is None and rounds < ROUNDS_BEFORE_HOLDING:
            return None
        turn: QueuedChange[Commit] = QueuedChange(deadline, alone=True)
        with queue.turn(turn):
            if staged is None:
                snapshot = head_snapshot(manifest, change.request.branch)
                staged = _stage(manifest, change, snapshot, holding=True)
            if staged is None:
                return None
            try:
                if change.inspect is not None:  # moved, it would be another state
                    lineage = manifest.lineage(snapshot.lineage_id)
                    return publish_with_retry(lineage, snapshot.branch, staged)
                return publish_rebased(manifest, staged, snapshot)
            except (CleanupBegan, ExpectedVersionMismatch, SchemaMoved):
                if not (change.again() or _is_independent(manifest, staged, snapshot)):
                    raise
        if time.monotonic() > deadline:
            raise timed_out()
        rounds += 1


def _stage(
    manifest: Manifest, change: PendingChange, snapshot: Snapshot, *, holding: bool = False
) -> StagedCommit | None:
    """Prepare and stage a change on a state; None if nothing changes."""
    change.check_head(snapshot)
    committed = CommittedState(manifest, snapshot)
    changes = change.changes(committed)
    if changes is None:
        return None
    images = validate(changes, committed)
    if not images and not change.always:
        return None
    change.began = snapshot.head.last_cleanup if change.began is None else change.began
    staged = stage_changes(manifest, change.request, images, committed, change.commit_id)
    keys = keys_of(images, committed, committed.types_scanned.values())
    staged = replace(
        staged,
        began=change.began,
        footprint=keys.footprint(),
        requirements=keys.requirements(),
    )
    staged = staged if change.complete is None else change.complete(staged)
    return staged if change.inspect is None else change.inspect(staged, snapshot, holding=holding)


def publish_rebased(manifest: Manifest, staged: StagedCommit, snapshot: Snapshot) -> Commit:
    """Publish a staged commit on the newest state, to which it is moved if necessary."""
    lineage, moved = manifest.lineage(snapshot.lineage_id), staged
    while True:
        try:
            return publish_with_retry(lineage, snapshot.branch, compact_staged(manifest, moved))
        except ExpectedVersionMismatch:
            newer = rebase(manifest, staged, snapshot)
            if newer is None:
                raise
            moved = newer


def _is_independent(manifest: Manifest, staged: StagedCommit, base: Snapshot) -> bool:
    """Return whether no commit since a snapshot changed what a staged change relies on."""
    newer = footprints_since(manifest.lineage(base.lineage_id).state(), base.manifest_version)
    required = staged.requirements
    return required is not None and not any(footprint.overlaps(required) for footprint in newer)


def only_maintenance_since(manifest: Manifest, before: Snapshot) -> bool:
    """Return whether nothing but maintenance happened to a branch since a snapshot."""
    state = manifest.lineage(before.lineage_id).state()
    newer = commits_since(state, before)
    return all(commit.operation == MAINTENANCE_OPERATION for commit in newer)


def publish_with_retry(lineage: Lineage, branch: str, staged: StagedCommit) -> Commit:
    """Publish with retries: after losing to commits of other types nothing is prepared again."""
    for _ in range(MAX_PUBLISH_ROUNDS):
        try:
            return publish(lineage, branch, staged)
        except Contention as error:
            if error.code in _NOT_RETRYABLE:
                raise
    return publish(lineage, branch, staged)
