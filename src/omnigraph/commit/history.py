"""This module walks the commit graph of a branch.

The rows of what a branch can reach stand in its own lineage and in those it goes back to, which may
hold more. What is reachable is decided by parents, never by time.
"""

from __future__ import annotations

import heapq
from collections import deque
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
from omnigraph.commit.model import Commit, CommitId, DatasetEntry, Snapshot
from omnigraph.errors import GraphCorrupt, NotFound

_PER_COMMIT = ("table_version", "table_tombstone")
"""Rows that come with the row of their commit."""

DatasetEntries: TypeAlias = dict[tuple[TypeId, IncarnationId], DatasetEntry]


def read_commits(line: Iterable[LineageState]) -> dict[CommitId, CommitRow]:
    """Return every commit row of a line of lineages, fences left out."""
    found = (row for state in line for row in state.rows("object_type = 'graph_commit'"))
    rows = (read_commit(row.row) for row in found)
    return {row.commit.id: row for row in rows if not row.aborted}


def extend_commits(
    commits: Mapping[CommitId, CommitRow], state: LineageState
) -> dict[CommitId, CommitRow] | None:
    """Return known commits and those a lineage has got since; None if it has not all of them.

    Cost follows what is new.
    """
    found, left = dict(commits), [state.head.commit_id]
    while left:
        commit_id = left.pop()
        if commit_id not in found:
            row = state.row(commit_key(commit_id))
            if row is None:
                return None
            found[commit_id] = read_commit(row.row)
            left += found[commit_id].commit.parents
    return found


def newest_first(commits: Mapping[CommitId, CommitRow], start: CommitId) -> Iterator[Commit]:
    """Yield a commit and its ancestors; no commit comes before one of its children."""
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
    """Sort the newest first; ids are time-ordered, so their complement is."""
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
    found = {start}
    queue = deque([start])
    while queue:
        row = commits.get(queue.popleft())
        for parent in row.commit.parents if row is not None else ():
            if parent not in found:
                found.add(parent)
                queue.append(parent)
    return found


def merge_bases(
    commits: Mapping[CommitId, CommitRow], one: CommitId, other: CommitId
) -> list[CommitId]:
    """Return the best common ancestors: common ones that no other common one descends from."""
    common = ancestors(commits, one) & ancestors(commits, other)
    # What is common has only common ancestors, so the parents of all common ones are all covered.
    known = (commits[commit_id].commit for commit_id in common if commit_id in commits)
    covered = {parent for commit in known for parent in commit.parents}
    return sorted(common - covered, reverse=True)


def find_commit(manifest: Manifest, commit_id: str) -> tuple[CommitRow, LineageState]:
    """Return a commit and the lineage it is on, main first; raise NotFound when it is nowhere.

    What only a deleted branch had is nowhere, also while its lineage is kept for others.
    """
    branches = [branch.native for branch in manifest.branches().values()]
    for native in dict.fromkeys([None, *branches, *sorted(manifest.named_lineages())]):
        try:
            state = manifest.lineage(native).state()
            found = state.row(commit_key(commit_id))
            row = read_commit(found.row) if found is not None else None
            if row is None or row.aborted:
                continue
            if (
                native is None
                or native in branches
                or _is_reachable(manifest, native, row.commit.id)
            ):
                return row, state
        except NotFound:
            if native is None:
                raise
            continue  # the branch was just deleted
    raise commit_not_found_error(commit_id)


def commit_not_found_error(commit_id: str) -> NotFound:
    """Return the error for a commit that is not there, or not for whom asks."""
    message = f"commit {commit_id} does not exist"
    return NotFound(message, code="commit_not_found", commit=commit_id)


def _is_reachable(manifest: Manifest, native: str, commit_id: CommitId) -> bool:
    """Tell whether a branch or tag that goes back to a lineage descends from a commit of it."""
    for branch in manifest.branches().values():
        if native in branch.origins:
            state = manifest.lineage(branch.native).state()
            if commit_id in ancestors(read_commits(manifest.line(state)), state.head.commit_id):
                return True
    for tag in manifest.tags().values():
        if native in (tag.native, *tag.origins):
            commits = read_commits(manifest.line(manifest.lineage(tag.native).state()))
            if commit_id in ancestors(commits, tag.commit_id):
                return True
    return False


