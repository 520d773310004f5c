"""Resolve branches, tags, commit IDs and times to immutable snapshots, and apply type scopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from omnigraph.catalog import AcceptedSchema
from omnigraph.commit.commit_log import (
    CommitLog,
    DatasetEntries,
    datasets_at_commit,
    first_parents,
    newest_own_commit,
)
from omnigraph.commit.history import find_commit
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import CommitRow
from omnigraph.commit.model import MAIN, Commit, DatasetEntry, Head, Snapshot, is_commit_id
from omnigraph.commit.staged_commit import StagedCommit
from omnigraph.errors import GraphCorrupt, NotFound, StorageUnavailable, VersionReclaimed
from omnigraph.policy.permissions import TypeScope
from omnigraph.policy.schema_view import SchemaView, reduce_schema

SnapshotRef: TypeAlias = str | datetime | int | Snapshot
"""A branch, tag, commit ID, timestamp (also as ISO text), manifest version or snapshot."""


def resolve_snapshot(manifest: Manifest, at: SnapshotRef, *, branch: str = MAIN) -> Snapshot:
    """Return the snapshot that `at` refers to.

    A timestamp means the newest commit of `branch` at or before it; a manifest version is one of
    `branch`.
    """
    if isinstance(at, Snapshot):
        return at
    if isinstance(at, int):
        return snapshot_at_version(manifest, at, branch)
    if isinstance(at, datetime):
        return snapshot_at_time(manifest, at, branch)
    text = at.strip()
    if text == MAIN or text in manifest.branches():
        return head_snapshot(manifest, text)
    tag = manifest.tags().get(text)
    if tag is not None:
        return snapshot_of_commit(manifest, tag.commit_id)
    if is_commit_id(text):
        return snapshot_of_commit(manifest, text)
    try:
        return snapshot_at_time(manifest, datetime.fromisoformat(text), branch)
    except ValueError:
        message = f"'{text}' does not match any branch, tag, commit ID or timestamp"
        raise NotFound(message, code="target_not_found", target=text) from None


def head_snapshot(manifest: Manifest, branch_name: str) -> Snapshot:
    """Return the newest state of a branch."""
    branch, state = manifest.head_state(branch_name)
    snapshot = manifest.snapshots.get(branch.lineage_id)
    if snapshot is None or snapshot.manifest_version != state.version:
        snapshot = _snapshot(manifest, branch.name, branch.lineage_id, state)
        manifest.snapshots.put(branch.lineage_id, snapshot)
    return snapshot


def recent_snapshot(manifest: Manifest, seen: Sequence[Snapshot | None]) -> Snapshot | None:
    """Return the newest state of a branch that is cached, if it has all states that were read.

    It may miss commits that none of the readers can know of. None if storage should be read, as on
    a disk, where that costs little and other processes write while a change waits for its turn.
    """
    read = [snapshot for snapshot in seen if snapshot is not None]
    lineages = {snapshot.lineage_id for snapshot in read}
    if manifest.location.is_local or not read or len(read) < len(seen) or len(lineages) > 1:
        return None
    state = manifest.lineage(read[0].lineage_id).cached_state
    if state is None or state.version < max(snapshot.manifest_version for snapshot in read):
        return None
    return _snapshot(manifest, read[0].branch, read[0].lineage_id, state)


def snapshot_at_version(manifest: Manifest, version: int, branch_name: str = MAIN) -> Snapshot:
    """Return the state of a branch at a manifest version, from history if that was removed."""
    branch, state = manifest.head_state(branch_name)
    try:
        older = manifest.lineage(branch.lineage_id).at(version)
        return _snapshot(manifest, branch.name, branch.lineage_id, older)
    except VersionReclaimed:
        if not 1 <= version < state.version:
            raise
    place = newest_own_commit(state, lambda row: row.commit.manifest_version <= version)
    if place is None:  # the state of the branch before its first own commit
        log = CommitLog(manifest.history_states(state))
        line = (log[commit_id] for commit_id in first_parents(log, state.head.commit_id))
        row = next(row for row in line if row.lineage_id != branch.lineage_id)
    else:
        row, _ = place
    return _snapshot_from_history(manifest, branch.name, state, row, version)


def snapshot_of_commit(manifest: Manifest, commit_id: str) -> Snapshot:
    """Return the state of a commit: its manifest version, or history if that was removed."""
    row, holder = find_commit(manifest, commit_id)
    branches = manifest.branches().values()
    lineage_id = holder.lineage.lineage_id
    own = (branch.name for branch in branches if branch.lineage_id == lineage_id)
    descendants = (branch.name for branch in branches if lineage_id in branch.ancestor_lineages)
    name = next(own, None) or next(descendants, MAIN)
    if row.lineage_id == lineage_id:
        # An old version is only a shortcut: if it cannot be read, history gives the same state.
        with suppress(VersionReclaimed, NotFound, GraphCorrupt, StorageUnavailable):
            state = holder.lineage.at(row.commit.manifest_version)
            if state.head.commit_id == commit_id:
                return _snapshot(manifest, name, lineage_id, state)
            if row.state is not None:
                return _snapshot(manifest, name, lineage_id, _before_group_end(state, row))
    return _snapshot_from_history(manifest, name, holder, row, row.commit.manifest_version)


def _before_group_end(state: LineageState, row: CommitRow) -> LineageState:
    """Return the state of a commit that is not the last of its manifest version."""
    assert row.state is not None, "it was published with later commits"
    head = replace(
        state.head,
        commit_id=row.commit.id,
        datasets={**state.head.datasets, **{entry.key: entry for entry in row.state}},
        created_at=row.commit.created_at,
        generation=row.generation,
    )
    return replace(state, head=head)


def _snapshot_from_history(
    manifest: Manifest, name: str, holder: LineageState, row: CommitRow, version: int
) -> Snapshot:
    """Return the state of a commit from the history of a lineage that descends from it."""
    snapshot = snapshot_in_history(manifest, tuple(manifest.history_states(holder)), row)
    return replace(snapshot, branch=name, manifest_version=version)


def snapshot_in_history(
    manifest: Manifest, states: Sequence[LineageState], row: CommitRow
) -> Snapshot:
    """Return the state of a commit from lineages, of which the first descends from it."""
    older = _state_at(states[0], row, datasets_at_commit(states, row))
    return _snapshot(manifest, row.commit.branch, states[0].lineage.lineage_id, older)


def _state_at(holder: LineageState, row: CommitRow, datasets: DatasetEntries) -> LineageState:
    """Return the state that a lineage has at a commit of its history."""
    commit = row.commit
    head = Head(
        commit_id=commit.id,
        schema_hash=commit.schema_hash,
        datasets=datasets,
        ancestor_lineages=holder.head.ancestor_lineages,
        created_at=commit.created_at,
        generation=row.generation,
    )
    return replace(holder, version=commit.manifest_version, head=head)


def first_parent_snapshots(
    manifest: Manifest, name: str, holder: LineageState, rows: Sequence[CommitRow], log: CommitLog
) -> Iterator[Snapshot]:
    """Yield the states of consecutive commits on a line of first parents, the oldest first."""
    if not all(row.generation for row in rows):
        log.read_all()
    changes = log.dataset_changes()
    entries = datasets_at_commit(manifest.history_states(holder), rows[0])
    for row in rows:
        changes.apply(row.commit.id, entries)
        state = _state_at(holder, row, dict(entries))
        yield _snapshot(manifest, name, holder.lineage.lineage_id, state)


def snapshot_at_time(manifest: Manifest, instant: datetime, branch_name: str) -> Snapshot:
    """Return the state of a branch at a time; a time without a zone is UTC."""
    when = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    _, state = manifest.head_state(branch_name)
    row = _commit_at_time(manifest, state, when)
    if row is not None:
        return snapshot_of_commit(manifest, row.commit.id)
    message = f"branch '{branch_name}' has no commit at or before {when.isoformat()}"
    raise NotFound(message, code="target_not_found", target=when.isoformat())


def _commit_at_time(manifest: Manifest, state: LineageState, when: datetime) -> CommitRow | None:
    """Return the newest commit on the first-parent line of a head at or before a time."""
    unordered = False

    def reaches(row: CommitRow) -> bool:
        nonlocal unordered
        unordered |= not row.generation
        return row.commit.created_at <= when

    place = newest_own_commit(state, reaches)
    if not unordered and (place is not None or state.lineage is manifest.main):
        return None if place is None else place[0]
    # The commit was inherited, or an older release may have stamped it before its parent.
    log = CommitLog(manifest.history_states(state))
    for commit_id in first_parents(log, state.head.commit_id):
        row = log[commit_id]
        if row.commit.created_at <= when:
            return row
        if row.generation and row.lineage_id in (None, *state.head.ancestor_lineages):
            return _commit_at_time(manifest, manifest.lineage(row.lineage_id).state(), when)
    return None


def _snapshot(
    manifest: Manifest, name: str, lineage_id: str | None, state: LineageState
) -> Snapshot:
    schema, source = manifest.schema(state.head.schema_hash, state)
    return Snapshot(
        branch=name,
        lineage_id=lineage_id,
        manifest_version=state.version,
        head=state.head,
        schema=schema,
        schema_source=source,
    )


# --- staged commits ----------------------------------------------------------------------------


def snapshot_of_staged(snapshot: Snapshot, staged: StagedCommit) -> Snapshot:
    """Return the state that a staged commit would make of a snapshot; no one else can see it."""
    datasets = dict(snapshot.head.datasets)
    for dataset in staged.datasets:
        before = datasets.get(dataset.key)
        if dataset.physical is None:
            datasets.pop(dataset.key, None)
            continue
        datasets[dataset.key] = DatasetEntry(
            *dataset.key,
            version=1 if before is None else before.version + 1,
            physical=dataset.physical,
            rows=dataset.rows,
            excluded=dataset.excluded,
        )
    staged_state = replace(snapshot, head=replace(snapshot.head, datasets=datasets))
    if staged.schema is None:
        return staged_state
    return replace(
        staged_state,
        head=replace(staged_state.head, schema_hash=staged.schema.hash),
        schema=AcceptedSchema.from_json(staged.schema.document),
        schema_source=staged.schema.source,
    )


# --- scopes: snapshots reduced to the visible types and properties ------------------------------
# Hidden types are absent from the schema of the snapshot, so no reader can find them.


def apply_scope(manifest: Manifest, snapshot: Snapshot, scope: TypeScope) -> Snapshot:
    """Return a snapshot reduced to a scope."""
    whole = snapshot.whole or snapshot
    if scope.is_everything:
        return whole
    view = _schema_view(
        manifest, whole.head.schema_hash, (whole.schema, whole.schema_source), scope
    )
    visible = {(t.id, t.incarnation) for t in view.schema.types}
    datasets = {key: entry for key, entry in whole.head.datasets.items() if key in visible}
    return replace(
        whole,
        head=replace(whole.head, datasets=datasets),
        schema=view.schema,
        schema_source=view.source,
        scope=scope,
        whole=whole,
    )


def apply_scope_to_schema(
    manifest: Manifest, schema_hash: str, state: LineageState, scope: TypeScope
) -> AcceptedSchema:
    """Return an accepted schema reduced to a scope."""
    accepted = manifest.schema(schema_hash, state)
    if scope.is_everything:
        return accepted[0]
    return _schema_view(manifest, schema_hash, accepted, scope).schema


def apply_scope_to_commit(commit: Commit, scope: TypeScope) -> Commit:
    """Return a commit reduced to a scope: counts are shown only if all types are visible."""
    return commit if scope.is_everything else replace(commit, counts={})


def _schema_view(
    manifest: Manifest, schema_hash: str, accepted: tuple[AcceptedSchema, str], scope: TypeScope
) -> SchemaView:
    key = (schema_hash, scope)
    return manifest.views.get(key) or manifest.views.put(key, reduce_schema(*accepted, scope))
