"""Create and delete branches and tags, safely with concurrent processes.

The rows `branch:<name>` and `tag:<name>` on main's lineage define the names. The lineage of a
branch is a dataset named by a new ULID, so names with slashes, shared prefixes and re-created names
need no special rules and caches never alias. It holds only its own history and lists the lineages
that hold the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

from ulid import ULID

from omnigraph.commit.cleanup_lease import copy_cleanup_state, is_kept_by_cleanups
from omnigraph.commit.footprint import NO_FOOTPRINT
from omnigraph.commit.head_sync import sync_relaxed_state
from omnigraph.commit.history import find_commit, history_rows
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.lineage_maintenance import maintain_lineage
from omnigraph.commit.manifest import Manifest, branch_not_found_error
from omnigraph.commit.manifest_rows import (
    NewManifestRow,
    branch_row,
    head_row,
    manifest_table,
    read_branch,
    read_tag,
    schema_row,
    table_row,
    tag_row,
    update_row_checksum,
)
from omnigraph.commit.model import MAIN, Branch, Head, RowChecksum, Snapshot, Tag, check_ref_name
from omnigraph.commit.protection import (
    NO_PERMIT,
    BranchProtected,
    WritePermit,
    check_ref_change,
    folded_protection,
)
from omnigraph.commit.publish import retry_swap
from omnigraph.commit.rebase import footprints_since
from omnigraph.commit.staged_commit import written_before
from omnigraph.errors import (
    AlreadyExists,
    Contention,
    InvalidInput,
    NotFound,
    OmniError,
    PreconditionFailed,
    StorageUnavailable,
    VersionReclaimed,
)
from omnigraph.storage.compare_and_swap import ManifestRow
from omnigraph.storage.layout import lineage_path

MAX_ANCESTOR_LINEAGES = 8
"""Maximum number of lineages besides main that hold inherited history of a branch."""

_RowSwap: TypeAlias = tuple[Sequence[NewManifestRow], Sequence[ManifestRow]]
"""Rows to write, and rows they replace."""


def create_branch(
    manifest: Manifest,
    name: str,
    source: Snapshot,
    *,
    actor: str | None = None,
    permit: WritePermit = NO_PERMIT,
) -> Branch:
    """Create a branch at the state of a snapshot: create its lineage, then register its name."""
    name = check_ref_name(name)
    state = manifest.main.state()
    check_ref_change("create", "branch", name, state.head, permit)
    if name in manifest.branches(state):
        raise _name_exists_error("branch", name)
    guard = _SourceGuard(manifest, source)
    guard.check(state)
    _sync_source(manifest, source)
    ancestor_lineages, inherited = _inherited_lineages(manifest, source)
    branch = Branch(
        name=name,
        lineage_id=str(ULID()),
        parent=source.branch,
        fork_commit=source.commit_id,
        actor=actor,
        created_at=datetime.now(UTC),
        ancestor_lineages=ancestor_lineages,
    )
    _create_lineage(manifest, branch, source, inherited, state.head)

    def register(state: LineageState) -> _RowSwap:
        old = manifest.registered_branches(state).get(name)
        if old is not None and old.lineage_id == branch.lineage_id:
            return [], []
        guard.check(state, str(branch.lineage_id))
        check_ref_change("create", "branch", name, state.head, permit)
        _copy_protection(manifest, branch, state.head)
        if old is None:
            return [branch_row(branch)], []
        if not (old.deleting and manifest.is_closed(old)):
            raise _name_exists_error("branch", name)
        rows, stale = _remove_branch_row(_branch_rows(state), old)
        return [*rows, branch_row(branch)], stale

    try:
        _update_names(manifest, register)
    except (AlreadyExists, BranchProtected, NotFound, VersionReclaimed):
        with suppress(OmniError):  # cleanup removes it later
            remove_lineage(manifest, str(branch.lineage_id))
        raise
    return branch


@dataclass(slots=True)
class _SourceGuard:
    """Check that a snapshot that gets a name is not removed by cleanup.

    `last_cleanup` is the last announced cleanup when the snapshot was known to be complete.
    """

    manifest: Manifest
    source: Snapshot
    last_cleanup: str | None = None

    def check(self, state: LineageState, new_lineage: str | None = None) -> None:
        """Check that the snapshot exists and is kept if main is swapped from `state`.

        `new_lineage` is a lineage created for it, which cleanup may take for abandoned.
        """
        self._check_reachable(state)
        if self.last_cleanup != state.head.last_cleanup:
            if self.source.lineage_id is not None or self.source.commit_id != state.head.commit_id:
                self.manifest.check_readable(self.source)
            self.last_cleanup = state.head.last_cleanup
        if state.head.active_cleanups and not is_kept_by_cleanups(
            self.manifest, self.source, state.head
        ):
            message = (
                f"a running cleanup may remove commit {self.source.commit_id}; try again when it "
                "has finished. If no cleanup is running, run `omnigraph repair --confirm`"
            )
            raise Contention(message, code="cleanup_running")
        if new_lineage is not None and state.head.cleanup_cutoff:
            self._check_new_lineage(new_lineage, state.head)

    def _check_new_lineage(self, lineage_id: str, main: Head) -> None:
        """Raise if cleanup may remove a new lineage; else copy main's cleanup state."""
        lineage = self.manifest.lineage(lineage_id)
        with suppress(NotFound):  # cleanup has already removed it
            if lineage.state().head.last_cleanup == main.last_cleanup:
                return  # no cleanup was announced since it was created
        files = self.manifest.objects.list(lineage.path)
        if all(written_before(info, main.cleanup_cutoff) for info in files):
            message = "creating the branch took too long: a cleanup may have removed its files"
            raise Contention(f"{message}; create it again", code="stage_expired")
        copy_cleanup_state(lineage, main)

    def _check_reachable(self, state: LineageState) -> None:
        """Raise if no branch or tag descends from the snapshot: cleanup may remove it."""
        lineage_id = self.source.lineage_id
        branches = self.manifest.branches(state).values()
        if lineage_id is None or lineage_id in {branch.lineage_id for branch in branches}:
            return
        try:
            find_commit(self.manifest, self.source.commit_id)
        except NotFound as error:
            raise branch_not_found_error(self.source.branch) from error


