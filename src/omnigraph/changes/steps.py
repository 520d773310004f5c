"""This module finds the way between two versions of a dataset that passes over upkeep.

Compaction moves rows to new files and changes none. Two versions between which it lies are compared
piece by piece, and the steps of upkeep are left out. What differs in no piece differs nowhere,
whichever way is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.history import History, read_history
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import CommitId, DatasetEntry, Snapshot
from omnigraph.errors import NotFound
from omnigraph.write.request import UPKEEP

Key: TypeAlias = tuple[TypeId, IncarnationId]
Run: TypeAlias = tuple[DatasetEntry, DatasetEntry]


@dataclass(frozen=True, slots=True)
class _Origin:
    """The version another one was made from, and whether by upkeep."""

    entry: DatasetEntry
    by_upkeep: bool


class Steps:
    """The steps between states of a graph, from its history, which is read when it is needed."""

    def __init__(
        self, manifest: Manifest, snapshots: Sequence[Snapshot], history: History | None = None
    ) -> None:
        self._manifest = manifest
        self._snapshots = snapshots
        self._known = history

    @cached_property
    def _history(self) -> History | None:
        if self._known is not None:
            return self._known
        try:
            states = [self._manifest.lineage(s.native).state() for s in self._snapshots]
            lines = [holder for state in states for holder in self._manifest.line(state)]
            return read_history({holder.lineage.native: holder for holder in lines}.values())
        except NotFound:
            return None  # the branch of a state is gone

    def runs(self, old: DatasetEntry, new: DatasetEntry) -> list[Run] | None:
        """Return the pairs of versions to compare instead of two; None when no way is known."""
        if self._history is None:
            return None
        origins = _origins(self._history, old.key)
        left, right = list(_back(origins, old)), list(_back(origins, new))
        reached = {entry.physical: place for place, (entry, _) in enumerate(right)}
        meeting = next((i for i, (e, _) in enumerate(left) if e.physical in reached), None)
        if meeting is None:
            return None
        there = reached[left[meeting][0].physical]
        down = [(left[i][0], left[i + 1][0], left[i][1]) for i in range(meeting)]
        up = [(right[i][0], right[i - 1][0], right[i - 1][1]) for i in range(there, 0, -1)]
        return list(_runs(old, [*down, *up]))


def _runs(
    start: DatasetEntry, way: Sequence[tuple[DatasetEntry, DatasetEntry, bool]]
) -> Iterator[Run]:
    """Yield the stretches of a way between steps of upkeep."""
    end = start
    for one, other, by_upkeep in way:
        if by_upkeep:
            if start.physical != one.physical:
                yield start, one
            start = other
        end = other
    if start.physical != end.physical:
        yield start, end


def _back(origins: dict[int, _Origin], entry: DatasetEntry) -> Iterator[tuple[DatasetEntry, bool]]:
    """Yield a version and those it goes back to, each with whether upkeep made it."""
    seen: set[int] = set()
    current: DatasetEntry | None = entry
    while current is not None and current.physical not in seen:
        seen.add(current.physical)
        origin = origins.get(current.physical)
        yield current, origin is not None and origin.by_upkeep
        current = origin.entry if origin is not None else None


def _origins(history: History, key: Key) -> dict[int, _Origin]:
    """Return what each version of a dataset was made from.

    A merge may publish a version that was made on the branch it merged; who was first made it.
    """
    found: dict[int, _Origin] = {}
    shown: dict[CommitId, DatasetEntry | None] = {}
    made = [c for c, entries in history.published.items() if key in entries]
    for commit_id in sorted(made, key=lambda c: (_is_merge(history, c), c)):
        row = history.commits.get(commit_id)
        before = (
            _shown(history, key, row.commit.parents[0], shown)
            if row and row.commit.parents
            else None
        )
        if row is not None and before is not None:
            origin = _Origin(before, row.commit.operation == UPKEEP)
            found.setdefault(history.published[commit_id][key].physical, origin)
    return found


def _is_merge(history: History, commit_id: CommitId) -> bool:
    row = history.commits.get(commit_id)
    return row is not None and len(row.commit.parents) > 1


def _shown(
    history: History, key: Key, start: CommitId, shown: dict[CommitId, DatasetEntry | None]
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
    found = None if current is None else shown[current]
    shown.update(dict.fromkeys(trail, found))
    return found
