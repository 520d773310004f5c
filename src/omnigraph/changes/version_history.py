"""Find the path between two versions of a dataset that leaves out maintenance.

Compaction moves rows to new files and changes none. Two versions between which it lies are compared
piece by piece, and the steps of maintenance are left out. What differs in no piece differs nowhere,
whichever way is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.changes.cursors import digest, filter_digest
from omnigraph.changes.model import ChangeFilter
from omnigraph.commit.commit_log import CommitLog, first_parents
from omnigraph.commit.history import CommitHistory, read_history
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import (
    MAIN,
    Branch,
    Commit,
    CommitId,
    DatasetEntry,
    Snapshot,
    VersionState,
)
from omnigraph.commit.snapshot import first_parent_snapshots
from omnigraph.errors import NotFound
from omnigraph.write.request import MAINTENANCE_OPERATION

DatasetKey: TypeAlias = tuple[TypeId, IncarnationId]
VersionRange: TypeAlias = tuple[DatasetEntry, DatasetEntry]


@dataclass(frozen=True, slots=True)
class _ParentVersion:
    """The version another one was made from, and whether by maintenance."""

    entry: DatasetEntry
    by_maintenance: bool


class VersionHistory:
    """The steps between states of a graph, from its history, which is read when it is needed."""

    def __init__(
        self,
        manifest: Manifest,
        holders: Sequence[Snapshot | Branch],
    ) -> None:
        self._manifest = manifest
        self._holders = holders

    @cached_property
    def _history(self) -> CommitHistory | None:
        try:
            states = [self._manifest.lineage(h.lineage_id).state() for h in self._holders]
            lines = [holder for state in states for holder in self._manifest.history_states(state)]
            return read_history({holder.lineage.lineage_id: holder for holder in lines}.values())
        except NotFound:
            return None  # the branch of a state is gone

    def ranges(self, old: DatasetEntry, new: DatasetEntry) -> list[VersionRange] | None:
        """Return the pairs of versions to compare instead of two; None when no way is known."""
        if self._history is None:
            return None
        origins = _parent_versions(self._history, old.key)
        left, right = list(_ancestor_versions(origins, old)), list(_ancestor_versions(origins, new))
        reached = {entry.state: place for place, (entry, _) in enumerate(right)}
        meeting = next((i for i, (e, _) in enumerate(left) if e.state in reached), None)
        if meeting is None:
            return None
        there = reached[left[meeting][0].state]
        down = [(left[i][0], left[i + 1][0], left[i][1]) for i in range(meeting)]
        up = [(right[i][0], right[i - 1][0], right[i - 1][1]) for i in range(there, 0, -1)]
        return list(_ranges_without_maintenance(old, [*down, *up]))


def _ranges_without_maintenance(
    start: DatasetEntry, way: Sequence[tuple[DatasetEntry, DatasetEntry, bool]]
) -> Iterator[VersionRange]:
    """Yield the stretches of a way between steps of maintenance."""
    end = start
    for one, other, by_maintenance in way:
        if by_maintenance:
            if start.state != one.state:
                yield start, one
            start = other
        end = other
    if start.state != end.state:
        yield start, end


def _ancestor_versions(
    origins: dict[VersionState, _ParentVersion], entry: DatasetEntry
) -> Iterator[tuple[DatasetEntry, bool]]:
    """Yield a version and those it goes back to, each with whether maintenance made it."""
    seen: set[VersionState] = set()
    current: DatasetEntry | None = entry
    while current is not None and current.state not in seen:
        seen.add(current.state)
        origin = origins.get(current.state)
        yield current, origin is not None and origin.by_maintenance
        current = origin.entry if origin is not None else None


def _parent_versions(history: CommitHistory, key: DatasetKey) -> dict[VersionState, _ParentVersion]:
    """Return what each version of a dataset was made from.

    A merge may publish a version that was made on the branch it merged; who was first made it.
    """
    parents: dict[VersionState, _ParentVersion] = {}
    shown: dict[CommitId, DatasetEntry | None] = {}
    commits = [c for c, entries in history.published.items() if key in entries]
    for commit_id in sorted(commits, key=lambda c: (_is_merge(history, c), c)):
        row = history.commits.get(commit_id)
        before = (
            _published_version(history, key, row.commit.parents[0], shown)
            if row and row.commit.parents
            else None
        )
        if row is not None and before is not None:
            origin = _ParentVersion(before, row.commit.operation == MAINTENANCE_OPERATION)
            parents.setdefault(history.published[commit_id][key].state, origin)
    return parents


def _is_merge(history: CommitHistory, commit_id: CommitId) -> bool:
    row = history.commits.get(commit_id)
    return row is not None and len(row.commit.parents) > 1


def _published_version(
    history: CommitHistory,
    key: DatasetKey,
    start: CommitId,
    shown: dict[CommitId, DatasetEntry | None],
) -> DatasetEntry | None:
    """Return the version of a dataset a commit shows, from what it or a first parent published."""
    trail: list[CommitId] = []
    current: CommitId | None = start
    while current is not None and current not in shown:
        trail.append(current)
        entry = history.published.get(current, {}).get(key)
        row = history.commits.get(current)
        if entry is not None:
            shown[current] = entry
        else:
            current = row.commit.parents[0] if row and row.commit.parents else None
    version = None if current is None else shown[current]
    shown.update(dict.fromkeys(trail, version))
    return version


# ----------------------------------------------------------------------
# The first-parent history of a branch, oldest state first.


@dataclass(frozen=True, slots=True)
class FirstParentHistory:
    """The first-parent line of a branch up to its head, the oldest commit first."""

    manifest: Manifest
    branch: Branch
    state: LineageState
    log: CommitLog
    commits: tuple[CommitId, ...]

    @classmethod
    def at_head(cls, manifest: Manifest, branch_name: str) -> FirstParentHistory:
        """Return only the head of the line."""
        branch, state = manifest.head_state(branch_name)
        log = CommitLog(manifest.history_states(state))
        return cls(manifest, branch, state, log, (state.head.commit_id,))

    @classmethod
    def read(cls, manifest: Manifest, branch_name: str) -> FirstParentHistory:
        """Read the complete line of a branch."""
        return cls.at_head(manifest, branch_name).since(None)

    def since(self, commit_id: str | None) -> FirstParentHistory:
        """Return the line from a commit on; the complete line if the commit is not on it."""
        commits: list[CommitId] = []
        for parent in first_parents(self.log, self.state.head.commit_id):
            commits.append(parent)
            if parent == commit_id:
                break
        return replace(self, commits=tuple(reversed(commits)))

    @property
    def head(self) -> Snapshot:
        """The newest state."""
        return self.snapshots(len(self.commits) - 1, len(self.commits))[0]

    def commit(self, place: int) -> Commit:
        """Return a commit by its place."""
        return self.log[self.commits[place]].commit

    def place(self, commit_id: str) -> int | None:
        """Return the place of a commit, None if it is not on the line."""
        return next((i for i, id_ in enumerate(self.commits) if id_ == commit_id), None)

    def snapshots(self, start: int, stop: int) -> list[Snapshot]:
        """Return the states of some commits."""
        rows = [self.log[commit_id] for commit_id in self.commits[start:stop]]
        name = self.branch.name
        return list(first_parent_snapshots(self.manifest, name, self.state, rows, self.log))

    def steps(self) -> VersionHistory:
        """Return the steps between states of this line."""
        return VersionHistory(self.manifest, (self.branch,))

    def bound(self, scope: ChangeFilter) -> Mapping[str, str]:
        """Return what tokens for this line and a scope are bound to."""
        schema, _ = self.manifest.schema(self.state.head.schema_hash, self.state)
        return {
            "graph": digest(schema.domain),
            "genesis": self.manifest.first_commit(),
            "branch": digest(self.branch.name),
            "incarnation": self.branch.lineage_id or MAIN,
            "filter": filter_digest(scope),
        }