def _inherited_lineages(
    manifest: Manifest, source: Snapshot
) -> tuple[tuple[str, ...], list[NewManifestRow]]:
    """Return the ancestor lineages of a new branch, and the rows it has to copy.

    A source branch without own commits is skipped. Above the maximum number of lineages, their rows
    are copied, so that the cost of history does not grow with every generation of branches.
    """
    if source.lineage_id is None:
        return (), []
    parent = manifest.registered_branches().get(source.branch)
    is_new = parent is not None and (parent.lineage_id, parent.fork_commit) == (
        source.lineage_id,
        source.commit_id,
    )
    ancestor_lineages = (
        source.head.ancestor_lineages
        if is_new
        else (source.lineage_id, *source.head.ancestor_lineages)
    )
    if len(ancestor_lineages) <= MAX_ANCESTOR_LINEAGES:
        return ancestor_lineages, []
    states = [manifest.lineage(lineage_id).state() for lineage_id in ancestor_lineages]
    return (), history_rows(states, source.commit_id)


def _create_lineage(
    manifest: Manifest,
    branch: Branch,
    source: Snapshot,
    inherited: Sequence[NewManifestRow],
    main: Head,
) -> None:
    """Create the lineage of a branch in one create-if-absent."""
    head = Head(
        commit_id=source.commit_id,
        schema_hash=source.head.schema_hash,
        datasets=source.head.datasets,
        ancestor_lineages=branch.ancestor_lineages,
        cleanup_cutoff=main.cleanup_cutoff,
        last_cleanup=main.last_cleanup,
        created_at=source.head.created_at,
        generation=source.head.generation,
        relaxed=manifest.datasets.is_relaxed,
        protection=folded_protection(main),
    )
    rows = [schema_row(head.schema_hash, source.schema_source, source.schema.to_json())]
    rows += [table_row(entry, key, entry.path(key)) for key, entry in source.entries().items()]
    written = {row.object_id for row in rows}
    rows += [row for row in inherited if row.object_id not in written]
    first = head_row(replace(head, row_checksum=update_row_checksum(RowChecksum(0, 0), rows)), 1)
    with suppress(AlreadyExists):  # the ID is ours alone: only the response was lost
        manifest.datasets.create(lineage_path(branch.lineage_id), manifest_table([first, *rows]))
    manifest.datasets.observe("branch: lineage made")


def _copy_protection(manifest: Manifest, branch: Branch, main: Head) -> None:
    """Fold the protection of main into a new lineage if it has changed since that was created."""
    lineage, wanted = manifest.lineage(branch.lineage_id), folded_protection(main)
    state = lineage.state() if wanted else None
    if state is not None and state.head.protection != wanted:
        lineage.swap(state, replace(state.head, protection=wanted))


