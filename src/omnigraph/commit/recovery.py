"""Roll operations of dead processes forward or back, and record each in the audit.

Taking a slow writer for dead is harmless: rolling back publishes the commit's ID as aborted, so the
writer's own publish fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pyarrow as pa
from ulid import ULID

from omnigraph.commit.intent_log import IntentLog, OperationIntent
from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import CommitRow, commit_key, commit_row, read_commit
from omnigraph.commit.model import Commit
from omnigraph.commit.protection import BranchProtected
from omnigraph.commit.publish import publish, retry_swap
from omnigraph.errors import (
    Contention,
    ExpectedVersionMismatch,
    GraphCorrupt,
    NotFound,
    PreconditionFailed,
    SchemaMoved,
)
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import AUDIT

STALE_AFTER = timedelta(minutes=10)
"""An intent without a heartbeat for this long belongs to a dead process."""

RECOVERY_ACTOR = "omnigraph:recovery"

AUDIT_SCHEMA = pa.schema(
    [
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("per_table_outcomes", pa.string(), nullable=False),
        pa.field("created_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)


class RecoveryKind(StrEnum):
    """The outcome of an intent, a repair, or a version that a power failure left incomplete."""

    ALREADY_PUBLISHED = "AlreadyPublished"
    ROLLED_FORWARD = "RolledForward"
    ROLLED_BACK = "RolledBack"
    ORPHANED_BRANCH_DISCARDED = "OrphanedBranchDiscarded"
    TORN_VERSION_SET_ASIDE = "TornVersionSetAside"
    UNSYNCED_VERSION_LOST = "UnsyncedVersionLost"
    RETURNED_TO_LAST_GOOD = "ReturnedToLastGood"


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    """One intent that recovery resolved, and the outcome."""

    intent: OperationIntent
    kind: RecoveryKind


def recover(manifest: Manifest, *, stale_after: timedelta | None = None) -> list[RecoveryAction]:
    """Resolve every intent whose process is dead, and append an audit row for each.

    Without `stale_after`, resumable operations get a longer time before they count as dead.
    """
    intents = IntentLog(manifest.objects)
    done: list[RecoveryAction] = []
    listed = intents.list()
    now = manifest.objects.now() if listed else datetime.now(UTC)
    for intent in listed:
        limit = (intent.resume_window or STALE_AFTER) if stale_after is None else stale_after
        if max(now - intent.heartbeat, timedelta(0)) < limit:
            continue
        try:
            recovery = RecoveryAction(intent, _resolve_intent(manifest, intent))
        except Contention:
            continue  # too many concurrent writers; the intent is harmless until the next recovery
        if intent.id not in (row["operation_id"] for row in read_audit(manifest)):
            manifest.datasets.append(AUDIT, _audit_rows(recovery))
        manifest.datasets.observe("recovery: audited")
        intents.end(intent)
        manifest.datasets.observe("recovery: ended")
        done.append(recovery)
    return done


def abort_intent(manifest: Manifest, intent: OperationIntent) -> RecoveryKind:
    """Resolve an intent whose own writer failed, so that no process can publish it later.

    A writer calls this before it reports a failure: recovery may have taken it for dead and rolled
    it forward. In that case the writer has succeeded.
    """
    kind = _resolve_intent(manifest, replace(intent, complete=False))
    IntentLog(manifest.objects).end(intent)
    return kind


def read_audit(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the audit rows of all recoveries of the graph, oldest first."""
    try:
        handle = manifest.datasets.open(AUDIT)
    except NotFound:
        return []
    with translate_errors("reading the audit"):
        rows: list[dict[str, Any]] = handle.to_table().to_pylist()
    try:
        for row in rows:
            row["per_table_outcomes"] = json.loads(row["per_table_outcomes"])
        return sorted(rows, key=lambda row: (row["created_at"], row["operation_id"]))
    except (LookupError, ValueError, TypeError) as error:
        message = f"{AUDIT} cannot be read; it is only a log: remove the folder to continue"
        raise GraphCorrupt(message, cause=str(error)) from error


