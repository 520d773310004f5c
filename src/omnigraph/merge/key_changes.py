"""Edge types whose key changed: all their edges have other IDs, in another incarnation of the type.

Edges of two incarnations cannot be merged. What one side changed of the former incarnation is a
conflict, and a key does not change while other branches have such changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.catalog import AcceptedSchema, AcceptedType, TypeKind
from omnigraph.changes.type_delta import compare_type
from omnigraph.changes.version_history import VersionHistory
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.dataset_view import DatasetView, needs_reshaping
from omnigraph.errors import Category, OmniError
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.merge_base import CommitGraph, find_view

_MAX_LISTED = 20


class KeyChangeBlocked(OmniError):
    """The key of an edge type cannot change: other branches have changes of its edges."""

    def __init__(self, type_name: str, branches: Sequence[str]) -> None:
        self.branches = tuple(branches)
        shown, more = ", ".join(branches[:_MAX_LISTED]), len(branches) - _MAX_LISTED
        rest = f" and {more} more" if more > 0 else ""
        super().__init__(
            f"the key of edge {type_name} cannot change: its edges changed on {shown}{rest} since "
            "the branches diverged; merge or delete these branches first",
            code="key_change_blocked",
            category=Category.CONFLICT,
            details={"type": type_name, "branches": list(branches)},
        )


def check_rewrite(manifest: Manifest, snapshot: Snapshot, type_: AcceptedType) -> None:
    """Raise KeyChangeBlocked if branches have changes of a type that a state does not have."""
    names = (MAIN, *sorted(b.name for b in manifest.branches().values() if not b.deleting))
    others = [name for name in names if name != snapshot.branch]
    changed = [name for name in others if _has_changes(manifest, snapshot, type_, name)]
    if changed:
        raise KeyChangeBlocked(type_.name, changed)


def _has_changes(manifest: Manifest, snapshot: Snapshot, type_: AcceptedType, name: str) -> bool:
    other = head_snapshot(manifest, name)
    view = find_view(manifest, other, type_)
    if view is None or view.entry.state == snapshot.entry(type_.entity).state:
        return False
    graph = CommitGraph.of(manifest, other, snapshot)
    bases = graph.snapshots(graph.divergence(other.commit_id, snapshot.commit_id).bases)
    return any(_differ(manifest, find_view(manifest, b, type_), view, other) for b in bases)


def _differ(
    manifest: Manifest, before: DatasetView | None, after: DatasetView, state: Snapshot
) -> bool:
    deltas = compare_type(before, after, VersionHistory(manifest, (state,)))
    return any(delta.before.num_rows or delta.after.num_rows for delta in deltas)


def find_rekeyed_changes(
    manifest: Manifest,
    bases: Sequence[Snapshot],
    sides: Sequence[Snapshot],
    merged: AcceptedSchema,
) -> Iterator[Conflict]:
    """Yield a conflict for each edge type that a side has in another incarnation, and changed."""
    for type_ in merged.of_kind(TypeKind.EDGE):
        known = (base.schema.by_id(type_.id) for base in bases)
        base = next(((b, t) for b, t in zip(bases, known, strict=True) if t is not None), None)
        if base is None:
            continue
        before = DatasetView.of(manifest, *base)
        for side in sides:
            own = side.schema.by_id(type_.id)
            if own is None or own.incarnation == type_.incarnation:
                continue
            after = DatasetView.of(manifest, side, own)
            if own.incarnation != before.type.incarnation:
                if before.rows or after.rows:
                    yield _conflict(type_, "both sides changed its key")
            elif _differ(manifest, before, after, side):
                yield _conflict(type_, "one side changed its key, the other its edges")


def find_reshaped_keys(
    source: AcceptedSchema, target: AcceptedSchema, merged: AcceptedSchema
) -> Iterator[Conflict]:
    """Yield a conflict for each edge type that gets the edges of the source, and other columns."""
    for type_ in merged.of_kind(TypeKind.EDGE):
        ours, theirs = source.by_id(type_.id), target.by_id(type_.id)
        if ours is None or theirs is None or theirs.incarnation == type_.incarnation:
            continue
        if needs_reshaping(ours, type_):
            yield _conflict(type_, "one side changed its key, the other its properties")


def _conflict(type_: AcceptedType, what: str) -> Conflict:
    advice = "make one of the two changes again after merging the other"
    return Conflict(
        kind=ConflictKind.SCHEMA_CONFLICT,
        message=f"{type_.name}: {what}; {advice}",
        entity_kind=TypeKind.EDGE,
        type=type_.name,
    )