def delete_branch(
    manifest: Manifest,
    name: str,
    *,
    reparent: bool = False,
    permit: WritePermit = NO_PERMIT,
    unchanged_since: Snapshot | None = None,
) -> None:
    """Delete a branch: mark its row, close its lineage, remove its name.

    With `unchanged_since` it raises PreconditionFailed if a commit after that state of the branch
    changed anything: it would be lost.

    The branch is deleted once its lineage is closed: from then on no process can publish on it or
    read it by name, even if this process dies before it removes the name. The closed lineage itself
    stays until cleanup finds it old enough, because a writer that started earlier would recreate
    missing files and acknowledge its commit.
    """
    if name.strip() == MAIN:
        raise InvalidInput("main cannot be deleted", code="branch_name_invalid")
    finish_branch_deletions(manifest)
    branch = manifest.branch(name)

    def announce(state: LineageState) -> _RowSwap:
        check_ref_change("delete", "branch", branch.name, state.head, permit)
        rows = _branch_rows(state)
        if branch.lineage_id not in _lineage_ids(rows):
            raise branch_not_found_error(branch.name)
        children = _child_branches(rows, branch)
        if children and not reparent:
            raise _has_children_error(branch, children)
        row = rows[branch.name]
        stored = read_branch(row.row)
        if stored.deleting:
            return [], []
        return [branch_row(replace(stored, deleting=True))], [row]

    def retract(state: LineageState) -> _RowSwap:
        row = _branch_rows(state).get(branch.name)
        if row is None or row.row["table_branch"] != branch.lineage_id:
            return [], []
        return [branch_row(replace(read_branch(row.row), deleting=False))], [row]

    _update_names(manifest, announce)
    manifest.datasets.observe("branch: announced")
    try:
        _close_lineage(manifest, branch, unchanged_since)
    except PreconditionFailed:
        _update_names(manifest, retract)
        raise
    manifest.datasets.observe("branch: closed")
    # The branch is already deleted; the next process that needs the name removes it otherwise.
    with suppress(Contention, StorageUnavailable):
        _delete_branch_name(manifest, branch)
    manifest.datasets.observe("branch: forgotten")


def finish_branch_deletions(manifest: Manifest) -> None:
    """Remove the names of branches whose deletion was interrupted after they were closed."""
    for branch in manifest.registered_branches().values():
        if branch.deleting and manifest.is_closed(branch):
            _delete_branch_name(manifest, branch)


def remove_closed_branches(manifest: Manifest) -> None:
    """Remove the names of branches whose lineage is closed or gone.

    They exist where main returned to a version from before their deletion.
    """
    for branch in manifest.registered_branches().values():
        if manifest.is_closed(branch):
            _delete_branch_name(manifest, branch)


def remove_lineage_names(manifest: Manifest, lineage_ids: Collection[str]) -> None:
    """Remove the names of branches by their lineages, which need not be readable."""
    for branch in manifest.registered_branches().values():
        if branch.lineage_id in lineage_ids:
            _delete_branch_name(manifest, branch)


def _delete_branch_name(manifest: Manifest, branch: Branch) -> None:
    """Remove the name of a closed branch; its children get its parent."""

    def remove(state: LineageState) -> _RowSwap:
        rows = _branch_rows(state)
        if branch.lineage_id not in _lineage_ids(rows):
            return [], []
        return _remove_branch_row(rows, branch)

    _update_names(manifest, remove)


def remove_lineage(manifest: Manifest, lineage_id: str) -> None:
    """Delete the files of a lineage, unless a branch or tag refers to it."""
    if lineage_id not in manifest.named_lineages():
        files = [info.path for info in manifest.objects.list(lineage_path(lineage_id))]
        manifest.objects.delete(files)


def _close_lineage(manifest: Manifest, branch: Branch, since: Snapshot | None) -> None:
    """Close the lineage of a branch, so that no process can publish on it."""
    lineage = manifest.lineage(branch.lineage_id)

    def close() -> None:
        state = lineage.state()
        if state.head.closed:
            return
        if since is not None and _has_changed(state, since):
            raise PreconditionFailed(since.commit_id, state.head.commit_id)
        lineage.swap(state, replace(state.head, closed=True))

    with suppress(NotFound):
        retry_swap(close)


def _has_changed(state: LineageState, since: Snapshot) -> bool:
    """Return whether a branch has commits after a state of it that changed anything."""
    if since.lineage_id != state.lineage.lineage_id:
        return True
    newer = footprints_since(state, since.manifest_version)
    return any(footprint != NO_FOOTPRINT for footprint in newer)


