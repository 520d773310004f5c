"""Resolve branches, tags, commit IDs and times to immutable snapshots, and apply type scopes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from omnigraph.catalog import AcceptedSchema
from omnigraph.commit.history import (
    CommitHistory,
    DatasetEntries,
    datasets_at_commit,
    datasets_at_commits,
    find_commit,
    first_parents,
    read_commits,
)
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import CommitRow
from omnigraph.commit.model import MAIN, Commit, CommitId, Head, Snapshot, is_commit_id
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


def snapshot_at_version(manifest: Manifest, version: int, branch_name: str = MAIN) -> Snapshot:
    """Return the state of a branch at a manifest version, from history if that was removed."""
    branch, state = manifest.head_state(branch_name)
    try:
        older = manifest.lineage(branch.lineage_id).at(version)
        return _snapshot(manifest, branch.name, branch.lineage_id, older)
    except VersionReclaimed:
        if not 1 <= version < state.version:
            raise
    commits = read_commits(manifest.history_states(state))
    for commit_id in first_parents(commits, state.head.commit_id):
        row = commits[commit_id]
        # An inherited commit is the state of the branch before its first own commit.
        if row.lineage_id != branch.lineage_id or row.commit.manifest_version <= version:
            return _snapshot_from_history(manifest, branch.name, state, row, version)
    raise GraphCorrupt(f"branch '{branch.name}' has no history at manifest version {version}")


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
    )
    return replace(state, head=head)


def _snapshot_from_history(
    manifest: Manifest, name: str, holder: LineageState, row: CommitRow, version: int
) -> Snapshot:
    """Return the state of a commit from the history of a lineage that descends from it."""
    datasets = datasets_at_commit(manifest.history_states(holder), row.commit.id)
    older = replace(_state_at(holder, row.commit, datasets), version=version)
    return _snapshot(manifest, name, holder.lineage.lineage_id, older)


def _state_at(holder: LineageState, commit: Commit, datasets: DatasetEntries) -> LineageState:
    """Return the state that a lineage has at a commit of its history."""
    head = Head(
        commit_id=commit.id,
        schema_hash=commit.schema_hash,
        datasets=datasets,
        ancestor_lineages=holder.head.ancestor_lineages,
        created_at=commit.created_at,
    )
    return replace(holder, version=commit.manifest_version, head=head)


def first_parent_snapshots(
    manifest: Manifest,
    name: str,
    holder: LineageState,
    history: CommitHistory,
    commit_ids: Sequence[CommitId],
) -> list[Snapshot]:
    """Return the states of commits on one line of first parents, the oldest first."""
    datasets = (dict(entries) for entries in datasets_at_commits(history, reversed(commit_ids)))
    pairs = zip((history.commits[id_].commit for id_ in commit_ids), datasets, strict=True)
    states = (_state_at(holder, commit, entries) for commit, entries in pairs)
    return [_snapshot(manifest, name, holder.lineage.lineage_id, state) for state in states]


def snapshot_at_time(manifest: Manifest, instant: datetime, branch_name: str) -> Snapshot:
    """Return the state of a branch at a time; a time without a zone is UTC."""
    when = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    _, state = manifest.head_state(branch_name)
    commits = read_commits(manifest.history_states(state))
    for commit_id in first_parents(commits, state.head.commit_id):
        if commits[commit_id].commit.created_at <= when:
            return snapshot_of_commit(manifest, commit_id)
    message = f"branch '{branch_name}' has no commit at or before {when.isoformat()}"
    raise NotFound(message, code="target_not_found", target=when.isoformat())


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
