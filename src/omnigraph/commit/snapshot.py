"""This module resolves what a reader asks for into one immutable snapshot."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from omnigraph.commit.history import find_commit, first_parents, read_commits, refold
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Head, Snapshot
from omnigraph.commit.names import is_commit_id
from omnigraph.errors import NotFound, VersionReclaimed

Target: TypeAlias = str | datetime | int | Snapshot
"""A branch, tag, commit id, instant (also as ISO text), manifest version, or a snapshot itself."""


def resolve_snapshot(manifest: Manifest, at: Target, *, branch: str = MAIN) -> Snapshot:
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
        manifest.snapshots[branch.native] = known
    return known


def snapshot_at_version(manifest: Manifest, version: int, branch_name: str = MAIN) -> Snapshot:
    """Return the state of a branch at a manifest version."""
    branch, _ = manifest.head_state(branch_name)
    state = manifest.lineage(branch.native).at(version)
    return _snapshot(manifest, branch.name, branch.native, state)


def snapshot_of_commit(manifest: Manifest, commit_id: str) -> Snapshot:
    """Return the state a commit made: its manifest version, or its history when that is gone."""
    row, holder = find_commit(manifest, commit_id)
    names = {None: MAIN, **{b.native: b.name for b in manifest.branches().values()}}
    if row.native in names:
        with suppress(VersionReclaimed, NotFound):
            state = manifest.lineage(row.native).at(row.commit.manifest_version)
            if state.head.commit_id == commit_id:
                return _snapshot(manifest, names[row.native], row.native, state)
    head = Head(
        commit_id=row.commit.id,
        schema_hash=row.commit.schema_hash,
        datasets=refold(holder, row.commit.id),
    )
    older = replace(holder, version=row.commit.manifest_version, head=head)
    native = holder.lineage.native
    return _snapshot(manifest, names.get(native, MAIN), native, older)


def snapshot_at_time(manifest: Manifest, instant: datetime, branch_name: str) -> Snapshot:
    """Return the state of a branch at an instant; a time without zone is UTC."""
    when = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    _, state = manifest.head_state(branch_name)
    commits = read_commits(state)
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
