"""A whole state of a graph, and the cursor that continues from exactly there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog import TypeKind
from omnigraph.changes.feed import feed_cursor
from omnigraph.changes.model import ChangeFilter, check_filter_types
from omnigraph.changes.version_history import FirstParentHistory
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import CommitId, Snapshot
from omnigraph.commit.snapshot import apply_scope


@dataclass(frozen=True, slots=True)
class BaselineInfo:
    """A state, its requested types as `node:T` or `edge:E`, and how to go on."""

    snapshot: Snapshot
    types: tuple[str, ...]
    resume_cursor: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entities of a state, one line of JSON each, to be read once; and how to go on from it."""

    snapshot_commit_id: CommitId
    resume_cursor: str
    lines: Iterator[str]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form, without the lines."""
        return {
            "snapshot_commit_id": self.snapshot_commit_id,
            "resume_cursor": self.resume_cursor,
        }

    def records(self) -> Iterator[str]:
        """Yield the lines and, if all went well, the state and the cursor as the last one."""
        yield from self.lines
        yield json.dumps({"baseline": self.to_json()}, separators=(",", ":"))


def capture_baseline(manifest: Manifest, branch_name: str, scope: ChangeFilter) -> BaselineInfo:
    """Return the newest state of a branch as a place to go on from.

    The scope limits kinds and types; ops only say which changes the reader wants afterwards.
    """
    line = FirstParentHistory.at_head(manifest, branch_name)
    snapshot = apply_scope(manifest, line.head, scope.sight)
    check_filter_types(scope, [snapshot.schema])
    types = (t for kind in (TypeKind.EDGE, TypeKind.NODE) for t in snapshot.schema.of_kind(kind))
    covered = tuple(t.entity for t in types if scope.covers(t.kind, t.name))
    return BaselineInfo(snapshot, covered, feed_cursor(line, scope, len(line.commits) - 1))
