"""This module creates, lists and deletes branches and tags, safely from several processes.

The rows `branch:<name>` and `tag:<name>` on main's lineage are the authority. The lineage behind a
branch is a dataset named by a fresh ULID, so names with slashes, shared prefixes and re-created
names need no rules of their own and caches never alias. It holds its own history only, and names
the lineages where the rest stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

from ulid import ULID

from omnigraph.commit.cleanup_lease import copy_cleanup_state, is_kept_by_cleanups
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
from omnigraph.commit.publish import retry_swap
from omnigraph.commit.staged_commit import written_before
from omnigraph.errors import (
    AlreadyExists,
    Contention,
    InvalidInput,
    NotFound,
    OmniError,
    StorageUnavailable,
    VersionReclaimed,
)
from omnigraph.storage.compare_and_swap import ManifestRow
from omnigraph.storage.layout import dataset_path, lineage_path

MAX_ANCESTOR_LINEAGES = 8
"""Lineages the history of a branch may go back to, besides main."""

_RowSwap: TypeAlias = tuple[Sequence[NewManifestRow], Sequence[ManifestRow]]
"""Rows to write, and rows they replace."""


def create_branch(
    manifest: Manifest, name: str, source: Snapshot, *, actor: str | None = None
) -> Branch:
    """Create a branch at the state of a snapshot: make its lineage, then register its name."""
    name = check_ref_name(name)
    state = manifest.main.state()
    if name in manifest.branches(state):
        raise _name_exists_error("branch", name)
    footing = _SourceGuard(manifest, source)
    footing.check(state)
    origins, inherited = _inherited_lineages(manifest, source)
    branch = Branch(
        name=name,
        native=str(ULID()),
        parent=source.branch,
        fork_commit=source.commit_id,
        actor=actor,
        created_at=datetime.now(UTC),
        origins=origins,
    )
    _create_lineage(manifest, branch, source, inherited, state.head)

    def register(state: LineageState) -> _RowSwap:
        old = manifest.registered(state).get(name)
        if old is not None and old.native == branch.native:
            return [], []
        footing.check(state, str(branch.native))
        if old is None:
            return [branch_row(branch)], []
        if not (old.leaving and manifest.is_closed(old)):
            raise _name_exists_error("branch", name)
        rows, stale = _remove_branch_row(_branch_rows(state), old)
        return [*rows, branch_row(branch)], stale

    try:
        _update_names(manifest, register)
    except (AlreadyExists, NotFound, VersionReclaimed):
        with suppress(OmniError):  # cleanup does it later
            remove_lineage(manifest, str(branch.native))
        raise
    return branch


@dataclass(slots=True)
class _SourceGuard:
    """A state somebody gives a name to, as long as cleanup has not taken it away.

    `sweep` is the cleanup that had begun last when all of it was there.
    """

    manifest: Manifest
    source: Snapshot
    sweep: str | None = None

    def check(self, state: LineageState, made: str | None = None) -> None:
        """Make sure that the state is there, and stays if a version of main is swapped now.

        `made` is a lineage that was made for it, which cleanup may take for abandoned.
        """
        self._check_line(state)
        if self.sweep != state.head.sweep:
            if self.source.native is not None or self.source.commit_id != state.head.commit_id:
                self.manifest.check_readable(self.source)
            self.sweep = state.head.sweep
        if state.head.sweeping and not is_kept_by_cleanups(self.manifest, self.source, state.head):
            message = (
                f"a cleanup is under way that may remove commit {self.source.commit_id}; try again "
                "when it is done. If none is, run `omnigraph repair --confirm`"
            )
            raise Contention(message, code="cleanup_running")
        if made is not None and state.head.swept:
            self._check_made(made, state.head)

    def _check_made(self, made: str, main: Head) -> None:
        """Refuse a lineage that cleanup takes for abandoned; announce on it what main announces."""
        lineage = self.manifest.lineage(made)
        with suppress(NotFound):  # cleanup was quick
            if lineage.state().head.sweep == main.sweep:
                return  # none began since it was made
        files = self.manifest.objects.list(lineage.path)
        if all(written_before(info, main.swept) for info in files):
            message = "creating the branch took so long that a cleanup may have removed it"
            raise Contention(f"{message}; create it again", code="stage_expired")
        copy_cleanup_state(lineage, main)

    def _check_line(self, state: LineageState) -> None:
        """Refuse a state that no branch or tag descends from any more: cleanup may remove it."""
        native = self.source.native
        branches = self.manifest.branches(state).values()
        if native is None or native in {branch.native for branch in branches}:
            return
        try:
            find_commit(self.manifest, self.source.commit_id)
        except NotFound as error:
            raise branch_not_found_error(self.source.branch) from error


def _inherited_lineages(
    manifest: Manifest, source: Snapshot
) -> tuple[tuple[str, ...], list[NewManifestRow]]:
    """Return the lineages the history of a new branch goes back to, and rows it has to copy.

    A branch that was never written to is passed over. When there are many, their rows are copied,
    so that neither reading history nor what is kept for it grows with every generation.
    """
    if source.native is None:
        return (), []
    known = manifest.registered().get(source.branch)
    is_new = known is not None and (known.native, known.fork_commit) == (
        source.native,
        source.commit_id,
    )
    origins = source.head.origins if is_new else (source.native, *source.head.origins)
    if len(origins) <= MAX_ANCESTOR_LINEAGES:
        return origins, []
    line = [manifest.lineage(native).state() for native in origins]
    return (), history_rows(line, source.commit_id)


def _create_lineage(
    manifest: Manifest,
    branch: Branch,
    source: Snapshot,
    inherited: Sequence[NewManifestRow],
    main: Head,
) -> None:
    """Make the lineage of a branch, whole, in one create-if-absent."""
    head = Head(
        commit_id=source.commit_id,
        schema_hash=source.head.schema_hash,
        datasets=source.head.datasets,
        origins=branch.origins,
        swept=main.swept,
        sweep=main.sweep,
        created_at=source.head.created_at,
    )
    rows = [schema_row(head.schema_hash, source.schema_source, source.schema.to_json())]
    for key, entry in source.entries().items():
        path = dataset_path(key.partition(":")[0], *entry.key)
        rows.append(table_row(entry, key, path))
    known = {row.object_id for row in rows}
    rows += [row for row in inherited if row.object_id not in known]
    first = head_row(replace(head, row_sum=update_row_checksum(RowChecksum(0, 0), rows)), 1)
    with suppress(AlreadyExists):  # nobody else knows its name: only the answer was lost
        manifest.datasets.create(lineage_path(branch.native), manifest_table([first, *rows]))
    manifest.datasets.observe("branch: lineage made")


def delete_branch(manifest: Manifest, name: str, *, reparent: bool = False) -> None:
    """Delete a branch: announce it, close its lineage, forget its name.

    The branch is gone when its lineage is closed: from there on no process can publish on it or
    read it by name, whether or not this one lives to forget the name. The closed lineage itself
    stays until cleanup finds it old enough, because a writer that began before would recreate what
    is missing, and acknowledge its commit.
    """
    if name.strip() == MAIN:
        raise InvalidInput("main cannot be deleted", code="branch_name_invalid")
    finish_branch_deletions(manifest)
    branch = manifest.branch(name)

    def announce(state: LineageState) -> _RowSwap:
        known = _branch_rows(state)
        if branch.native not in _lineage_ids(known):
            raise branch_not_found_error(branch.name)
        children = _child_branches(known, branch)
        if children and not reparent:
            raise _has_children_error(branch, children)
        row = known[branch.name]
        leaving = replace(read_branch(row.row), leaving=True)
        return ([], []) if read_branch(row.row).leaving else ([branch_row(leaving)], [row])

    _update_names(manifest, announce)
    manifest.datasets.observe("branch: announced")
    _close_lineage(manifest, branch)
    manifest.datasets.observe("branch: closed")
    # It is gone whatever becomes of its name: whoever needs the name next finishes this.
    with suppress(Contention, StorageUnavailable):
        _delete_branch_name(manifest, branch)
    manifest.datasets.observe("branch: forgotten")


def finish_branch_deletions(manifest: Manifest) -> None:
    """Forget the names of branches whose deletion was interrupted after they were closed."""
    for branch in manifest.registered().values():
        if branch.leaving and manifest.is_closed(branch):
            _delete_branch_name(manifest, branch)


def _delete_branch_name(manifest: Manifest, branch: Branch) -> None:
    """Forget the name of a branch that is closed; its descendants go to its parent."""

    def forget(state: LineageState) -> _RowSwap:
        known = _branch_rows(state)
        return (
            _remove_branch_row(known, branch) if branch.native in _lineage_ids(known) else ([], [])
        )

    _update_names(manifest, forget)


def remove_lineage(manifest: Manifest, native: str) -> None:
    """Remove what is stored of a lineage, unless a branch or tag needs it."""
    if native not in manifest.named_lineages():
        files = [info.path for info in manifest.objects.list(lineage_path(native))]
        manifest.objects.delete(files)


def _close_lineage(manifest: Manifest, branch: Branch) -> None:
    """Make sure that no process can publish on a branch that is going away."""
    lineage = manifest.lineage(branch.native)

    def close() -> None:
        state = lineage.state()
        if not state.head.closed:
            lineage.swap(state, replace(state.head, closed=True))

    with suppress(NotFound):
        retry_swap(close)


def _branch_rows(state: LineageState) -> dict[str, ManifestRow]:
    """Return the rows of all branches by name, in one read."""
    rows = state.names("graph_branch")
    return {found.row["object_id"].removeprefix("branch:"): found for found in rows}


def _lineage_ids(known: Mapping[str, ManifestRow]) -> set[str]:
    return {found.row["table_branch"] for found in known.values()}


def _child_branches(known: Mapping[str, ManifestRow], branch: Branch) -> list[Branch]:
    branches = [read_branch(found.row) for found in known.values()]
    return [child for child in branches if child.parent == branch.name]


def _remove_branch_row(known: Mapping[str, ManifestRow], branch: Branch) -> _RowSwap:
    """Drop the row of a branch and hand its descendants to its parent."""
    parent = read_branch(known[branch.name].row).parent
    children = _child_branches(known, branch)
    stale = [known[branch.name], *(known[child.name] for child in children)]
    return [branch_row(replace(child, parent=parent)) for child in children], stale


def _has_children_error(branch: Branch, children: Sequence[Branch]) -> OmniError:
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
    name = check_ref_name(name, "tag")
    footing = _SourceGuard(manifest, source)
    footing.check(manifest.main.state())
    tag = Tag(
        name=name,
        commit_id=source.commit_id,
        native=source.native,
        origins=source.head.origins,
        actor=actor,
        created_at=datetime.now(UTC),
    )

    def register(state: LineageState) -> _RowSwap:
        found = _find_tag_row(state, name)
        if found is None:
            footing.check(state)
            return [tag_row(tag)], []
        if read_tag(found.row) != tag:
            raise _name_exists_error("tag", name)
        return [], []

    _update_names(manifest, register)
    return tag


def delete_tag(manifest: Manifest, name: str) -> Tag:
    """Forget a tag."""
    removed: list[Tag] = []

    def forget(state: LineageState) -> _RowSwap:
        found = _find_tag_row(state, name.strip())
        if found is None and removed:
            return [], []
        if found is None:
            raise NotFound(f"tag '{name}' does not exist", code="tag_not_found", tag=name)
        removed[:] = [read_tag(found.row)]
        return [], [found]

    _update_names(manifest, forget)
    return removed[0]


def _find_tag_row(state: LineageState, name: str) -> ManifestRow | None:
    rows = state.names("graph_tag")
    return next((found for found in rows if found.row["object_id"] == f"tag:{name}"), None)


# --- shared ------------------------------------------------------------------------------------


def _update_names(
    manifest: Manifest,
    change: Callable[[LineageState], _RowSwap],
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
            manifest.names_changed(head.refs, rows, stale)

    retry_swap(attempt)
    maintain_lineage(manifest.main)


def _name_exists_error(what: str, name: str) -> OmniError:
    return AlreadyExists(f"{what} '{name}' exists already", code=f"{what}_exists", name=name)
