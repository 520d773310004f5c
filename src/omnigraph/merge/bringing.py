"""This module makes a change of the target out of what the source changed since the bases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.changes.delta import AT_ONCE, Delta, Side, compare_type, reading
from omnigraph.changes.steps import Steps
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.merge.combine import Combiner, Trio
from omnigraph.merge.conflicts import Conflict, MergeConflicts
from omnigraph.merge.model import MergeOptions
from omnigraph.merge.rows import Aligned, shaped
from omnigraph.merge.states import Lines, entities, side_of
from omnigraph.storage.difference import added_fragments
from omnigraph.write.change_set import Batch, ChangeSet, TypeChange
from omnigraph.write.committed import Committed
from omnigraph.write.models import vectors
from omnigraph.write.request import Request
from omnigraph.write.rights import check_changes, check_whole
from omnigraph.write.shape import Shape, find_shape
from omnigraph.write.violations import Findings

WORTH_SHARING = 1_000
"""Inserted entities of a type from which on their files are shared instead of written again."""
KEPT_DELTAS = 4
_NO_LIMIT = 1_000_000


@dataclass(slots=True)
class Brought:
    """What a source changed; kept while its target moves, unless it is much."""

    source: Snapshot
    _kept: dict[tuple[int | None, int], list[Delta]] = field(default_factory=dict)

    def deltas(self, manifest: Manifest, before: Side | None, side: Side) -> Iterator[Delta]:
        """Yield what changed in a type since a base."""
        key = (None if before is None else before.entry.physical, side.entry.physical)
        if key in self._kept:
            yield from self._kept[key]
            return
        few: list[Delta] | None = []
        for delta in compare_type(manifest, before, side, Steps(manifest, (self.source,))):
            yield delta
            if few is not None:
                few = [*few, delta] if len(few) < KEPT_DELTAS else None
        if few is not None:
            self._kept[key] = few


@dataclass(frozen=True, slots=True, kw_only=True)
class Bringing:
    """Makes a change of the target out of what the source changed since the bases."""

    lines: Lines
    bases: tuple[Snapshot, ...]
    brought: Brought
    committed: Committed
    request: Request
    options: MergeOptions
    sharing: bool = False
    """Whether files of the source surely stay until the target has them, too."""
    added: frozenset[object] = frozenset()
    """Types the target gets from the source."""

    @property
    def source(self) -> Snapshot:
        """The state whose changes are brought."""
        return self.brought.source

    def changes(self) -> ChangeSet:
        """Return the change; raise MergeConflicts when the sides disagree."""
        changes, conflicts = self.collect()
        if conflicts:
            raise MergeConflicts(conflicts, self.committed.snapshot.branch)
        return changes

    def collect(self) -> tuple[ChangeSet, list[Conflict]]:
        """Return the change, and the entities about which the sides disagree."""
        target = self.committed.snapshot
        changes = ChangeSet(findings=Findings(_NO_LIMIT))
        conflicts: list[Conflict] = []
        kinds = (TypeKind.NODE, TypeKind.EDGE)
        sides = ((side_of(self.source, t), t) for k in kinds for t in target.schema.of_kind(k))
        moved = [(side, t) for side, t in sides if side is not None and self._moved(side, t)]
        # Before anything is read: conflicts show entities.
        check_whole((type_ for _, type_ in moved), self.request, self.committed)
        for side, type_ in moved:
            conflicts += self._bring(side, type_, changes)
        if not conflicts:
            check_changes(changes, self.request, self.committed)
        return changes, conflicts

    def _moved(self, side: Side, type_: AcceptedType) -> bool:
        """Tell whether the source may have something of a type that the target has not."""
        physical = side.entry.physical
        bases = [side_of(base, type_) for base in self.bases]
        unchanged = all(base is not None and base.entry.physical == physical for base in bases)
        target = self.committed.snapshot.entry(type_.entity)
        return not unchanged and (target.physical != physical or target.key in self.added)

    def _bring(self, side: Side, type_: AcceptedType, changes: ChangeSet) -> list[Conflict]:
        shape = find_shape(self.committed.snapshot.schema, type_.kind, type_.name)
        combiner = Combiner(shape, self.options.decisions, self.options.strict)
        conflicts: list[Conflict] = []
        change = changes.of(shape)
        adopted = self.sharing and len(self.bases) == 1 and self._stands_still(type_)
        adopted |= side.entry.key in self.added
        inserted: list[pa.Array] = []
        same = self._same_models(side, change)
        self.committed.consulted.add(shape.table_key)
        for trio in self._trios(side, shape):
            made = combiner.combine(trio)
            conflicts += made.conflicts
            adopted &= made.is_source
            inserted.append(made.inserted)
            if made.rows.num_rows:
                change.batches.append(Batch(made.rows, kept=same - made.decided))
            change.deleted.update(dict.fromkeys(made.deleted))
        if adopted and (not change.is_empty or side.entry.key in self.added):
            change.adopted = side.entry
        elif self.sharing and sum(map(len, inserted)) >= WORTH_SHARING:
            change.shared = self._shared(side, type_, pa.concat_arrays(inserted))
        return conflicts

    def _same_models(self, side: Side, change: TypeChange) -> frozenset[str]:
        """Return the properties whose vectors are of the model the target has recorded.

        Where the target has no vector yet, the change gets the model of the source.
        """
        target, same = Side.of(self.committed.snapshot, change.shape.type), set()
        for property_ in vectors(change.shape):
            id_ = change.shape.type.property_ids[property_.name]
            with (
                reading(self.lines.manifest, side) as ours,
                reading(self.lines.manifest, target) as theirs,
            ):
                model = ours.model(id_)
                if model == theirs.model(id_) or not ours.has_vectors(id_):
                    same.add(property_.name)
                elif model is not None and not theirs.has_vectors(id_):
                    change.made[property_.name] = model
                    change.alone.add(property_.name)
                    same.add(property_.name)
        return frozenset(same)

    def _shared(
        self, side: Side, type_: AcceptedType, inserted: pa.Array
    ) -> list[tuple[Any, pa.Array]]:
        """Return fragments of the source that hold nothing but what it inserted."""
        base = side_of(self.bases[0], type_)
        if base is None or self.source.head.schema_hash != self._schema_hash:
            return []
        manifest = self.lines.manifest
        with reading(manifest, base) as old, reading(manifest, side) as new:
            found = added_fragments(old.handle, new.handle)
        return [
            (fragment, ids)
            for fragment, ids in found
            if pc.all(pc.is_in(ids, value_set=inserted)).as_py()
        ]

    @property
    def _schema_hash(self) -> str:
        return self.committed.snapshot.head.schema_hash

    def _stands_still(self, type_: AcceptedType) -> bool:
        """Tell whether the target has a type exactly as the base has it."""
        base = side_of(self.bases[0], type_)
        entry = self.committed.snapshot.entry(type_.entity)
        same_schema = self.source.head.schema_hash == self._schema_hash
        return same_schema and base is not None and base.entry.physical == entry.physical

    def _trios(self, side: Side, shape: Shape) -> Iterator[Trio]:
        """Yield the entities the source changed, in all states."""
        manifest, target = self.lines.manifest, self.committed.snapshot
        if len(self.bases) > 1:
            yield from self._crossed(side, shape)
            return
        before = side_of(self.bases[0], shape.type)
        for delta in self.brought.deltas(manifest, before, side):
            ids = _ids([delta])
            if len(ids):
                base = shape.schema.empty_table()
                if before is not None:
                    base = shaped(delta.before, before.type, shape)
                source = shaped(delta.after, side.type, shape)
                theirs = entities(manifest, target, shape, ids)
                decided = np.zeros(len(ids), np.bool_)
                yield Trio(ids, Aligned.of(ids, base), Aligned.of(ids, source), theirs, decided)

    def _crossed(self, side: Side, shape: Shape) -> Iterator[Trio]:
        """Do the same where there are several bases."""
        manifest, target = self.lines.manifest, self.committed.snapshot
        earlier = [side_of(base, shape.type) for base in self.bases]
        steps = Steps(manifest, (self.source,))
        ids = _ids([d for one in earlier for d in compare_type(manifest, one, side, steps)])
        for start in range(0, len(ids), AT_ONCE):
            some = ids.slice(start, AT_ONCE)
            base, undecided = self.lines.common(self.bases, shape, some)
            ours, theirs = (entities(manifest, s, shape, some) for s in (self.source, target))
            yield Trio(some, base, ours, theirs, undecided)


def _ids(deltas: Sequence[Delta]) -> pa.Array:
    columns = [side["id"] for delta in deltas for side in (delta.before, delta.after)]
    ids = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    return ids.unique().sort()
