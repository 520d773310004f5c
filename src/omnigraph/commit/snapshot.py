"""This module resolves what a reader asks for into one immutable snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from omnigraph.catalog import AcceptedSchema, TypeKind
from omnigraph.commit.history import (
    CommitHistory,
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
"""A branch, tag, commit id, instant (also as ISO text), manifest version, or a snapshot itself."""


def resolve_snapshot(manifest: Manifest, at: SnapshotRef, *, branch: str = MAIN) -> Snapshot:
    """Return the state `at` names; an instant means the newest commit of `branch` not after it.

    Manifest versions are those of `branch` too.
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
        message = f"'{text}' is no branch, tag, commit id or time"
        raise NotFound(message, code="target_not_found", target=text) from None


def head_snapshot(manifest: Manifest, branch_name: str) -> Snapshot:
    """Return the newest state of a branch."""
    branch, state = manifest.head_state(branch_name)
    known = manifest.snapshots.get(branch.native)
    if known is None or known.manifest_version != state.version:
        known = _snapshot(manifest, branch.name, branch.native, state)
        manifest.snapshots.put(branch.native, known)
    return known


def snapshot_at_version(manifest: Manifest, version: int, branch_name: str = MAIN) -> Snapshot:
    """Return the state of a branch at a manifest version, from its history when that is gone."""
    branch, state = manifest.head_state(branch_name)
    try:
        found = manifest.lineage(branch.native).at(version)
        return _snapshot(manifest, branch.name, branch.native, found)
    except VersionReclaimed:
        if not 1 <= version < state.version:
            raise
    commits = read_commits(manifest.line(state))
    for commit_id in first_parents(commits, state.head.commit_id):
        row = commits[commit_id]
        # What the branch inherited was its state before its first own commit.
        if row.native != branch.native or row.commit.manifest_version <= version:
            return _snapshot_from_history(manifest, branch.name, state, row, version)
    raise GraphCorrupt(f"branch '{branch.name}' has no history at manifest version {version}")


def snapshot_of_commit(manifest: Manifest, commit_id: str) -> Snapshot:
    """Return the state a commit made: its manifest version, or its history when that is gone."""
    row, holder = find_commit(manifest, commit_id)
    branches = manifest.branches().values()
    native = holder.lineage.native
    own = (branch.name for branch in branches if branch.native == native)
    heirs = (branch.name for branch in branches if native in branch.origins)
    name = next(own, None) or next(heirs, MAIN)
    if row.native == native:
        # An old version is only a shortcut: if it cannot be read, history gives the same.
        with suppress(VersionReclaimed, NotFound, GraphCorrupt, StorageUnavailable):
            state = holder.lineage.at(row.commit.manifest_version)
            if state.head.commit_id == commit_id:
                return _snapshot(manifest, name, native, state)
    return _snapshot_from_history(manifest, name, holder, row, row.commit.manifest_version)


def _snapshot_from_history(
    manifest: Manifest, name: str, holder: LineageState, row: CommitRow, version: int
) -> Snapshot:
    """Return the state a commit made, from the history of a lineage that descends from it."""
    head = Head(
        commit_id=row.commit.id,
        schema_hash=row.commit.schema_hash,
        datasets=datasets_at_commit(manifest.line(holder), row.commit.id),
        origins=holder.head.origins,
        created_at=row.commit.created_at,
    )
    older = replace(holder, version=version, head=head)
    return _snapshot(manifest, name, holder.lineage.native, older)


def first_parent_snapshots(
    manifest: Manifest,
    name: str,
    holder: LineageState,
    history: CommitHistory,
    line: Sequence[CommitId],
) -> list[Snapshot]:
    """Return the states of commits that stand on one line of first parents, the oldest first."""
    found = []
    datasets = (dict(fold) for fold in datasets_at_commits(history, reversed(line)))
    for commit_id, shown in zip(line, datasets, strict=True):
        commit = history.commits[commit_id].commit
        head = Head(
            commit_id=commit_id,
            schema_hash=commit.schema_hash,
            datasets=shown,
            origins=holder.head.origins,
            created_at=commit.created_at,
        )
        state = replace(holder, version=commit.manifest_version, head=head)
        found.append(_snapshot(manifest, name, holder.lineage.native, state))
    return found


def snapshot_at_time(manifest: Manifest, instant: datetime, branch_name: str) -> Snapshot:
    """Return the state of a branch at an instant; a time without zone is UTC."""
    when = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    _, state = manifest.head_state(branch_name)
    commits = read_commits(manifest.line(state))
    for commit_id in first_parents(commits, state.head.commit_id):
        if commits[commit_id].commit.created_at <= when:
            return snapshot_of_commit(manifest, commit_id)
    message = f"branch '{branch_name}' has no commit at or before {when.isoformat()}"
    raise NotFound(message, code="target_not_found", target=when.isoformat())


def _snapshot(manifest: Manifest, name: str, native: str | None, state: LineageState) -> Snapshot:
    schema, source = manifest.schema(state.head.schema_hash, state)
    return Snapshot(
        branch=name,
        native=native,
        manifest_version=state.version,
        head=state.head,
        schema=schema,
        schema_source=source,
    )


# ----------------------------------------------------------------------
# This module shows a part of a state: the types and properties somebody may see.
#
# What is left out is not there: the snapshot has a schema without it, so that nothing that reads by
# the snapshot can find it.


MAX_CACHED_VIEWS = 256
"""Reduced schemas that are kept."""


def apply_scope(manifest: Manifest, snapshot: Snapshot, scope: TypeScope) -> Snapshot:
    """Return what a scope shows of a state."""
    whole = snapshot.whole or snapshot
    if scope.is_everything:
        return whole
    view = _schema_view(
        manifest, whole.head.schema_hash, (whole.schema, whole.schema_source), scope
    )
    kinds = (TypeKind.NODE, TypeKind.EDGE)
    shown = {(t.id, t.incarnation) for kind in kinds for t in view.schema.of_kind(kind)}
    datasets = {key: entry for key, entry in whole.head.datasets.items() if key in shown}
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
    """Return what a scope shows of an accepted schema."""
    accepted = manifest.schema(schema_hash, state)
    return (
        accepted[0]
        if scope.is_everything
        else _schema_view(manifest, schema_hash, accepted, scope).schema
    )


def apply_scope_to_commit(commit: Commit, scope: TypeScope) -> Commit:
    """Return what a scope shows of a commit: counts tell about all types, or are not told."""
    return commit if scope.is_everything else replace(commit, counts={})


def _schema_view(
    manifest: Manifest, schema_hash: str, accepted: tuple[AcceptedSchema, str], scope: TypeScope
) -> SchemaView:
    key = (schema_hash, scope)
    found = manifest.views.get(key)
    if found is None:
        if len(manifest.views) >= MAX_CACHED_VIEWS:
            manifest.views.clear()
        found = reduce_schema(*accepted, scope)
        manifest.views[key] = found
    return found
