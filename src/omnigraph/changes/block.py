"""This module tells what one commit changed, against its first parent, in a fixed order.

Nodes come before edges, then types by an identity that survives renames, then entities by id.
Values are those of the schema of the commit, written as exports write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.changes.delta import Side, compare_type
from omnigraph.changes.diff import changes_of, paired
from omnigraph.changes.errors import (
    ChangeFeedGap,
    ChangeSchemaBoundary,
    CursorRejected,
    PageLimitExceeded,
)
from omnigraph.changes.model import Change, Scope
from omnigraph.changes.steps import Steps
from omnigraph.changes.tokens import Place, digest
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.errors import InvalidInput, VersionReclaimed

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_CHANGES = 8_192
_MAXIMA = {
    "changes": ("commit_changes_page_changes", MAX_CHANGES),
    "bytes": ("commit_changes_page_bytes", 32 * 1024 * 1024),
    "commits": ("change_feed_commits_per_poll", 512),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one page may hold; bytes are those of its changes as JSON."""

    changes: int = 1_000
    bytes: int = 4 * 1024 * 1024
    commits: int = 128

    def __post_init__(self) -> None:
        """Refuse pages that could hold nothing, or too much."""
        for field in fields(self):
            asked, (resource, most) = getattr(self, field.name), _MAXIMA[field.name]
            if asked < 1:
                message = f"a page holds at least one of {field.name}, not {asked}"
                raise InvalidInput(message, code="limit_invalid", limit=asked)
            if asked > most:
                raise PageLimitExceeded(resource, most, asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChange(Change):
    """A change of a block; `type_id` stays when the type is renamed, and is new when re-added."""

    type_id: str

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        images = {"before": self.before, "after": self.after}
        return {
            "kind": str(self.kind),
            "type": {"id": self.type_id, "name": self.type},
            "id": self.id,
            "op": str(self.op),
            **{name: image.to_json() for name, image in images.items() if image is not None},
        }


@dataclass(frozen=True, slots=True)
class Block:
    """What one commit changed, or a part of it that fits on a page."""

    commit: Commit
    changes: tuple[EntityChange, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"cause": cause(self.commit), "changes": [c.to_json() for c in self.changes]}


def cause(commit: Commit) -> dict[str, Any]:
    """Return the wire form of the commit behind a block."""
    parents = dict(
        zip(("parent_commit_id", "merged_parent_commit_id"), commit.parents, strict=False)
    )
    return {
        "graph_commit_id": commit.id,
        **parents,
        "authored_branch": commit.branch,
        **({} if commit.actor is None else {"actor_id": commit.actor}),
        "authored_at": (commit.created_at - _EPOCH) // timedelta(microseconds=1),
    }


@dataclass(frozen=True, slots=True)
class Pair:
    """A commit with the state before it and the state it made."""

    commit: Commit
    old: Snapshot
    new: Snapshot


def block_changes(
    manifest: Manifest, pair: Pair, scope: Scope, steps: Steps, behind: Place | None = None
) -> Iterator[EntityChange]:
    """Yield what a commit changed, behind a place if one is given.

    Raises:
        ChangeSchemaBoundary: the commit changed the schema.
        ChangeFeedGap: a version it needs has been cleaned up.
        CursorRejected: there is no such place.
    """
    _check_schema(pair)
    types = {_type_id(pair.new, new.type): (old, new) for old, new in _sides(pair)}
    if behind is not None and behind.type_id not in types:
        raise CursorRejected("there is no such place in the commit")
    ordered = sorted(types, key=lambda type_id: (_is_edge(types[type_id][1]), type_id))
    start = ordered.index(behind.type_id) if behind is not None else 0
    try:
        for type_id in ordered[start:]:
            old, new = types[type_id]
            if scope.covers(new.type.kind, new.type.name):
                place = behind if behind is not None and behind.type_id == type_id else None
                changes = _type_changes(manifest, (old, new), steps, place)
                yield from (_identified(c, type_id) for c in changes if scope.wants(c.op))
    except VersionReclaimed as error:
        raise ChangeFeedGap(pair.commit.id) from error


def _check_schema(pair: Pair) -> None:
    """Refuse a commit that changed the schema, whoever asks and for what."""
    old, new = pair.old.schema, pair.new.schema
    if old == new:
        return
    former = {t.id: t for t in old.types}
    present = {t.id: t for t in new.types}
    ids = dict.fromkeys([*present, *former])
    changed = (present.get(i) or former[i] for i in ids if present.get(i) != former.get(i))
    raise ChangeSchemaBoundary(pair.commit.id, next((t.name for t in changed), None))


def _sides(pair: Pair) -> Iterator[tuple[Side, Side]]:
    for old, new in paired(pair.old, pair.new):
        assert old is not None, "one schema has the same types before and after"
        assert new is not None, "one schema has the same types before and after"
        yield old, new


def _is_edge(side: Side) -> bool:
    return side.type.kind is TypeKind.EDGE


def _type_id(snapshot: Snapshot, type_: AcceptedType) -> str:
    return digest(snapshot.schema.domain, f"{type_.id}", f"{type_.incarnation}")


def _identified(change: Change, type_id: str) -> EntityChange:
    known = {field.name: getattr(change, field.name) for field in fields(change)}
    return EntityChange(**known, type_id=type_id)


def _type_changes(
    manifest: Manifest, sides: tuple[Side, Side], steps: Steps, behind: Place | None
) -> Iterator[Change]:
    after = behind.id if behind is not None else None
    deltas = compare_type(manifest, *sides, steps, after=after)
    changes = (change for delta in deltas for change in changes_of(delta, *sides))
    # Of an id too long for a token others begin like it, and those up to it were told before.
    exact = None if behind is None else behind.exact
    if exact is not None and not any(digest(change.id) == exact for change in changes):
        raise CursorRejected("there is no such place in the commit")
    yield from changes


class Room:
    """What is left of a page. The first change always fits, however large it is."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._changes = self._bytes = 0

    def take(self, changes: Iterable[EntityChange]) -> tuple[tuple[EntityChange, ...], bool]:
        """Return the changes that fit, and whether those are all."""
        taken: list[EntityChange] = []
        for change in changes:
            if not self._admits(change):
                return tuple(taken), False
            taken.append(change)
        return tuple(taken), True

    def _admits(self, change: EntityChange) -> bool:
        if self._changes == self._limits.changes:
            return False
        size = len(json.dumps(change.to_json(), ensure_ascii=False, separators=(",", ":")).encode())
        if self._changes and self._bytes + size > self._limits.bytes:
            return False
        self._changes += 1
        self._bytes += size
        return True
