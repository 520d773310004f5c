"""This module creates, lists and deletes branches and tags, safely from several processes.

The rows `branch:<name>` and `tag:<name>` on main's lineage are the authority. The Lance branch
behind a graph branch is named by a fresh ULID, so names with slashes, shared prefixes and
re-created names need no rules of their own and caches never alias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from ulid import ULID

from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.manifest import Manifest, branch_gone
from omnigraph.commit.model import MAIN, Branch, Snapshot, Tag
from omnigraph.commit.names import check_name
from omnigraph.commit.publish import retrying, upkeep
from omnigraph.commit.rows import Row, branch_row, read_branch, read_tag, tag_row
from omnigraph.errors import (
    AlreadyExists,
    Contention,
    InvalidInput,
    NotFound,
    OmniError,
    StorageUnavailable,
    VersionReclaimed,
)
from omnigraph.storage.faults import translated
from omnigraph.storage.swap import Found

_Swap: TypeAlias = tuple[Sequence[Row], Sequence[Found]]
"""Rows to write, and rows they replace."""


def create_branch(
    manifest: Manifest, name: str, source: Snapshot, *, actor: str | None = None
) -> Branch:
    """Create a branch at the state of a snapshot: fork a lineage, then register its name."""
    name = check_name(name)
    if name in manifest.branches():
        raise _taken("branch", name)
    _check_source(manifest, source)
    manifest.check_readable(source)
    branch = Branch(
        name=name,
        native=str(ULID()),
        parent=source.branch,
        fork_commit=source.commit_id,
        actor=actor,
        created_at=datetime.now(UTC),
    )
    _fork(manifest, branch, source)

    def register(state: LineageState) -> _Swap:
        _check_source(manifest, source)
        old = manifest.registered(state).get(name)
        if old is None:
            return [branch_row(branch)], []
        if old.native == branch.native:
            return [], []
        if not (old.leaving and manifest.is_closed(old)):
            raise _taken("branch", name)
        rows, stale = _without(_registered(state), old)
        return [*rows, branch_row(branch)], stale

    try:
        _change_names(manifest, register)
    except (AlreadyExists, NotFound):
        remove_native(manifest, branch)
        raise
    return branch


def _check_source(manifest: Manifest, source: Snapshot) -> None:
    """Refuse a lineage that nobody names any more: cleanup may remove it."""
    if source.native is not None and source.native not in manifest.named_lineages():
        raise branch_gone(source.branch)


def _fork(manifest: Manifest, branch: Branch, source: Snapshot) -> None:
    """Make the native branch; its head is the source's, whatever the forked version showed."""
    assert branch.native is not None, "a new branch has a lineage"
    state = _origin(manifest.lineage(source.native), source)
    with translated(f"forking branch '{branch.name}'"):
        state.handle.create_branch(branch.native, state.version)
    manifest.datasets.observe("branch: forked")
    lineage = manifest.lineage(branch.native)

    def settle() -> None:
        forked = lineage.state()
        if forked.head.commit_id != source.commit_id or forked.head.closed:
            lineage.swap(forked, replace(source.head, closed=False))

    retrying(settle)


def _origin(lineage: Lineage, source: Snapshot) -> LineageState:
    """Return the version where the commit is the head, or the newest, which has its rows."""
    with suppress(NotFound, VersionReclaimed):
        state = lineage.at(source.manifest_version)
        if state.head.commit_id == source.commit_id:
            return state
    return lineage.state()


def delete_branch(manifest: Manifest, name: str, *, reparent: bool = False) -> None:
    """Delete a branch: announce it, close its lineage, forget its name.

    The branch is gone when its lineage is closed: from there on no process can publish on it or
    read it by name, whether or not this one lives to forget the name. The closed lineage itself
    stays until cleanup finds it old enough, because a writer that began before would recreate what
    is missing, and acknowledge its commit.
    """
    if name.strip() == MAIN:
        raise InvalidInput("main cannot be deleted", code="branch_name_invalid")
    finish_deletions(manifest)
    branch = manifest.branch(name)

    def announce(state: LineageState) -> _Swap:
        known = _registered(state)
        if branch.native not in _natives(known):
            raise branch_gone(branch.name)
        children = _descendants(known, branch)
        if children and not reparent:
            raise _has_descendants(branch, children)
        row = known[branch.name]
        leaving = replace(read_branch(row.row), leaving=True)
        return ([], []) if read_branch(row.row).leaving else ([branch_row(leaving)], [row])

    _change_names(manifest, announce)
    manifest.datasets.observe("branch: announced")
    _close(manifest, branch)
    manifest.datasets.observe("branch: closed")
    # It is gone whatever becomes of its name: whoever needs the name next finishes this.
    with suppress(Contention, StorageUnavailable):
        _forget(manifest, branch)
    manifest.datasets.observe("branch: forgotten")


