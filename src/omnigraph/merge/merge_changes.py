"""Turn the changes of the source since the merge bases into a change of the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType
from omnigraph.changes.type_delta import (
    ENTITY_BATCH,
    TypeDelta,
    compare_type,
)
from omnigraph.changes.version_history import VersionHistory
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot, VersionState
from omnigraph.dataset_view import DatasetView
from omnigraph.merge.conflicts import Conflict, MergeConflicts
from omnigraph.merge.merge_base import CommitGraph, find_view, read_entities
from omnigraph.merge.model import MergeOptions
from omnigraph.merge.three_way_rows import AlignedRows, RowCombiner, ThreeWayRows, to_target_schema
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.storage.version_diff import added_fragments
from omnigraph.write.change_set import ChangeSet, RowBatch, RowSchema, TypeChange, find_row_schema
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.embedding_models import vector_properties
from omnigraph.write.external_blobs import ExternalBlobs
from omnigraph.write.request import WriteRequest, check_changes_allowed, check_whole_types_allowed
from omnigraph.write.violations import ViolationCollector

MIN_SHARED_INSERTS = 1_000
"""Inserted entities of a type from which on their files are shared instead of written again."""
MAX_CACHED_DELTAS = 4
MIN_PARALLEL_TYPES = 4
"""Number of changed types from which on they are merged side by side."""
MAX_THREADS = 4
_NO_FINDINGS_LIMIT = 1_000_000


@dataclass(slots=True)
class SourceDelta:
    """What a source changed; kept while its target moves, unless it is much."""

    source: Snapshot
    _kept: dict[tuple[VersionState | None, VersionState], list[TypeDelta]] = field(
        default_factory=dict
    )

    def deltas(
        self, manifest: Manifest, before: DatasetView | None, side: DatasetView
    ) -> Iterator[TypeDelta]:
        """Yield what changed in a type since a base."""
        key = (None if before is None else before.entry.state, side.entry.state)
        if key in self._kept:
            yield from self._kept[key]
            return
        few: list[TypeDelta] | None = []
        for delta in compare_type(before, side, VersionHistory(manifest, (self.source,))):
            yield delta
            if few is not None:
                few = [*few, delta] if len(few) < MAX_CACHED_DELTAS else None
        if few is not None:
            self._kept[key] = few


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeChanges:
    """Makes a change of the target out of what the source changed since the bases."""

    lines: CommitGraph
    bases: tuple[Snapshot, ...]
    source_delta: SourceDelta
    committed: CommittedState
    request: WriteRequest
    options: MergeOptions
    sharing: bool = False
    """Whether files of the source surely stay until the target has them, too."""
    added: frozenset[object] = frozenset()
    """Types the target gets from the source."""

    @property
    def source(self) -> Snapshot:
        """The state whose changes are source_delta."""
        return self.source_delta.source

    def changes(self) -> ChangeSet:
        """Return the change; raise MergeConflicts when the sides disagree."""
        changes, conflicts = self.collect()
        if conflicts:
            raise MergeConflicts(conflicts, self.committed.snapshot.branch)
        return changes

    def collect(self) -> tuple[ChangeSet, list[Conflict]]:
        """Return the change, and the entities about which the sides disagree."""
        target = self.committed.snapshot
        changes = ChangeSet(findings=ViolationCollector(_NO_FINDINGS_LIMIT))
        conflicts: list[Conflict] = []
        sides = ((self._view(self.source, t), t) for t in target.types())
        changed = [(side, t) for side, t in sides if side is not None and self._is_changed(side, t)]
        for _, type_ in changed:  # also where the target has the same already
            self.committed.read(find_row_schema(target.schema, type_.kind, type_.name))
        moved = [(side, type_) for side, type_ in changed if self._differs(side, type_)]
        # Before anything is read: conflicts show entities.
        check_whole_types_allowed((type_ for _, type_ in moved), self.request, self.committed)
        for _, type_ in moved:  # in this order, in whichever they are merged
            changes.of(find_row_schema(target.schema, type_.kind, type_.name))
        if len(moved) < MIN_PARALLEL_TYPES or len(self.bases) > 1:
            for side, type_ in moved:
                conflicts += self._merge_type(side, type_, changes)
        else:
            with ThreadPoolExecutor(MAX_THREADS) as threads:
                merges = [threads.submit(self._merge_type, s, t, changes) for s, t in moved]
                for merging in merges:
                    conflicts += merging.result()
        if not conflicts:
            check_changes_allowed(changes, self.request, self.committed)
        return changes, conflicts

    def _view(self, snapshot: Snapshot, type_: AcceptedType) -> DatasetView | None:
        return find_view(self.lines.manifest, snapshot, type_)

    def _is_changed(self, side: DatasetView, type_: AcceptedType) -> bool:
        """Return whether the source may have changed a type since the bases."""
        bases = [self._view(base, type_) for base in self.bases]
        return any(base is None or base.entry.state != side.entry.state for base in bases)

    def _differs(self, side: DatasetView, type_: AcceptedType) -> bool:
        """Return whether the target may lack something of a type that the source has."""
        target = self.committed.snapshot.entry(type_.entity)
        return target.state != side.entry.state or target.key in self.added

    def _merge_type(
        self, side: DatasetView, type_: AcceptedType, changes: ChangeSet
    ) -> list[Conflict]:
        shape = find_row_schema(self.committed.snapshot.schema, type_.kind, type_.name)
        options, external = self.options, ExternalBlobs.below(self.request.external_blobs)
        combiner = RowCombiner(shape, options.decisions, options.strict, external)
        conflicts: list[Conflict] = []
        change = changes.of(shape)
        adopted = self.sharing and len(self.bases) == 1 and self._is_unchanged(type_)
        adopted &= not side.entry.excluded
        is_added = side.entry.key in self.added
        adopted |= is_added
        inserted: list[pa.Array] = []
        same = self._same_models(side, change)
        for states in self._three_way_rows(side, shape):
            combined = combiner.combine(states)
            conflicts += combined.conflicts
            adopted &= combined.is_source
            inserted.append(combined.inserted)
            if combined.rows.num_rows:
                change.batches.append(RowBatch(combined.rows, kept=same - combined.decided))
            change.deleted.update(dict.fromkeys(combined.deleted))
        if adopted and is_added:
            entry = self.committed.snapshot.entry(type_.entity)
            change.adopted = replace(entry, rows=side.entry.rows)
        elif adopted and not change.is_empty:
            change.adopted = side.entry
        elif self.sharing and sum(map(len, inserted)) >= MIN_SHARED_INSERTS:
            change.shared = self._shared(side, type_, pa.concat_arrays(inserted))
        return conflicts

    def _same_models(self, side: DatasetView, change: TypeChange) -> frozenset[str]:
        """Return the properties whose vectors are of the model the target has recorded.

        Where the target has no vector yet, the change gets the model of the source.
        """
        target = DatasetView.of(self.lines.manifest, self.committed.snapshot, change.shape.type)
        same = set[str]()
        for property_ in vector_properties(change.shape):
            id_ = change.shape.type.property_ids[property_.name]
            model = side.embedding_model_by_id(id_)
            if model == target.embedding_model_by_id(id_) or not side.has_vectors_by_id(id_):
                same.add(property_.name)
            elif model is not None and not target.has_vectors_by_id(id_):
                change.made[property_.name] = model
                change.alone.add(property_.name)
                same.add(property_.name)
        return frozenset(same)

    def _shared(
        self, side: DatasetView, type_: AcceptedType, inserted: pa.Array
    ) -> list[tuple[Any, pa.Array]]:
        """Return fragments of the source that hold nothing but what it inserted."""
        base = self._view(self.bases[0], type_)
        if base is None or self.source.head.schema_hash != self._schema_hash or side.entry.excluded:
            return []
        target = DatasetView.of(self.lines.manifest, self.committed.snapshot, type_)
        if target.column_layout() != side.column_layout():
            return []
        with base.open() as old, side.open() as new:
            fragments = added_fragments(old, new)
        return [
            (fragment, ids)
            for fragment, ids in fragments
            if pc.all(pc.is_in(ids, value_set=inserted)).as_py()
        ]

    @property
    def _schema_hash(self) -> str:
        return self.committed.snapshot.head.schema_hash

    def _is_unchanged(self, type_: AcceptedType) -> bool:
        """Return whether the target has a type exactly as the base has it."""
        base = self._view(self.bases[0], type_)
        entry = self.committed.snapshot.entry(type_.entity)
        same_schema = self.source.head.schema_hash == self._schema_hash
        return same_schema and base is not None and base.entry.state == entry.state

    def _three_way_rows(self, side: DatasetView, shape: RowSchema) -> Iterator[ThreeWayRows]:
        """Yield the entities the source changed, in all states."""
        manifest = self.lines.manifest
        if len(self.bases) > 1:
            yield from self._with_several_bases(side, shape)
            return
        before, is_unchanged = self._view(self.bases[0], shape.type), self._is_unchanged(shape.type)
        for delta in self.source_delta.deltas(manifest, before, side):
            ids = _changed_ids([delta])
            if len(ids):
                base = shape.schema.empty_table()
                if before is not None:
                    base = to_target_schema(delta.before, before.type, shape)
                source = to_target_schema(delta.after, side.type, shape)
                ours, common = AlignedRows.of(ids, source), AlignedRows.of(ids, base)
                theirs = common if is_unchanged else self._in_target(shape, ids)
                decided = np.zeros(len(ids), np.bool_)
                yield ThreeWayRows(ids, common, ours, theirs, decided)

    def _in_target(self, shape: RowSchema, ids: pa.Array) -> AlignedRows:
        """Return entities as the target has them; the change will need the same addresses."""
        addresses = self.committed.lookup_ids(shape, ids)[ROW_ADDRESS].combine_chunks()
        entities = self.committed.view(shape).entities_at(addresses.to_numpy())
        return AlignedRows.of(ids, to_target_schema(entities, shape.type, shape))

    def _with_several_bases(self, side: DatasetView, shape: RowSchema) -> Iterator[ThreeWayRows]:
        """Do the same where there are several bases."""
        manifest, target = self.lines.manifest, self.committed.snapshot
        earlier = [self._view(base, shape.type) for base in self.bases]
        steps = VersionHistory(manifest, (self.source,))
        ids = _changed_ids([d for one in earlier for d in compare_type(one, side, steps)])
        for start in range(0, len(ids), ENTITY_BATCH):
            some = ids.slice(start, ENTITY_BATCH)
            base, undecided = self.lines.common(self.bases, shape, some)
            ours, theirs = (read_entities(manifest, s, shape, some) for s in (self.source, target))
            yield ThreeWayRows(some, base, ours, theirs, undecided)


def _changed_ids(deltas: Sequence[TypeDelta]) -> pa.Array:
    columns = [side["id"] for delta in deltas for side in (delta.before, delta.after)]
    ids = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    return ids.unique().sort()