def _resolve_intent(manifest: Manifest, intent: OperationIntent) -> RecoveryKind:
    lineage = manifest.lineage(intent.lineage_id)
    try:
        state = lineage.state()
    except NotFound:
        return RecoveryKind.ORPHANED_BRANCH_DISCARDED
    outcome = _commit_outcome(state, intent)
    if outcome is not None:
        lineage.sync(state.version)  # its writer may have died before it did
        return outcome
    if state.head.closed:
        return RecoveryKind.ORPHANED_BRANCH_DISCARDED
    if intent.complete:
        try:
            publish(lineage, intent.branch, intent.staged)
        except NotFound:
            return RecoveryKind.ORPHANED_BRANCH_DISCARDED
        except (
            BranchProtected,
            ExpectedVersionMismatch,
            SchemaMoved,
            PreconditionFailed,
            Contention,
        ):
            pass
        else:
            return RecoveryKind.ROLLED_FORWARD
    _fence_commit_id(lineage, intent)
    manifest.datasets.observe("recovery: fenced")
    outcome = _commit_outcome(lineage.state(), intent)
    assert outcome is not None, "a fenced ID has a row"
    if outcome is RecoveryKind.ROLLED_BACK:
        _delete_staged(manifest, intent)
    return outcome


def _commit_outcome(state: LineageState, intent: OperationIntent) -> RecoveryKind | None:
    """Return whether the commit was published or aborted, None if neither."""
    row = state.row(commit_key(intent.staged.id))
    if row is None:
        return None
    aborted = read_commit(row).aborted
    return RecoveryKind.ROLLED_BACK if aborted else RecoveryKind.ALREADY_PUBLISHED


def _fence_commit_id(lineage: Lineage, intent: OperationIntent) -> None:
    """Publish the commit's ID as aborted unless it is already published; the head is unchanged."""

    def attempt() -> None:
        state = lineage.state()
        if _commit_outcome(state, intent) is not None:
            return
        fence = Commit(
            id=intent.staged.id,
            parents=(),
            branch=intent.branch,
            actor=RECOVERY_ACTOR,
            message=None,
            operation=intent.staged.operation,
            created_at=datetime.now(UTC),
            manifest_version=state.version + 1,
        )
        lineage.swap(
            state, state.head, [commit_row(CommitRow(fence, lineage.lineage_id, aborted=True))]
        )

    retry_swap(attempt)


def _delete_staged(manifest: Manifest, intent: OperationIntent) -> None:
    """Delete the manifests of staged versions; cleanup removes the files only they referred to."""
    staged = (d for d in intent.staged.datasets if d.physical not in (None, d.expected))
    manifest.objects.delete(f"{d.path}/_versions/d{d.physical}.manifest" for d in staged)


def record_repair(
    manifest: Manifest,
    kind: RecoveryKind,
    branch: str,
    actor: str | None,
    outcomes: Sequence[Mapping[str, Any]],
    operation: str = "repair",
) -> None:
    """Append the repair of a branch to the audit."""
    row = {
        "operation_id": str(ULID()),
        "graph_commit_id": "",
        "recovery_kind": str(kind),
        "recovery_for_actor": actor,
        "operation": operation,
        "branch": branch,
        "per_table_outcomes": json.dumps(outcomes),
        "created_at": datetime.now(UTC),
    }
    manifest.datasets.append(AUDIT, pa.Table.from_pylist([row], schema=AUDIT_SCHEMA))


def _audit_rows(recovery: RecoveryAction) -> pa.Table:
    intent = recovery.intent
    outcomes = [
        {
            "table_key": dataset.table_key,
            "from_version": str(dataset.physical),
            "to_version": str(dataset.expected),
        }
        for dataset in intent.staged.datasets
    ]
    row = {
        "operation_id": intent.id,
        "graph_commit_id": intent.staged.id,
        "recovery_kind": str(recovery.kind),
        "recovery_for_actor": intent.staged.actor,
        "operation": intent.staged.operation,
        "branch": intent.branch,
        "per_table_outcomes": json.dumps(outcomes),
        "created_at": datetime.now(UTC),
    }
    return pa.Table.from_pylist([row], schema=AUDIT_SCHEMA)
