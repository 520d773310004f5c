"""Traverse the commit graph: ancestors, merge bases, datasets of past commits.

The rows of the commits a branch can reach are in its own lineage and in its ancestor lineages,
which may hold more. Reachability is decided by parents, never by time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import (
    HISTORY_ROW_FILTER,
    CommitRow,
    NewManifestRow,
    commit_key,
    read_commit,
    read_identity,
    read_table,
    read_version,
)
from omnigraph.commit.model import Branch, Commit, CommitId, DatasetEntry, Snapshot, Tag
from omnigraph.errors import GraphCorrupt, NotFound

_PER_COMMIT = ("table_version", "table_tombstone")
"""Types of rows that are written together with the row of their commit."""

DatasetEntries: TypeAlias = dict[tuple[TypeId, IncarnationId], DatasetEntry]


def read_commits(states: Iterable[LineageState]) -> dict[CommitId, CommitRow]:
    """Return every commit row of lineages, aborted ones excluded."""
    stored = (row for state in states for row in state.rows("object_type = 'graph_commit'"))
    rows = (read_commit(row.row) for row in stored)
    return {row.commit.id: row for row in rows if not row.aborted}


def extend_commits(
    commits: Mapping[CommitId, CommitRow], state: LineageState
) -> dict[CommitId, CommitRow] | None:
    """Add the new commits of a lineage to commits read earlier; None if a row is not in it.

    The cost is proportional to the number of new commits.
    """
    extended, queue = dict(commits), [state.head.commit_id]
    while queue:
        commit_id = queue.pop()
        if commit_id not in extended:
            row = state.row(commit_key(commit_id))
            if row is None:
                return None
            extended[commit_id] = read_commit(row.row)
            queue += extended[commit_id].commit.parents
    return extended


def newest_first(commits: Mapping[CommitId, CommitRow], start: CommitId) -> Iterator[Commit]:
    """Yield a commit and its ancestors, each after all of its children."""
    if start not in commits:
        raise GraphCorrupt(f"commit {start} is missing from the history")
    children = _count_children(commits, start)
    ready = [(_newest_first_key(commits[start].commit), start)]
    while ready:
        _, commit_id = heapq.heappop(ready)
        commit = commits[commit_id].commit
        yield commit
        for parent in commit.parents:
            if parent not in commits:
                continue
            children[parent] -= 1
            if children[parent] == 0:
                heapq.heappush(ready, (_newest_first_key(commits[parent].commit), parent))


def _newest_first_key(commit: Commit) -> tuple[int, str]:
    """Return a key that sorts the newest first; IDs are time-ordered, so they are complemented."""
    return (
        -int(commit.created_at.timestamp() * 1e6),
        "".join(chr(255 - ord(c)) for c in commit.id),
    )


def _count_children(commits: Mapping[CommitId, CommitRow], start: CommitId) -> dict[CommitId, int]:
    counts: dict[CommitId, int] = {start: 0}
    queue = deque([start])
    while queue:
        for parent in commits[queue.popleft()].commit.parents:
            if parent in commits:
                if parent not in counts:
                    counts[parent] = 0
                    queue.append(parent)
                counts[parent] += 1
    return counts


def ancestors(commits: Mapping[CommitId, CommitRow], start: CommitId) -> set[CommitId]:
    """Return a commit and everything it descends from."""
    reached = {start}
    queue = deque([start])
    while queue:
        row = commits.get(queue.popleft())
        for parent in row.commit.parents if row is not None else ():
            if parent not in reached:
                reached.add(parent)
                queue.append(parent)
    return reached


def merge_bases(
    commits: Mapping[CommitId, CommitRow], one: CommitId, other: CommitId
) -> list[CommitId]:
    """Return the best common ancestors: those that no other common ancestor descends from."""
    common = ancestors(commits, one) & ancestors(commits, other)
    # Ancestors of common commits are common too, so it is enough to exclude their parents.
    common_commits = (commits[commit_id].commit for commit_id in common if commit_id in commits)
    covered = {parent for commit in common_commits for parent in commit.parents}
    return sorted(common - covered, reverse=True)


def find_commit(manifest: Manifest, commit_id: str) -> tuple[CommitRow, LineageState]:
    """Return a commit and the lineage that holds it, main first; raise NotFound if there is none.

    Commits that only a deleted branch had are not found, even while its lineage is kept.
    """
    branches = [branch.lineage_id for branch in manifest.branches().values()]
    for lineage_id in dict.fromkeys([None, *branches, *sorted(manifest.named_lineages())]):
        try:
            state = manifest.lineage(lineage_id).state()
            stored = state.row(commit_key(commit_id))
            row = read_commit(stored.row) if stored is not None else None
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
            if commit_id in ancestors(read_commits(manifest.history_states(state)), start):
                return True
    return False


@dataclass(frozen=True, slots=True)
class CommitHistory:
    """The dataset versions that commits published, and the datasets they dropped."""

    commits: Mapping[CommitId, CommitRow]
    published: Mapping[CommitId, DatasetEntries]
    dropped: Mapping[CommitId, set[tuple[TypeId, IncarnationId]]]


def read_history(states: Iterable[LineageState]) -> CommitHistory:
    """Read the history rows of lineages, one scan for each."""
    commits: dict[CommitId, CommitRow] = {}
    published: dict[CommitId, DatasetEntries] = {}
    dropped: dict[CommitId, set[tuple[TypeId, IncarnationId]]] = {}
    kinds = "('graph_commit', 'table_version', 'table_tombstone')"
    for row in (stored.row for state in states for stored in state.rows(f"object_type IN {kinds}")):
        if row["object_type"] == "graph_commit":
            commit = read_commit(row)
            if not commit.aborted:
                commits[commit.commit.id] = commit
        elif row["object_type"] == "table_version":
            commit_id, entry = read_version(row)
            published.setdefault(commit_id, {})[entry.key] = entry
        else:
            commit_id = CommitId(row["object_id"].rpartition("@")[2])
            dropped.setdefault(commit_id, set()).add(read_identity(row))
    return CommitHistory(commits, published, dropped)


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


def datasets_at_commit(states: Iterable[LineageState], start: CommitId) -> DatasetEntries:
    """Rebuild the datasets of a commit from the history rows, along first parents."""
    return next(datasets_at_commits(read_history(states), [start]))


def history_rows(lineages: Iterable[LineageState], start: CommitId) -> list[NewManifestRow]:
    """Return the stored history rows of a commit and its ancestors."""
    states = list(lineages)
    reached = ancestors(read_commits(states), start)
    rows = {
        stored.row["object_id"]: NewManifestRow(**stored.row)
        for state in states
        for stored in state.rows(HISTORY_ROW_FILTER, footprints=True)
    }
    return [row for row in rows.values() if _row_commit_id(row) in (None, *reached)]


def missing_history(
    manifest: Manifest, source: Snapshot, target: Snapshot
) -> tuple[NewManifestRow, ...]:
    """Return the history rows of a source that the lineages of a target do not hold."""
    ours, theirs = (
        manifest.history_states(manifest.lineage(s.lineage_id).state()) for s in (source, target)
    )
    present = {row.row["object_id"] for state in theirs for row in state.rows(HISTORY_ROW_FILTER)}
    rows = history_rows(ours, source.commit_id)
    return tuple(row for row in rows if row.object_id not in present)


def rows_not_in_lineage(
    state: LineageState, rows: Sequence[NewManifestRow]
) -> list[NewManifestRow]:
    """Return the rows of another history that a lineage does not hold yet."""
    ids = ", ".join(f"'{row.object_id}'" for row in rows if row.object_type not in _PER_COMMIT)
    present = {row.row["object_id"] for row in state.rows(f"object_id IN ({ids})")}
    commits = {id_.removeprefix("commit:") for id_ in present}
    return [
        row for row in rows if row.object_id not in present and _row_commit_id(row) not in commits
    ]


def _row_commit_id(row: NewManifestRow) -> str | None:
    """Return the commit a row belongs to, None for rows of no single commit."""
    key, _, commit_id = row.object_id.rpartition("@" if "@" in row.object_id else ":")
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
            for key in history.dropped.get(commit_id, ()):
                entries.pop(key, None)
            entries.update(history.published.get(commit_id, {}))
            if commit_id in left:
                del left[commit_id]
                yield entries


def first_parents(commits: Mapping[CommitId, CommitRow], start: CommitId) -> Iterable[CommitId]:
    """Yield a commit and its first parents: the past heads of its branch."""
    current: CommitId | None = start
    while current is not None:
        row = commits.get(current)
        if row is None:
            raise GraphCorrupt(f"commit {current} is missing from the history")
        yield current
        current = row.commit.parents[0] if row.commit.parents else None
