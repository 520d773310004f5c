"""This module finishes or undoes what a dead process left in flight, and writes down what it did.

A wrong guess about a slow writer is harmless: undoing publishes the commit's id as given up, so the
writer's own publish fails on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pyarrow as pa

from omnigraph.commit.intent_log import IntentLog, OperationIntent
from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import commit_key, commit_row, read_commit
from omnigraph.commit.model import Commit
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
from omnigraph.storage.layout import AUDIT, dataset_path

STALE_AFTER = timedelta(minutes=10)
"""An intent without a heartbeat for this long belongs to a dead process."""

RECOVERY_ACTOR = "omnigraph:recovery"

_AUDIT_SCHEMA = pa.schema(
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
    """What became of an intent."""

    ALREADY_PUBLISHED = "AlreadyPublished"
    ROLLED_FORWARD = "RolledForward"
    ROLLED_BACK = "RolledBack"
    ORPHANED_BRANCH_DISCARDED = "OrphanedBranchDiscarded"


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    """One thing recovery did."""

    intent: OperationIntent
    kind: RecoveryKind


def recover(manifest: Manifest, *, stale_after: timedelta | None = None) -> list[RecoveryAction]:
    """Settle every intent whose process is dead, and append an audit row for each.

    Without `stale_after`, what somebody may want to go on with is left alone for longer.
    """
    intents = IntentLog(manifest.objects)
    done: list[RecoveryAction] = []
    listed = intents.list()
    now = manifest.objects.now() if listed else datetime.now(UTC)
    for intent in listed:
        limit = (intent.patience or STALE_AFTER) if stale_after is None else stale_after
        if max(now - intent.heartbeat, timedelta(0)) < limit:
            continue
        try:
            recovery = RecoveryAction(intent, _resolve_intent(manifest, intent))
        except Contention:
            continue  # writers left no gap to undo it in; it is harmless until the next recovery
        if intent.id not in (row["operation_id"] for row in read_audit(manifest)):
            manifest.datasets.append(AUDIT, _audit_rows(recovery))
        manifest.datasets.observe("recovery: audited")
        intents.end(intent)
        manifest.datasets.observe("recovery: ended")
        done.append(recovery)
    return done


def abort_intent(manifest: Manifest, intent: OperationIntent) -> RecoveryKind:
    """Settle an intent whose own writer gives up, so that nobody can publish it any more.

    A writer does this before it reports a failure: recovery may have taken it for dead and be about
    to finish its work. Then that is how it ended, and the writer has succeeded.
    """
    kind = _resolve_intent(manifest, replace(intent, complete=False))
    IntentLog(manifest.objects).end(intent)
    return kind


def read_audit(manifest: Manifest) -> list[dict[str, Any]]:
    """Return what recovery did in the life of the graph, oldest first."""
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
        message = f"{AUDIT} cannot be read; it is only a log: remove the folder to go on"
        raise GraphCorrupt(message, cause=str(error)) from error


def _resolve_intent(manifest: Manifest, intent: OperationIntent) -> RecoveryKind:
    lineage = manifest.lineage(intent.native)
    try:
        state = lineage.state()
    except NotFound:
        return RecoveryKind.ORPHANED_BRANCH_DISCARDED
    known = _commit_outcome(state, intent)
    if known is not None:
        return known
    if state.head.closed:
        return RecoveryKind.ORPHANED_BRANCH_DISCARDED
    if intent.complete:
        try:
            publish(lineage, intent.branch, intent.staged)
        except NotFound:
            return RecoveryKind.ORPHANED_BRANCH_DISCARDED
        except (ExpectedVersionMismatch, SchemaMoved, PreconditionFailed, Contention):
            pass
        else:
            return RecoveryKind.ROLLED_FORWARD
    _fence_commit_id(lineage, intent)
    manifest.datasets.observe("recovery: fenced")
    fate = _commit_outcome(lineage.state(), intent)
    assert fate is not None, "a fenced id has a row"
    if fate is RecoveryKind.ROLLED_BACK:
        _delete_staged(manifest, intent)
    return fate


def _commit_outcome(state: LineageState, intent: OperationIntent) -> RecoveryKind | None:
    """Tell what became of the commit, None while nothing has."""
    found = state.row(commit_key(intent.staged.id))
    if found is None:
        return None
    aborted = read_commit(found.row).aborted
    return RecoveryKind.ROLLED_BACK if aborted else RecoveryKind.ALREADY_PUBLISHED


def _fence_commit_id(lineage: Lineage, intent: OperationIntent) -> None:
    """Publish the commit's id as given up, unless its slow writer was first; the head stays."""

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
        lineage.swap(state, state.head, [commit_row(fence, lineage.native, aborted=True)])

    retry_swap(attempt)


def _delete_staged(manifest: Manifest, intent: OperationIntent) -> None:
    """Delete the manifests of staged versions; cleanup sweeps the files only they referred to."""
    paths = []
    for dataset in intent.staged.datasets:
        if dataset.physical is not None and dataset.physical != dataset.expected:
            kind = dataset.table_key.partition(":")[0]
            folder = dataset_path(kind, dataset.type_id, dataset.incarnation)
            paths.append(f"{folder}/_versions/d{dataset.physical}.manifest")
    manifest.objects.delete(paths)


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
    return pa.Table.from_pylist([row], schema=_AUDIT_SCHEMA)
