"""This module reads entities of the states a merge looks at, and finds what they descend from.

Histories that were merged crosswise have several best common ancestors. Their own merge is then the
base, entity by entity; where that is a conflict itself, there is no base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.catalog import AcceptedType
from omnigraph.changes.delta import Side, reading
from omnigraph.commit.history import merge_bases, read_commits, with_newer
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import CommitId, Snapshot
from omnigraph.commit.rows import CommitRow
from omnigraph.commit.snapshot import snapshot_of_commit
from omnigraph.merge.classify import Sides, Verdict, classify
from omnigraph.merge.rows import Aligned, choose, shaped
from omnigraph.types.equal import Mask
from omnigraph.write.shape import Shape


def side_of(snapshot: Snapshot, type_: AcceptedType) -> Side | None:
    """Return the type with the same identity as a snapshot shows it, or None."""
    found = snapshot.schema.by_id(type_.id)
    if found is None or found.incarnation != type_.incarnation:
        return None
    return Side.of(snapshot, found)


def entities(manifest: Manifest, snapshot: Snapshot, shape: Shape, ids: pa.Array) -> Aligned:
    """Return entities of a state by id, in the shape of another."""
    side = side_of(snapshot, shape.type)
    if side is None:
        return Aligned.of(ids, shape.schema.empty_table())
    with reading(manifest, side) as reader:
        return Aligned.of(ids, shaped(reader.by_id(ids), side.type, shape))


@dataclass(frozen=True, slots=True)
class Lines:
    """The history two states share."""

    manifest: Manifest
    source: Snapshot
    commits: Mapping[CommitId, CommitRow]

    @classmethod
    def of(cls, manifest: Manifest, source: Snapshot, target: Snapshot) -> Lines:
        """Read the history of both."""
        states = [manifest.lineage(snapshot.native).state() for snapshot in (source, target)]
        commits = read_commits(s for state in states for s in manifest.line(state))
        return cls(manifest, source, commits)

    def up_to(self, target: Snapshot) -> Lines:
        """Return the same with what the target has got since."""
        state = self.manifest.lineage(target.native).state()
        commits = with_newer(self.commits, state)
        if commits is None:
            return Lines.of(self.manifest, self.source, target)
        return Lines(self.manifest, self.source, commits)

    def bases(self, one: CommitId, other: CommitId) -> tuple[Snapshot, ...]:
        """Return the best common ancestors of two commits."""
        found = merge_bases(self.commits, one, other)
        return tuple(snapshot_of_commit(self.manifest, commit_id) for commit_id in found)

    def common(
        self, bases: Sequence[Snapshot], shape: Shape, ids: pa.Array
    ) -> tuple[Aligned, Mask]:
        """Return entities as several ancestors together have them, and for which there is none."""
        found = entities(self.manifest, bases[0], shape, ids)
        undecided = np.zeros(len(ids), np.bool_)
        for other in bases[1:]:
            theirs = entities(self.manifest, other, shape, ids)
            older = self.bases(bases[0].commit_id, other.commit_id)
            base, unknown = (
                self.common(older, shape, ids) if older else (found, ~found.same(theirs))
            )
            found, torn = _merged(base, found, theirs)
            undecided |= torn | (unknown & ~found.same(theirs))
        return found, undecided


def _merged(base: Aligned, one: Aligned, other: Aligned) -> tuple[Aligned, Mask]:
    """Merge two states of entities; return where they cannot be."""
    verdicts = classify(
        Sides(
            in_base=base.there,
            in_source=one.there,
            in_target=other.there,
            source_is_base=one.same(base),
            target_is_base=other.same(base),
            source_is_target=one.same(other),
        )
    )
    first = verdicts != Verdict.KEEP_TARGET
    columns = {
        name: choose(first, one.rows[name], other.rows[name]) for name in one.rows.column_names
    }
    there = np.where(first, one.there, other.there)
    return Aligned(pa.table(columns), there), verdicts > Verdict.TAKE_SOURCE
