"""Find the commits that changed an entity, and those that last set its values.

A merge is followed to the commits of its source. It is listed itself only if the entity it left is
that of neither side, as after different properties were changed on both.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from omnigraph.catalog import TypeKind
from omnigraph.changes.entity_model import EntityHistory, HistoryEntry, ValueOrigin, ValueOrigins
from omnigraph.changes.entity_reader import EntityReader, EntityRow, same_entity
from omnigraph.changes.model import ChangeOp
from omnigraph.commit.commit_log import newest_first_key
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import CommitRow
from omnigraph.commit.model import Commit, CommitId, Snapshot
from omnigraph.commit.snapshot import apply_scope_to_commit
from omnigraph.errors import InvalidInput, NotFound, VersionReclaimed
from omnigraph.query.entities import find_type


class _Commits:
    """The origins of an entity that were reached, the newest first."""

    def __init__(self, reader: EntityReader) -> None:
        self._reader = reader
        self._heap: list[tuple[tuple[int, str], CommitId]] = []
        self._waiting: set[CommitId] = set()

    def add(self, commit_id: CommitId) -> CommitId | None:
        """Add the origin of a commit and return it; None if there is none."""
        origin = self._reader.log.origin(commit_id)
        if origin is not None and origin not in self._waiting:
            self._waiting.add(origin)
            key = newest_first_key(self._reader.log.commit(origin).commit)
            heapq.heappush(self._heap, (key, origin))
        return origin

    def __iter__(self) -> Iterator[CommitRow]:
        while self._heap:
            _, origin = heapq.heappop(self._heap)
            self._waiting.remove(origin)
            yield self._reader.log.commit(origin)


# --- history -----------------------------------------------------------------------------------


def read_entity_history(
    manifest: Manifest, snapshot: Snapshot, type_name: str, id_: str, limit: int | None = None
) -> EntityHistory:
    """Return the commits up to a state that changed an entity, the newest first.

    The entity need not exist in the state. Types and properties are followed by identity.
    """
    if limit is not None and limit < 0:
        raise InvalidInput(f"a limit cannot be negative: {limit}", code="limit_invalid")
    walk = _HistoryWalk(EntityReader(manifest, snapshot, find_type(snapshot, type_name), id_))
    entries = tuple(islice(walk.entries(snapshot), limit))
    return EntityHistory(changes=entries, unknown_before=tuple(walk.unknown))


class _HistoryWalk:
    """Lists the changes of an entity, and the commits before which they are unknown."""

    def __init__(self, reader: EntityReader) -> None:
        self.unknown: list[CommitId] = []
        self._reader = reader

    def entries(self, snapshot: Snapshot) -> Iterator[HistoryEntry]:
        """Yield the changes, the newest first."""
        self._reader.row(snapshot.commit_id)  # the requested state itself must be readable
        commits, done = _Commits(self._reader), set[CommitId]()
        commits.add(snapshot.commit_id)
        for row in commits:
            if row.commit.id in done:
                continue
            done.add(row.commit.id)
            step = self._visit(row)
            if step.images is not None:
                commit = apply_scope_to_commit(row.commit, snapshot.scope)
                yield self._entry(commit, *step.images)
            if step.is_cut:
                self.unknown.append(row.commit.id)
            for parent in step.followed:
                commits.add(parent)

    def _visit(self, row: CommitRow) -> _VisitedCommit:
        """Compare the entity that a commit left with that of its parents, as far as needed.

        The first parent comes first: what it has alike was not merged. If it cannot be read, it is
        unknown whether something was.
        """
        sides: dict[CommitId, _Side] = {}
        try:
            after = self._reader.row(row.commit.id)
        except VersionReclaimed:
            return _VisitedCommit(is_cut=True)
        is_taken = False
        for parent in row.commit.parents[:2]:
            side = sides[parent] = self._side(parent)
            is_taken = side.is_known and same_entity(side.row, after)
            if is_taken or not side.is_known:
                break
        first = next(iter(sides.values()), _Side())
        is_change = first.is_known and not is_taken and not same_entity(first.row, after)
        return _VisitedCommit(
            images=(first.row, after) if is_change else None,
            followed=[parent for parent, side in sides.items() if side.is_known],
            is_cut=not all(side.is_known for side in sides.values()),
        )

    def _side(self, commit_id: CommitId) -> _Side:
        try:
            return _Side(self._reader.row(commit_id))
        except VersionReclaimed:
            return _Side(is_known=False)

    def _entry(
        self, commit: Commit, before: EntityRow | None, after: EntityRow | None
    ) -> HistoryEntry:
        row = after or before
        assert row is not None, "a change has at least one image"
        changed = ChangeOp.UPDATE if before is not None else ChangeOp.INSERT
        return HistoryEntry(
            kind=row.type.kind,
            type=row.type.name,
            id=self._reader.id,
            op=ChangeOp.DELETE if after is None else changed,
            before=None if before is None else before.image,
            after=None if after is None else after.image,
            commit=commit,
        )


@dataclass(frozen=True, slots=True)
class _Side:
    """The entity as a parent of a commit shows it, unless its versions were cleaned up."""

    row: EntityRow | None = None
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class _VisitedCommit:
    """What a commit changed, the parents to go on with, and whether one cannot be read."""

    images: tuple[EntityRow | None, EntityRow | None] | None = None
    followed: Sequence[CommitId] = ()
    is_cut: bool = False


# --- blame -------------------------------------------------------------------------------------


_ValueKey: TypeAlias = str | int
"""An end of an edge, or the identity of a property."""


def read_blame(
    manifest: Manifest, snapshot: Snapshot, type_name: str, id_: str
) -> dict[str, ValueOrigin]:
    """Return the commit that last set each end and property of an entity of a state.

    Raises:
        NotFound: the entity does not exist in the state.
    """
    type_ = find_type(snapshot, type_name)
    walk = _BlameWalk(EntityReader(manifest, snapshot, type_, id_))
    ends = ("src", "dst") if type_.kind is TypeKind.EDGE else ()
    keys: dict[str, _ValueKey] = {**{end: end for end in ends}, **type_.property_ids}
    if not walk.follow(snapshot.commit_id, frozenset(keys.values())):
        message = f"{type_.kind} {type_.name} '{id_}' does not exist"
        raise NotFound(message, code="entity_not_found", type=type_.name, id=id_)
    return ValueOrigins({name: walk.origins[key] for name, key in keys.items()})


class _BlameWalk:
    """Finds the origins of the values of an entity."""

    def __init__(self, reader: EntityReader) -> None:
        self.origins: dict[_ValueKey, ValueOrigin] = {}
        self._reader = reader
        self._wanted: defaultdict[CommitId, set[_ValueKey]] = defaultdict(set)

    def follow(self, start: CommitId, keys: frozenset[_ValueKey]) -> bool:
        """Find the origins of values of a state; return whether the entity exists there."""
        if self._reader.row(start) is None:
            return False
        commits = _Commits(self._reader)
        self._want(commits, start, keys)
        for row in commits:
            keys = frozenset(self._wanted.pop(row.commit.id))
            left, origin = self._pass_on(commits, row, keys)
            self.origins |= dict.fromkeys(left, origin)
        return True

    def _pass_on(
        self, commits: _Commits, row: CommitRow, keys: frozenset[_ValueKey]
    ) -> tuple[frozenset[_ValueKey], ValueOrigin]:
        """Look for values in the parents that have them alike; return the others and their origin.

        The first parent is read first: a value that both have was not merged.
        """
        parents, left = row.commit.parents[:2], keys
        try:
            after = self._reader.row(row.commit.id)
            assert after is not None, "a commit that set a value shows the entity"
            if len(parents) == 1 and self._reader.log.inserts_or_deletes(row):
                return left, ValueOrigin.of(row.commit)
            for parent in parents:
                same = after.unchanged(self._reader.row(parent), left) if left else left
                self._want(commits, parent, same)
                left -= same
        except VersionReclaimed:
            return left, ValueOrigin(unknown_before=row.commit.id)
        return left, ValueOrigin.of(row.commit)

    def _want(self, commits: _Commits, commit_id: CommitId, keys: frozenset[_ValueKey]) -> None:
        origin = commits.add(commit_id) if keys else None
        if origin is not None:
            self._wanted[origin] |= keys
