"""Read the history of a branch from its newest commit, as far back as an operation needs it.

The fragments of a lineage are ordered by age, and so are the rows within one. They are read page by
page. Pages never change, so a process reads one again only after it left the cache. The generation
of a commit is greater than those of its parents, which bounds how far back a traversal reads; every
`CHECKPOINT_INTERVAL` generations a commit records all its datasets. Commits of older releases have
neither: an operation that reaches them reads all of them.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.lineage import HistoryRange, LineageState
from omnigraph.commit.manifest_rows import CommitRow, read_commit, read_identity, read_version
from omnigraph.commit.model import Commit, CommitId, DatasetEntry
from omnigraph.errors import GraphCorrupt

DatasetEntries: TypeAlias = dict[tuple[TypeId, IncarnationId], DatasetEntry]


@dataclass(frozen=True)
class HistoryPage:
    """Consecutive rows of a lineage, the oldest first."""

    state: LineageState
    table: pa.Table

    @cached_property
    def commits(self) -> dict[CommitId, CommitRow]:
        """The commits, aborted ones excluded."""
        commits = (read_commit(row) for row in self.rows("graph_commit"))
        return {row.commit.id: row for row in commits if not row.aborted}

    def own_commits(self) -> list[CommitRow]:
        """Return the commits that were published on this lineage, the oldest first."""
        lineage_id = self.state.lineage.lineage_id
        return [row for row in self.commits.values() if row.lineage_id == lineage_id]

    def rows(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the rows of some types."""
        matches = pc.is_in(self.table["object_type"], pa.array(kinds))
        return list(self.table.filter(matches).to_pylist())


class CommitLog(Mapping[CommitId, CommitRow]):
    """The commits in some lineages; a commit is looked up in the newest pages first.

    `first_page` is the page of the first lineage to begin with: newer commits are not found.
    `footprints` decides by its ID whether the pages of a lineage have the footprints of commits.
    """

    def __init__(
        self,
        states: Iterable[LineageState],
        first_page: int = 0,
        *,
        footprints: Callable[[str | None], bool] = lambda _: False,
    ) -> None:
        self.pages: list[HistoryPage] = []
        self._commits: dict[CommitId, CommitRow] = {}
        self._states = iter(states)
        self._first_page = first_page
        self._footprints = footprints
        self._readers: list[_LineageReader] = []

    def __getitem__(self, commit_id: CommitId) -> CommitRow:
        while commit_id not in self._commits:
            if not self._read_page():
                raise KeyError(commit_id)
        return self._commits[commit_id]

    def __iter__(self) -> Iterator[CommitId]:
        self.read_all()
        return iter(self._commits)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def read_all(self) -> None:
        """Read everything: in older releases, rows of datasets come before that of their commit."""
        while self._read_page():
            pass

    def dataset_changes(self) -> DatasetChanges:
        """Return what the commits read so far changed."""
        return DatasetChanges.of(row for page in self.pages for row in page.rows(*DATASET_ROWS))

    def _read_page(self) -> bool:
        """Read a page of the lineage with the newest unread commits; return False if all is read.

        Most readers need only the first lineage, so the others are opened after its first page.
        """
        for state in islice(self._states, None if self.pages else 1):
            first = 0 if self._readers else self._first_page
            self._readers.append(_LineageReader(state, state.pages()[first:]))
        unread = [reader for reader in self._readers if reader.pages]
        if not unread:
            return False
        reader = max(unread, key=lambda reader: reader.newest)
        page = reader.read(footprints=self._footprints(reader.state.lineage.lineage_id))
        self.pages.append(page)
        for commit_id, row in page.commits.items():
            self._commits.setdefault(commit_id, row)
        return True


class _LineageReader:
    """The unread pages of a lineage, and the latest time their commits are expected to have."""

    def __init__(self, state: LineageState, pages: list[HistoryRange]) -> None:
        self.state = state
        self.pages = pages
        self.newest = state.head.created_at or datetime.max.replace(tzinfo=UTC)

    def read(self, *, footprints: bool) -> HistoryPage:
        table = self.state.read_page(self.pages.pop(0), footprints=footprints)
        page = HistoryPage(self.state, table)
        self.newest = min(
            (row.commit.created_at for row in page.own_commits()), default=self.newest
        )
        return page


# --- traverse commits ----------------------------------------------------------------------------