@dataclass(frozen=True, slots=True)
class CommitHistory:
    """What the commits of a line of lineages published and dropped."""

    commits: Mapping[CommitId, CommitRow]
    published: Mapping[CommitId, DatasetEntries]
    dropped: Mapping[CommitId, set[tuple[TypeId, IncarnationId]]]


def read_history(line: Iterable[LineageState]) -> CommitHistory:
    """Read the history rows of a line of lineages, one scan for each."""
    commits: dict[CommitId, CommitRow] = {}
    published: dict[CommitId, DatasetEntries] = {}
    dropped: dict[CommitId, set[tuple[TypeId, IncarnationId]]] = {}
    kinds = "('graph_commit', 'table_version', 'table_tombstone')"
    for row in (found.row for state in line for found in state.rows(f"object_type IN {kinds}")):
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
    """Return the path of every dataset that lineages have registered; `keys` gets its type key."""
    paths: dict[tuple[TypeId, IncarnationId], str] = {}
    for row in (found.row for state in states for found in state.rows("object_type = 'table'")):
        identity, path, key = read_table(row)
        paths[identity] = path
        if keys is not None:
            keys[path] = key
    return paths


def registered_path(paths: Mapping[tuple[TypeId, IncarnationId], str], entry: DatasetEntry) -> str:
    """Return the path of a dataset a commit shows; raise GraphCorrupt if it is not registered."""
    path = paths.get(entry.key)
    if path is None:
        identity = f"{entry.type_id:016x}-{entry.incarnation:016x}"
        message = f"dataset {identity} is not registered; `omnigraph verify` lists all damage"
        raise GraphCorrupt(message, object_id=f"table:{identity}")
    return path


def datasets_at_commit(line: Iterable[LineageState], start: CommitId) -> DatasetEntries:
    """Rebuild the datasets a commit shows from the history rows, along first parents."""
    return next(datasets_at_commits(read_history(line), [start]))


def history_rows(line: Iterable[LineageState], start: CommitId) -> list[NewManifestRow]:
    """Return the rows, as they stand, that tell what a commit descends from."""
    states = list(line)
    reached = ancestors(read_commits(states), start)
    rows = {
        found.row["object_id"]: NewManifestRow(**found.row)
        for s in states
        for found in s.rows(HISTORY_ROW_FILTER)
    }
    return [row for row in rows.values() if _row_commit_id(row) in (None, *reached)]


def missing_history(
    manifest: Manifest, source: Snapshot, target: Snapshot
) -> tuple[NewManifestRow, ...]:
    """Return the rows about what a source descends from that a target's lineages do not hold."""
    ours, theirs = (manifest.line(manifest.lineage(s.native).state()) for s in (source, target))
    known = {found.row["object_id"] for state in theirs for found in state.rows(HISTORY_ROW_FILTER)}
    rows = history_rows(ours, source.commit_id)
    return tuple(row for row in rows if row.object_id not in known)


def rows_not_in_lineage(
    state: LineageState, rows: Sequence[NewManifestRow]
) -> list[NewManifestRow]:
    """Return those of the rows of another history that a lineage has not got meanwhile."""
    ids = ", ".join(f"'{row.object_id}'" for row in rows if row.object_type not in _PER_COMMIT)
    found = {found.row["object_id"] for found in state.rows(f"object_id IN ({ids})")}
    known = {id_.removeprefix("commit:") for id_ in found}
    return [row for row in rows if row.object_id not in found and _row_commit_id(row) not in known]


def _row_commit_id(row: NewManifestRow) -> str | None:
    """Return the commit a row belongs to, None when it outlives commits."""
    key, _, commit_id = row.object_id.rpartition("@" if "@" in row.object_id else ":")
    return commit_id if key.startswith(("commit", "version", "tombstone")) else None


def datasets_at_commits(
    history: CommitHistory, wanted: Iterable[CommitId]
) -> Iterator[DatasetEntries]:
    """Yield the datasets each wanted commit shows, those on one line of first parents in one pass.

    What is yielded changes with the next step: take what you need at once.
    """
    left = dict.fromkeys(wanted)
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
    """Yield a commit and its first parents: the states its branch went through."""
    current: CommitId | None = start
    while current is not None:
        row = commits.get(current)
        if row is None:
            raise GraphCorrupt(f"commit {current} is missing from the history")
        yield current
        current = row.commit.parents[0] if row.commit.parents else None