def _branch_rows(state: LineageState) -> dict[str, ManifestRow]:
    """Return the rows of all branches by name, in one read."""
    rows = state.names("graph_branch")
    return {row.row["object_id"].removeprefix("branch:"): row for row in rows}


def _lineage_ids(rows: Mapping[str, ManifestRow]) -> set[str]:
    return {row.row["table_branch"] for row in rows.values()}


def _child_branches(rows: Mapping[str, ManifestRow], branch: Branch) -> list[Branch]:
    branches = [read_branch(row.row) for row in rows.values()]
    return [child for child in branches if child.parent == branch.name]


def _remove_branch_row(rows: Mapping[str, ManifestRow], branch: Branch) -> _RowSwap:
    """Drop the row of a branch and give its children its parent."""
    parent = read_branch(rows[branch.name].row).parent
    children = _child_branches(rows, branch)
    stale = [rows[branch.name], *(rows[child.name] for child in children)]
    return [branch_row(replace(child, parent=parent)) for child in children], stale


def _has_children_error(branch: Branch, children: Sequence[Branch]) -> OmniError:
    names = ", ".join(sorted(child.name for child in children)[:5])
    return InvalidInput(
        f"branch '{branch.name}' has child branches: {names}; "
        "delete them first, or use force to attach them to its parent",
        code="branch_has_descendants",
        branch=branch.name,
    )


# --- tags --------------------------------------------------------------------------------------


def create_tag(
    manifest: Manifest,
    name: str,
    source: Snapshot,
    *,
    actor: str | None = None,
    permit: WritePermit = NO_PERMIT,
) -> Tag:
    """Create a tag: a fixed name for a commit."""
    name = check_ref_name(name, "tag")
    guard = _SourceGuard(manifest, source)
    guard.check(manifest.main.state())
    _sync_source(manifest, source)
    tag = Tag(
        name=name,
        commit_id=source.commit_id,
        lineage_id=source.lineage_id,
        ancestor_lineages=source.head.ancestor_lineages,
        actor=actor,
        created_at=datetime.now(UTC),
    )

    def register(state: LineageState) -> _RowSwap:
        check_ref_change("create", "tag", name, state.head, permit)
        row = _find_tag_row(state, name)
        if row is None:
            guard.check(state)
            return [tag_row(tag)], []
        if read_tag(row.row) != tag:
            raise _name_exists_error("tag", name)
        return [], []

    _update_names(manifest, register)
    return tag


def delete_tag(manifest: Manifest, name: str, *, permit: WritePermit = NO_PERMIT) -> Tag:
    """Delete a tag and return it."""
    removed: list[Tag] = []

    def remove(state: LineageState) -> _RowSwap:
        check_ref_change("delete", "tag", name.strip(), state.head, permit)
        row = _find_tag_row(state, name.strip())
        if row is None and removed:
            return [], []
        if row is None:
            raise NotFound(f"tag '{name}' does not exist", code="tag_not_found", tag=name)
        removed[:] = [read_tag(row.row)]
        return [], [row]

    _update_names(manifest, remove)
    return removed[0]


def _find_tag_row(state: LineageState, name: str) -> ManifestRow | None:
    rows = state.names("graph_tag")
    return next((row for row in rows if row.row["object_id"] == f"tag:{name}"), None)


# --- shared ------------------------------------------------------------------------------------


def _sync_source(manifest: Manifest, source: Snapshot) -> None:
    """Sync the state that gets a name, and the history that holds it."""
    if not manifest.objects.files.enabled:
        return
    state = manifest.lineage(source.lineage_id).state()
    for newest in manifest.history_states(state):
        newest.lineage.sync(newest.version)
        if newest.head.relaxed:
            sync_relaxed_state(manifest.datasets, newest.lineage.path, newest.head)


def _update_names(
    manifest: Manifest,
    change: Callable[[LineageState], _RowSwap],
) -> None:
    """Swap rows of main's lineage and count the change, so that every process reads names again.

    The response of a swap may be lost: `change` is called again and finds its own rows.
    """

    def attempt() -> None:
        state = manifest.main.state()
        rows, stale = change(state)
        if rows or stale:
            head = replace(state.head, refs=state.head.refs + 1)
            manifest.main.swap(state, head, rows, stale)
            manifest.names_changed(head.refs, rows, stale)

    retry_swap(attempt)
    maintain_lineage(manifest.main)


def _name_exists_error(what: str, name: str) -> OmniError:
    return AlreadyExists(f"{what} '{name}' already exists", code=f"{what}_exists", name=name)