def newest_first(commits: Mapping[CommitId, CommitRow], start: CommitId) -> Iterator[Commit]:
    """Yield a commit and its ancestors, each after all of its children, else by time."""
    if start not in commits:
        raise GraphCorrupt(f"commit {start} is missing from the history")
    counts = _ChildCounts(commits, start)
    ready = [(newest_first_key(commits[start].commit), start)]
    while ready:
        _, commit_id = heapq.heappop(ready)
        commit = commits[commit_id].commit
        yield commit
        for parent in counts.release_parents(commit):
            heapq.heappush(ready, (newest_first_key(commits[parent].commit), parent))


class _ChildCounts:
    """The number of children of each commit that were not yielded, counted as far as needed."""

    def __init__(self, commits: Mapping[CommitId, CommitRow], start: CommitId) -> None:
        self._commits = commits
        self._counts: dict[CommitId, int] = {start: 0}
        self._queue = [(-commits[start].generation, start)]

    def release_parents(self, commit: Commit) -> list[CommitId]:
        """Return the parents of a yielded commit that have no other children left."""
        parents = [parent for parent in commit.parents if parent in self._commits]
        for parent in parents:
            self._count_above(self._commits[parent].generation)
            self._counts[parent] -= 1
        return [parent for parent in dict.fromkeys(parents) if self._counts[parent] == 0]

    def _count_above(self, generation: int) -> None:
        """Count the children that have a greater generation; all, if it is unknown."""
        while self._queue and (-self._queue[0][0] > generation or not generation):
            _, commit_id = heapq.heappop(self._queue)
            for parent in self._commits[commit_id].commit.parents:
                row = self._commits.get(parent)
                if row is None:
                    continue
                if parent not in self._counts:
                    self._counts[parent] = 0
                    heapq.heappush(self._queue, (-row.generation, parent))
                self._counts[parent] += 1


def newest_first_key(commit: Commit) -> tuple[int, str]:
    """Return a key that sorts the newest first; IDs are time-ordered, so they are complemented."""
    return (
        -int(commit.created_at.timestamp() * 1e6),
        "".join(chr(255 - ord(c)) for c in commit.id),
    )


