"""Look up commits of all branches, and read complete histories for maintenance.

The rows of the commits a branch can reach are in its own lineage and in its ancestor lineages,
which may hold more. Reachability is decided by parents, never by time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.commit_log import (
    DATASET_ROWS,
    CommitLog,
    DatasetChanges,
    DatasetEntries,
    ancestors,
    first_parents,
)
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import (
    HISTORY_ROW_FILTER,
    HISTORY_ROW_TYPES,
    CommitRow,
    NewManifestRow,
    commit_key,
    read_commit,
    read_identity,
    read_table,
)
from omnigraph.commit.model import Branch, CommitId, DatasetEntry, Tag
from omnigraph.errors import GraphCorrupt, NotFound
from omnigraph.storage.row_lookup import sql_text


def read_commits(states: Iterable[LineageState]) -> dict[CommitId, CommitRow]:
    """Return every commit row of lineages, aborted ones excluded."""
    stored = (row for state in states for row in state.rows("object_type = 'graph_commit'"))
    rows = (read_commit(row.row) for row in stored)
    return {row.commit.id: row for row in rows if not row.aborted}


def find_commit(manifest: Manifest, commit_id: str) -> tuple[CommitRow, LineageState]:
    """Return a commit and the lineage that holds it, main first; raise NotFound if there is none.

    Commits that only a deleted branch had are not found, even while its lineage is kept.
    """
    branches = [branch.lineage_id for branch in manifest.branches().values()]
    for lineage_id in _lineages_to_search(manifest, branches):
        try:
            state = manifest.lineage(lineage_id).state()
            stored = state.row(commit_key(commit_id))
            row = read_commit(stored) if stored is not None else None
            if row is None or row.aborted:
                continue
            if (
                lineage_id is None
                or lineage_id in branches
                or _is_reachable(manifest, lineage_id, row.commit.id)
            ):
                return row, state
        except NotFound:
            if lineage_id is None:
                raise
            continue  # the branch was just deleted
    raise commit_not_found_error(commit_id)


def _lineages_to_search(manifest: Manifest, branches: Sequence[str | None]) -> Iterator[str | None]:
    """Yield main, the branches, and what tags and proposals refer to, which is read only then."""
    yield None
    searched = {None, *branches}
    yield from dict.fromkeys(lineage_id for lineage_id in branches if lineage_id)
    yield from sorted(manifest.named_lineages() - searched)


def commit_not_found_error(commit_id: str) -> NotFound:
    """Return the error for a commit that does not exist or is not visible to the caller."""
    message = f"commit {commit_id} does not exist"
    return NotFound(message, code="commit_not_found", commit=commit_id)


def _is_reachable(manifest: Manifest, lineage_id: str, commit_id: CommitId) -> bool:
    """Return whether a branch or tag with history in a lineage descends from a commit of it."""
    names: list[Branch | Tag] = [*manifest.branches().values(), *manifest.tags().values()]
    for name in names:
        if lineage_id in (name.lineage_id, *name.ancestor_lineages):
            state = manifest.lineage(name.lineage_id).state()
            start = name.commit_id if isinstance(name, Tag) else state.head.commit_id
            if commit_id in ancestors(CommitLog(manifest.history_states(state)), start):
                return True
    return False


@dataclass(frozen=True, slots=True)
class CommitHistory:
    """Commits, and the datasets they changed."""

    commits: Mapping[CommitId, CommitRow]
    changes: DatasetChanges

    @property
    def published(self) -> Mapping[CommitId, DatasetEntries]:
        """The dataset versions that commits published."""
        return self.changes.published


def read_history(states: Iterable[LineageState]) -> CommitHistory:
    """Read the complete history of lineages, one scan for each."""
    commits: dict[CommitId, CommitRow] = {}
    changes: list[Mapping[str, Any]] = []
    kinds = ", ".join(map(sql_text, ("graph_commit", *DATASET_ROWS)))
    stored = (row for state in states for row in state.rows(f"object_type IN ({kinds})"))
    for row in (manifest_row.row for manifest_row in stored):
        if row["object_type"] == "graph_commit":
            commit = read_commit(row)
            if not commit.aborted:
                commits[commit.commit.id] = commit
        else:
            changes.append(row)
    return CommitHistory(commits, DatasetChanges.of(changes))


def dataset_paths(
    states: Iterable[LineageState], keys: dict[str, str] | None = None
) -> dict[tuple[TypeId, IncarnationId], str]:
    """Return the path of every registered dataset; add its type key to `keys`, by path."""
    paths: dict[tuple[TypeId, IncarnationId], str] = {}
    for row in (stored.row for state in states for stored in state.rows("object_type = 'table'")):
        identity, path, key = read_table(row)
        paths[identity] = path
        if keys is not None:
            keys[path] = key
    return paths


def registered_path(paths: Mapping[tuple[TypeId, IncarnationId], str], entry: DatasetEntry) -> str:
    """Return the path of a dataset of a commit; raise GraphCorrupt if it is not registered."""
    path = paths.get(entry.key)
    if path is None:
        identity = f"{entry.type_id:016x}-{entry.incarnation:016x}"
        message = f"dataset {identity} is not registered; `omnigraph verify` lists all damage"
        raise GraphCorrupt(message, object_id=f"table:{identity}")
    return path


def add_versions(
    versions: defaultdict[str, set[int]],
    datasets: Mapping[tuple[TypeId, IncarnationId], DatasetEntry],
    paths: Mapping[tuple[TypeId, IncarnationId], str],
) -> None:
    """Add the physical versions of the datasets of a commit, by path."""
    for entry in datasets.values():
        versions[registered_path(paths, entry)].add(entry.physical)


def history_rows(lineages: Iterable[LineageState], start: CommitId) -> list[NewManifestRow]:
    """Return the stored history rows of a commit and its ancestors."""
    states = list(lineages)
    reached = ancestors(read_commits(states), start)
    rows = {
        stored.row["object_id"]: NewManifestRow(**stored.row)
        for state in states
        for stored in state.rows(HISTORY_ROW_FILTER, footprints=True)
    }
    return [row for row in rows.values() if row_commit_id(row.object_id) in (None, *reached)]


def missing_history(
    log: CommitLog, commit_ids: set[CommitId], target: Sequence[LineageState]
) -> tuple[NewManifestRow, ...]:
    """Return the history rows of commits, without those that the lineages of a target hold.

    `log` has read the commits, and with them all rows that were written with them. The first state
    of the target is its own; the oldest row comes first.
    """
    holders = {state.lineage.lineage_id for state in target}
    pages = [page for page in log.pages if page.state.lineage.lineage_id not in holders]
    rows = {
        row["object_id"]: row for page in reversed(pages) for row in page.rows(*HISTORY_ROW_TYPES)
    }
    hashes = {log[commit_id].commit.schema_hash for commit_id in commit_ids}
    hashes.discard(target[0].head.schema_hash)
    keys = {f"schema:{schema_hash}" for schema_hash in hashes}
    written: list[NewManifestRow] = []
    for object_id, row in rows.items():
        kind, commit_id = row["object_type"], row_commit_id(object_id)
        if kind == "table" and read_identity(row) not in target[0].head.datasets:
            keys.add(object_id)
        if commit_id in commit_ids or (
            object_id in keys and all(state.row(object_id) is None for state in target)
        ):
            written.append(NewManifestRow(**row))
    return tuple(written)


def row_commit_id(object_id: str) -> str | None:
    """Return the commit a row belongs to by its key, None for rows of no single commit."""
    key, _, commit_id = object_id.rpartition("@" if "@" in object_id else ":")
    return commit_id if key.startswith(("commit", "version", "tombstone")) else None


def datasets_at_commits(
    history: CommitHistory, commit_ids: Iterable[CommitId]
) -> Iterator[DatasetEntries]:
    """Yield the datasets of each commit; commits on one line of first parents take one pass.

    The yielded dict is modified by the next step: copy it to keep it.
    """
    left = dict.fromkeys(commit_ids)
    while left:
        entries: DatasetEntries = {}
        line = list(first_parents(history.commits, next(iter(left))))
        for commit_id in reversed(line):
            history.changes.apply(commit_id, entries)
            if commit_id in left:
                del left[commit_id]
                yield entries
