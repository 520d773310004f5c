"""Find the merge base of two states, and read entities of the states of a merge.

Histories that were merged crosswise have several best common ancestors. Their own merge is then the
base, entity by entity; where that is a conflict itself, there is no base.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.catalog import AcceptedType
from omnigraph.commit.commit_log import CommitLog, Divergence, find_divergence
from omnigraph.commit.history import missing_history
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.commit.model import CommitId, Snapshot
from omnigraph.commit.snapshot import snapshot_in_history
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
    """The history of two states, as far back as they differ."""

    manifest: Manifest
    commits: CommitLog
    target: tuple[LineageState, ...] = ()

    @classmethod
    def of(cls, manifest: Manifest, source: Snapshot, target: Snapshot) -> CommitGraph:
        """Return the history of both; it is read when it is needed."""
        states: dict[str | None, LineageState] = {}
        for snapshot in (source, target):
            state = states.get(snapshot.lineage_id)
            state = state or manifest.lineage(snapshot.lineage_id).state()
            history = tuple(manifest.history_states(state))
            states |= {holder.lineage.lineage_id: holder for holder in history}
        held = {holder.lineage.lineage_id for holder in history}
        # What the target lacks may be copied to it, with footprints.
        log = CommitLog(states.values(), footprints=lambda id_: id_ not in held)
        return cls(manifest, log, history)

    def divergence(self, one: CommitId, other: CommitId) -> Divergence:
        """Return the best common ancestors of two commits, and what only one of them has."""
        return find_divergence(self.commits, one, other)

    def snapshots(self, commit_ids: Iterable[CommitId]) -> tuple[Snapshot, ...]:
        """Return the states of commits."""
        rows = (self.commits[commit_id] for commit_id in commit_ids)
        return tuple(snapshot_in_history(self.manifest, self.target, row) for row in rows)

    def missing_history(self, commit_ids: set[CommitId]) -> tuple[NewManifestRow, ...]:
        """Return the history rows of commits that the target does not hold."""
        return missing_history(self.commits, commit_ids, self.target)

    def common(
        self, bases: Sequence[Snapshot], shape: RowSchema, ids: pa.Array
    ) -> tuple[AlignedRows, Mask]:
        """Return entities as several ancestors together have them, and for which there is none."""
        rows = read_entities(self.manifest, bases[0], shape, ids)
        undecided = np.zeros(len(ids), np.bool_)
        for other in bases[1:]:
            theirs = read_entities(self.manifest, other, shape, ids)
            diverged = self.divergence(bases[0].commit_id, other.commit_id)
            older = self.snapshots(diverged.bases)
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
