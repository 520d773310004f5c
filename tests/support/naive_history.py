"""The history of an entity and the origins of its values, from the differences of all commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import omnigraph.graph as og
from omnigraph.catalog import AcceptedType, TypeId
from omnigraph.changes.model import Change, EntityImage
from omnigraph.commit.model import Commit, CommitId
from omnigraph.commit.snapshot import SnapshotRef

Values = Mapping[str, Any]
"""The ends and properties of an entity: ends by name, properties by identity."""


@dataclass
class NaiveHistory:
    """Computes what `history` and `blame` should return by comparing every pair of states."""

    graph: og.Graph
    _commits: dict[CommitId, Commit] = field(default_factory=dict)
    _changes: dict[tuple[CommitId, CommitId, TypeId, str], Change | None] = field(
        default_factory=dict
    )
    _values: dict[tuple[CommitId, TypeId, str], Values | None] = field(default_factory=dict)

    def history(self, at: SnapshotRef, type_: AcceptedType, id_: str) -> list[tuple[Any, ...]]:
        """Return what `describe` returns of the entries, in the order of the log."""
        reached = list(self._reached(self.graph.snapshot(at).commit_id, type_, id_))
        entries = []
        for commit in reached:
            changes = [self.change(parent, commit.id, type_, id_) for parent in commit.parents]
            if changes and all(changes):
                first = changes[0]
                assert first is not None
                entries.append((commit.id, *describe(first)))
        order = [commit.id for commit in self.log(at)]
        return sorted(entries, key=lambda entry: order.index(entry[0]))

    def blame(self, at: SnapshotRef, type_: AcceptedType, id_: str) -> dict[str, CommitId]:
        """Return the commit that last set each value."""
        start = self.graph.snapshot(at).commit_id
        values = self.values(start, type_, id_)
        assert values is not None, "the entity exists"
        names = {str(number): name for name, number in type_.property_ids.items()}
        found = {key: self._set_by(start, key, type_, id_) for key in values}
        return {names.get(key, key): commit_id for key, commit_id in found.items()}

    def log(self, at: SnapshotRef) -> list[Commit]:
        """Return the commits that a state descends from, the newest first."""
        start = self.graph.snapshot(at).commit_id
        left, reached = [start], dict[CommitId, Commit]()
        while left:
            id_ = left.pop()
            if id_ not in reached:
                reached[id_] = self.commit(id_)
                left += reached[id_].parents
        return sorted(reached.values(), key=lambda commit: (commit.created_at, commit.id))[::-1]

    def commit(self, id_: CommitId) -> Commit:
        """Return a commit."""
        if id_ not in self._commits:
            self._commits[id_] = self.graph.commits.get(id_)
        return self._commits[id_]

    def change(
        self, parent: CommitId, commit_id: CommitId, type_: AcceptedType, id_: str
    ) -> Change | None:
        """Return what happened to the entity between two commits."""
        key = (parent, commit_id, type_.id, id_)
        if key not in self._changes:
            names = {self._name(at, type_) for at in (parent, commit_id)} - {None}
            changes = self.graph.diff(parent, commit_id, types=sorted(filter(None, names)) or None)
            matches = [c for c in changes if (c.kind, c.id) == (type_.kind, id_) and names]
            self._changes[key] = matches[0] if matches else None
        return self._changes[key]

    def values(self, commit_id: CommitId, type_: AcceptedType, id_: str) -> Values | None:
        """Return the values of the entity in a state, None if it is absent."""
        key = (commit_id, type_.id, id_)
        if key not in self._values:
            name, entity = self._name(commit_id, type_), None
            if name is not None:
                entity = self.graph.entity_at(f"{type_.kind}:{name}", id_, commit_id)
            if entity is not None:
                entity.pop("id")
                shown = self.graph.snapshot(commit_id).schema.by_id(type_.id)
                assert shown is not None
                ids = shown.property_ids
                entity = {str(ids.get(k, k)): repr(value) for k, value in entity.items()}
            self._values[key] = entity
        return self._values[key]

    def _name(self, commit_id: CommitId, type_: AcceptedType) -> str | None:
        shown = self.graph.snapshot(commit_id).schema.by_id(type_.id)
        return None if shown is None or shown.incarnation != type_.incarnation else shown.name

    def _reached(self, start: CommitId, type_: AcceptedType, id_: str) -> Iterator[Commit]:
        """Yield the commits that the entity is followed to."""
        left, seen = [start], set[CommitId]()
        while left:
            commit = self.commit(left.pop())
            if commit.id in seen:
                continue
            seen.add(commit.id)
            yield commit
            parents = commit.parents
            if len(parents) == 2 and self.change(parents[0], commit.id, type_, id_) is None:
                parents = parents[:1]
            left += parents

    def _set_by(self, start: CommitId, key: str, type_: AcceptedType, id_: str) -> CommitId:
        commit = self.commit(start)
        while True:
            values = self.values(commit.id, type_, id_)
            assert values is not None
            for parent in commit.parents:
                before = self.values(parent, type_, id_)
                if before is not None and before.get(key, "None") == values.get(key, "None"):
                    commit = self.commit(parent)
                    break
            else:
                return commit.id


def describe(change: Change) -> tuple[Any, ...]:
    """Return a change in a form that is compared by value."""
    return (str(change.op), change.type, change.id, _image(change.before), _image(change.after))


def _image(image: EntityImage | None) -> tuple[Any, ...] | None:
    return None if image is None else (repr(dict(image.properties)), image.endpoints)