def finish_deletions(manifest: Manifest) -> None:
    """Forget the names of branches whose deletion was interrupted after they were closed."""
    for branch in manifest.registered().values():
        if branch.leaving and manifest.is_closed(branch):
            _forget(manifest, branch)


def _forget(manifest: Manifest, branch: Branch) -> None:
    """Forget the name of a branch that is closed; its descendants go to its parent."""

    def forget(state: LineageState) -> _Swap:
        known = _registered(state)
        return _without(known, branch) if branch.native in _natives(known) else ([], [])

    _change_names(manifest, forget)


def remove_native(manifest: Manifest, branch: Branch) -> bool:
    """Remove the native branch unless a fork or tag needs it; cleanup tries again later."""
    if any(tag.native == branch.native for tag in manifest.tags().values()):
        return False
    try:
        with translated("removing a native branch"):
            manifest.main.state().handle.branches.delete(branch.native)
    except OmniError:
        return False
    return True


def _close(manifest: Manifest, branch: Branch) -> None:
    """Make sure that no process can publish on a branch that is going away."""
    lineage = manifest.lineage(branch.native)

    def close() -> None:
        state = lineage.state()
        if not state.head.closed:
            lineage.swap(state, replace(state.head, closed=True))

    with suppress(NotFound):
        retrying(close)


def _registered(state: LineageState) -> dict[str, Found]:
    """Return the rows of all branches by name, in one read."""
    rows = state.rows("object_type = 'graph_branch'")
    return {found.row["object_id"].removeprefix("branch:"): found for found in rows}


def _natives(known: Mapping[str, Found]) -> set[str]:
    return {found.row["table_branch"] for found in known.values()}


def _descendants(known: Mapping[str, Found], branch: Branch) -> list[Branch]:
    branches = [read_branch(found.row) for found in known.values()]
    return [child for child in branches if child.parent == branch.name]


def _without(known: Mapping[str, Found], branch: Branch) -> _Swap:
    """Drop the row of a branch and hand its descendants to its parent."""
    parent = read_branch(known[branch.name].row).parent
    children = _descendants(known, branch)
    stale = [known[branch.name], *(known[child.name] for child in children)]
    return [branch_row(replace(child, parent=parent)) for child in children], stale


def _has_descendants(branch: Branch, children: Sequence[Branch]) -> OmniError:
    names = ", ".join(sorted(child.name for child in children)[:5])
    return InvalidInput(
        f"branch '{branch.name}' has branches that descend from it: {names}; "
        "delete them first, or force it to hand them to its parent",
        code="branch_has_descendants",
        branch=branch.name,
    )


# --- tags --------------------------------------------------------------------------------------


def create_tag(manifest: Manifest, name: str, source: Snapshot, *, actor: str | None = None) -> Tag:
    """Give a commit a name that never moves."""
    name = check_name(name, "tag")
    manifest.check_readable(source)
    tag = Tag(
        name=name,
        commit_id=source.commit_id,
        native=source.native,
        actor=actor,
        created_at=datetime.now(UTC),
    )

    def register(state: LineageState) -> _Swap:
        found = state.row(f"tag:{name}")
        if found is None:
            return [tag_row(tag)], []
        if read_tag(found.row) != tag:
            raise _taken("tag", name)
        return [], []

    _change_names(manifest, register)
    return tag


def delete_tag(manifest: Manifest, name: str) -> Tag:
    """Forget a tag."""
    removed: list[Tag] = []

    def forget(state: LineageState) -> _Swap:
        found = state.row(f"tag:{name.strip()}")
        if found is None and removed:
            return [], []
        if found is None:
            raise NotFound(f"tag '{name}' does not exist", code="tag_not_found", tag=name)
        removed[:] = [read_tag(found.row)]
        return [], [found]

    _change_names(manifest, forget)
    return removed[0]


# --- shared ------------------------------------------------------------------------------------


def _change_names(
    manifest: Manifest,
    change: Callable[[LineageState], _Swap],
) -> None:
    """Swap rows of main's lineage and count the change, so that every process reads names anew.

    The answer of a swap may be lost, so `change` is asked again and finds its own work done.
    """

    def attempt() -> None:
        state = manifest.main.state()
        rows, stale = change(state)
        if rows or stale:
            head = replace(state.head, refs=state.head.refs + 1)
            manifest.main.swap(state, head, rows, stale)

    retrying(attempt)
    upkeep(manifest.main)


def _taken(what: str, name: str) -> OmniError:
    return AlreadyExists(f"{what} '{name}' exists already", code=f"{what}_exists", name=name)
