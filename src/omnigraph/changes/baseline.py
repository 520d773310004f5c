"""This module hands a reader a whole state and the cursor that goes on from exactly there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog import TypeKind
from omnigraph.changes.feed import cursor_at
from omnigraph.changes.line import Line
from omnigraph.changes.model import Scope
from omnigraph.changes.scope import check_types
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import CommitId, Snapshot
from omnigraph.commit.view import seen


@dataclass(frozen=True, slots=True)
class Handshake:
    """A state, its types that a reader asked for as `node:T` or `edge:E`, and how to go on."""

    snapshot: Snapshot
    types: tuple[str, ...]
    resume_cursor: str

    @property
    def snapshot_commit_id(self) -> CommitId:
        """The commit whose state it is."""
        return self.snapshot.commit_id

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "snapshot_commit_id": self.snapshot_commit_id,
            "resume_cursor": self.resume_cursor,
        }


@dataclass(frozen=True, slots=True)
class Baseline:
    """A handshake and the entities of its state, one line of JSON each, to be read once."""

    handshake: Handshake
    lines: Iterator[str]

    @property
    def snapshot_commit_id(self) -> CommitId:
        """The commit whose state the lines are."""
        return self.handshake.snapshot_commit_id

    @property
    def resume_cursor(self) -> str:
        """The cursor that goes on from that state."""
        return self.handshake.resume_cursor

    def records(self) -> Iterator[str]:
        """Yield the lines and, if all went well, the handshake as the last one."""
        yield from self.lines
        yield json.dumps({"baseline": self.handshake.to_json()}, separators=(",", ":"))


def capture(manifest: Manifest, branch_name: str, scope: Scope) -> Handshake:
    """Return the newest state of a branch as a place to go on from.

    The scope limits kinds and types; ops only say which changes the reader wants afterwards.
    """
    line = Line.read(manifest, branch_name)
    snapshot = seen(manifest, line.head, scope.sight)
    check_types(scope, [snapshot.schema])
    types = (t for kind in (TypeKind.EDGE, TypeKind.NODE) for t in snapshot.schema.of_kind(kind))
    covered = tuple(t.entity for t in types if scope.covers(t.kind, t.name))
    return Handshake(snapshot, covered, cursor_at(line, scope, len(line.commits) - 1))
