"""Find the merge base of two states, and read entities of the states of a merge.

Histories that were merged crosswise have several best common ancestors. Their own merge is then the
base, entity by entity; where that is a conflict itself, there is no base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.catalog import AcceptedType
from omnigraph.commit.history import extend_commits, merge_bases, read_commits
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import CommitRow
from omnigraph.commit.model import CommitId, Snapshot
from omnigraph.commit.snapshot import snapshot_of_commit
from omnigraph.dataset_view import DatasetView
from omnigraph.merge.conflict_rules import MergeVerdict, classify_rows
from omnigraph.merge.three_way_rows import AlignedRows, compare_three_ways, to_target_schema
from omnigraph.types.arrow import Mask
from omnigraph.write.change_set import RowSchema
from omnigraph.write.resolved_change import choose_rows


def find_view(manifest: Manifest, snapshot: Snapshot, type_: AcceptedType) -> DatasetView | None:
    """Return the type with the same identity in a snapshot, or None."""
    same_type = snapshot.schema.by_id(type_.id)
    if same_type is None or same_type.incarnation != type_.incarnation:
        return None
    return DatasetView.of(manifest, snapshot, same_type)


def read_entities(
    manifest: Manifest, snapshot: Snapshot, shape: RowSchema, ids: pa.Array
) -> AlignedRows:
    """Return entities of a state by id, in the shape of another."""
    view = find_view(manifest, snapshot, shape.type)
    if view is None:
        return AlignedRows.of(ids, shape.schema.empty_table())
    return AlignedRows.of(ids, to_target_schema(view.entities(ids), view.type, shape))


@dataclass(frozen=True, slots=True)
class CommitGraph:
    """The history two states share."""

    manifest: Manifest
    source: Snapshot
    commits: Mapping[CommitId, CommitRow]

    @classmethod
    def of(cls, manifest: Manifest, source: Snapshot, target: Snapshot) -> CommitGraph:
        """Read the history of both."""
        states = [manifest.lineage(snapshot.lineage_id).state() for snapshot in (source, target)]
        commits = read_commits(s for state in states for s in manifest.history_states(state))
        return cls(manifest, source, commits)

    def extended_to(self, target: Snapshot) -> CommitGraph:
        """Return the same with what the target has got since."""
        state = self.manifest.lineage(target.lineage_id).state()
        commits = extend_commits(self.commits, state)
        if commits is None:
            return CommitGraph.of(self.manifest, self.source, target)
        return CommitGraph(self.manifest, self.source, commits)

    def bases(self, one: CommitId, other: CommitId) -> tuple[Snapshot, ...]:
        """Return the best common ancestors of two commits."""
        ancestors = merge_bases(self.commits, one, other)
        return tuple(snapshot_of_commit(self.manifest, commit_id) for commit_id in ancestors)

    def common(
        self, bases: Sequence[Snapshot], shape: RowSchema, ids: pa.Array
    ) -> tuple[AlignedRows, Mask]:
        """Return entities as several ancestors together have them, and for which there is none."""
        rows = read_entities(self.manifest, bases[0], shape, ids)
        undecided = np.zeros(len(ids), np.bool_)
        for other in bases[1:]:
            theirs = read_entities(self.manifest, other, shape, ids)
            older = self.bases(bases[0].commit_id, other.commit_id)
            base, unknown = self.common(older, shape, ids) if older else (rows, ~rows.same(theirs))
            rows, torn = _merge_base_rows(base, rows, theirs)
            undecided |= torn | (unknown & ~rows.same(theirs))
        return rows, undecided


def _merge_base_rows(
    base: AlignedRows, one: AlignedRows, other: AlignedRows
) -> tuple[AlignedRows, Mask]:
    """Merge two states of entities; return where they cannot be."""
    verdicts = classify_rows(compare_three_ways(base, one, other))
    first = verdicts != MergeVerdict.KEEP_TARGET
    columns = {
        name: choose_rows(first, one.rows[name], other.rows[name]) for name in one.rows.column_names
    }
    there = np.where(first, one.present, other.present)
    return AlignedRows(pa.table(columns), there), verdicts > MergeVerdict.TAKE_SOURCE