@dataclass(slots=True)
class Divergence:
    """The best common ancestors of two commits, and the commits that only one descends from."""

    bases: list[CommitId] = field(default_factory=list)
    only_one: set[CommitId] = field(default_factory=set)
    only_other: set[CommitId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class AheadBehind:
    """How far two commits diverged from their best common ancestors, in commits.

    `ahead` are those that only the first one descends from, `behind` those only of the other.
    """

    bases: tuple[CommitId, ...]
    ahead: int
    behind: int


_ONE, _OTHER, _COMMON, _BELOW_BASE = 1, 2, 3, 7


def find_divergence(
    commits: Mapping[CommitId, CommitRow], one: CommitId, other: CommitId
) -> Divergence:
    """Return how two commits diverged; no base is an ancestor of another common ancestor."""
    reached: defaultdict[CommitId, int] = defaultdict(int, {one: _ONE})
    reached[other] |= _OTHER
    queue = [(-_generation(commits, commit_id), commit_id) for commit_id in reached]
    heapq.heapify(queue)
    divergence = Divergence()
    while any(reached[commit_id] != _BELOW_BASE for _, commit_id in queue):
        generation, commit_id = heapq.heappop(queue)
        if not generation:
            return _divergence_of_sets(ancestors(commits, one), ancestors(commits, other), commits)
        flags = reached[commit_id]
        if flags == _COMMON:
            divergence.bases.append(commit_id)
            flags = _BELOW_BASE
        elif flags != _BELOW_BASE:
            (divergence.only_one if flags == _ONE else divergence.only_other).add(commit_id)
        for parent in commits[commit_id].commit.parents:
            if parent not in reached:
                heapq.heappush(queue, (-_generation(commits, parent), parent))
            reached[parent] |= flags
    divergence.bases.sort(reverse=True)
    return divergence


def _generation(commits: Mapping[CommitId, CommitRow], commit_id: CommitId) -> int:
    row = commits.get(commit_id)
    return 0 if row is None else row.generation


def _divergence_of_sets(
    one: set[CommitId], other: set[CommitId], commits: Mapping[CommitId, CommitRow]
) -> Divergence:
    common = one & other
    # Ancestors of common commits are common too, so it is enough to exclude their parents.
    shared = (commits[commit_id].commit for commit_id in common if commit_id in commits)
    covered = {parent for commit in shared for parent in commit.parents}
    return Divergence(sorted(common - covered, reverse=True), one - common, other - common)


def ancestors(commits: Mapping[CommitId, CommitRow], start: CommitId) -> set[CommitId]:
    """Return a commit and everything it descends from."""
    reached, queue = {start}, [start]
    while queue:
        row = commits.get(queue.pop())
        for parent in row.commit.parents if row is not None else ():
            if parent not in reached:
                reached.add(parent)
                queue.append(parent)
    return reached


def first_parents(commits: Mapping[CommitId, CommitRow], start: CommitId) -> Iterator[CommitId]:
    """Yield a commit and its first parents: the past heads of its branch."""
    current: CommitId | None = start
    while current is not None:
        row = commits.get(current)
        if row is None:
            raise GraphCorrupt(f"commit {current} is missing from the history")
        yield current
        current = row.commit.parents[0] if row.commit.parents else None


# --- find a commit and its datasets without reading the commits after it ----------------------


def newest_own_commit(
    state: LineageState, reaches: Callable[[CommitRow], bool]
) -> tuple[CommitRow, int] | None:
    """Return the newest commit published on a lineage for which `reaches` is true, and its page.

    `reaches` must be true for all older ones, too: pages are found by binary search.
    """
    pages = state.pages()

    def own_commits(number: int) -> list[CommitRow]:
        """Return the own commits of the newest page that has any, from a page on."""
        tables = map(state.read_page, pages[number:])
        own = (HistoryPage(state, table).own_commits() for table in tables)
        return next(filter(None, own), [])

    def is_reached(number: int) -> bool:
        own = own_commits(number)
        return not own or any(map(reaches, own))

    # Most readers look for a recent commit: the range of the binary search grows from the head.
    end = 1
    while end < len(pages) and not is_reached(end - 1):
        end *= 2
    number = bisect_left(range(min(end, len(pages))), True, lo=end // 2, key=is_reached)
    row = next(filter(reaches, reversed(own_commits(number))), None)
    return None if row is None else (row, number)


def _page_after_commit(state: LineageState, number: int) -> int:
    """Return the newest page that may have rows of datasets that the commits of a page changed.

    They follow the row of their commit, in the same fragment, of which pages may be parts.
    """
    pages = state.pages()
    while not pages[number][-1].is_end:
        number -= 1
        if HistoryPage(state, state.read_page(pages[number])).own_commits():
            break
    return number


def datasets_at_commit(states: Iterable[LineageState], row: CommitRow) -> DatasetEntries:
    """Return the datasets of a commit from the rows of its first parents."""
    states = iter(states)
    state = next(states)
    first_page = 0
    if row.lineage_id == state.lineage.lineage_id:
        version = row.commit.manifest_version
        place = newest_own_commit(state, lambda own: own.commit.manifest_version <= version)
        first_page = 0 if place is None else _page_after_commit(state, place[1])
    log = CommitLog(chain([state], states), first_page)
    line: list[CommitId] = []
    entries: DatasetEntries = {}
    for commit_id in first_parents(log, row.commit.id):
        line.append(commit_id)
        first = log[commit_id]
        if first.datasets is not None:
            entries = {entry.key: entry for entry in first.datasets}
            break
        if not first.generation:
            log.read_all()
    changes = log.dataset_changes()
    for commit_id in reversed(line):
        changes.apply(commit_id, entries)
    return entries


DATASET_ROWS = ("table_version", "table_tombstone")
"""Types of the rows that say which datasets a commit changed."""


@dataclass(slots=True)
class DatasetChanges:
    """The dataset versions that commits published, and the datasets they dropped."""

    published: defaultdict[CommitId, DatasetEntries]
    dropped: defaultdict[CommitId, set[tuple[TypeId, IncarnationId]]]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> DatasetChanges:
        """Read rows of the types `DATASET_ROWS`."""
        changes = cls(defaultdict(dict), defaultdict(set))
        for row in rows:
            if row["object_type"] == "table_version":
                commit_id, entry = read_version(row)
                changes.published[commit_id][entry.key] = entry
            else:
                commit_id = CommitId(row["object_id"].rpartition("@")[2])
                changes.dropped[commit_id].add(read_identity(row))
        return changes

    def apply(self, commit_id: CommitId, entries: DatasetEntries) -> None:
        """Change the datasets of the first parent of a commit to those of the commit."""
        for key in self.dropped.get(commit_id, ()):
            entries.pop(key, None)
        entries.update(self.published.get(commit_id, {}))
