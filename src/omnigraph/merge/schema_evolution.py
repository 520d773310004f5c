"""Bring a target to a merged schema before entities are merged into it.

Staged columns are not visible: the merge continues from there and publishes both at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import (
    AcceptedSchema,
    AcceptedType,
    MigrationPlan,
    Property,
    TypeId,
    TypeKind,
    plan_migration,
)
from omnigraph.catalog.defaults import default_value
from omnigraph.catalog.migration_planner import is_wider
from omnigraph.changes.type_delta import TypeDelta, compare_type
from omnigraph.changes.version_history import VersionHistory
from omnigraph.commit.graph_creation import schema_hash
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, StagedSchema, with_checksums
from omnigraph.dataset_view import DatasetView, needs_reshaping, reshape_dataset
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.key_changes import find_rekeyed_changes, find_reshaped_keys
from omnigraph.merge.merge_base import find_view
from omnigraph.merge.schema_merge import MergedSchema, SchemaConflicts, merge_schemas
from omnigraph.types.arrow import Mask, same_values, to_column
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.checks.existing_rows import (
    MigrationRules,
    TouchedEntities,
    check_existing_rows,
)
from omnigraph.write.progress import ProgressMeter

# ----------------------------------------------------------------------
# Find what one side changed of types and properties that the other side dropped.


def find_dropped_changes(
    manifest: Manifest,
    bases: Sequence[Snapshot],
    sides: Sequence[Snapshot],
    merged: AcceptedSchema,
) -> Iterator[Conflict]:
    """Yield a conflict for every dropped type and property that a side has changed since."""
    earlier: dict[TypeId, DatasetView] = {}
    for base in bases:
        for type_ in base.types():
            earlier.setdefault(type_.id, DatasetView.of(manifest, base, type_))
    for type_id, before in earlier.items():
        for snapshot in sides:
            after = find_view(manifest, snapshot, before.type)
            if after is not None:
                kept = merged.by_id(type_id)
                if kept is not None and kept.incarnation != before.type.incarnation:
                    continue  # its key changed: see find_rekeyed_changes
                comparing = compare_type(before, after, VersionHistory(manifest, (snapshot,)))
                yield from _side_changes(comparing, before, after, kept)


def _side_changes(
    comparing: Iterator[TypeDelta],
    before: DatasetView,
    after: DatasetView,
    kept: AcceptedType | None,
) -> Iterator[Conflict]:
    """Yield what a side changed of a type that is dropped, or of which properties are."""
    if kept is None:
        if any(delta.before.num_rows or delta.after.num_rows for delta in comparing):
            yield _dropped_conflict(before.type, "it", "changed its entities")
    elif lost := _dropped_properties(after.type, kept):
        for name in sorted(set(_written_properties(comparing, before, after, lost))):
            yield _dropped_conflict(kept, name, "set it", (name,))


def _dropped_conflict(
    type_: AcceptedType, what: str, did: str, names: tuple[str, ...] = ()
) -> Conflict:
    return Conflict(
        kind=ConflictKind.SCHEMA_CONFLICT,
        message=f"{type_.name}: one side dropped {what}, the other {did}",
        type=type_.name,
        properties=names,
    )


def _dropped_properties(type_: AcceptedType, kept: AcceptedType) -> list[str]:
    """Return the properties of a type that the merged schema does not have."""
    remaining = set(kept.property_ids.values())
    return [name for name, id_ in type_.property_ids.items() if id_ not in remaining]


def _written_properties(
    deltas: Iterator[TypeDelta], before: DatasetView, after: DatasetView, names: Sequence[str]
) -> Iterator[str]:
    """Yield those of the properties of a side to which values were written."""
    former = {id_: name for name, id_ in before.type.property_ids.items()}
    for delta in deltas:
        for name in names:
            earlier = former.get(after.type.property_ids[name])
            column = delta.after[name]
            old = _align_before(delta, earlier, column.type)
            default = _is_default(delta, column, after.type.definition.properties[name])
            missing = np.asarray(column.is_null())
            if not np.all(same_values(old, column) | missing | default):
                yield name


def _align_before(delta: TypeDelta, name: str | None, type_: pa.DataType) -> pa.ChunkedArray:
    """Return what entities had before, null for new ones."""
    if name is None or not delta.before.num_rows:
        return pa.chunked_array([pa.nulls(delta.after.num_rows, type_)])
    places = pc.index_in(delta.after["id"], value_set=delta.before["id"].combine_chunks())
    values = delta.before[name].take(places)
    return values if values.type == type_ else pc.cast(values, type_)


def _is_default(delta: TypeDelta, column: pa.ChunkedArray, property_: Property) -> Mask:
    """Return which entities are new and have the default, which no write set."""
    default = default_value(property_)
    if default is None:
        return np.zeros(len(column), np.bool_)
    existing = pc.is_in(delta.after["id"], value_set=delta.before["id"].combine_chunks())
    is_new: Mask = ~np.asarray(existing)
    return is_new & same_values(column, to_column([default] * len(column), property_.type))


_KINDS = (TypeKind.NODE, TypeKind.EDGE)


@dataclass(frozen=True, slots=True)
class EvolvedTarget:
    """A target as it was, and as it is under the merged schema.

    `added` are types it gets, `dropped` those it loses, `rules` what the merged schema newly
    requires of its entities. `completed` are the versions of the source, by type, of which a state
    within a group of commits was staged as a version of its own. With `conflicts` there is no
    merged schema; `after` then serves to find the entities that conflict, too.
    """

    before: Snapshot
    after: Snapshot
    added: frozenset[object] = frozenset()
    dropped: tuple[AcceptedType, ...] = ()
    rules: tuple[tuple[AcceptedType, AcceptedType, MigrationRules], ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    completed: Mapping[object, int] = field(default_factory=dict)

    def changed_types(self) -> Iterator[AcceptedType]:
        """Yield the types of the target that the merged schema changes, as they become.

        Whether they may change depends on all their entities.
        """
        for new in self.after.types():
            if self.before.schema.by_id(new.id) not in (None, new):
                yield new

    def check_existing(self, manifest: Manifest, changes: ChangeSet) -> None:
        """Report entities of the target that break rules the source has added.

        Those the change writes or deletes are validated with it.
        """
        for old, new, rules in self.rules:
            changed = TouchedEntities.of(changes.types.get(new.entity))
            with manifest.reading(old.entity, self.before.entry(old.entity)) as handle:
                check_existing_rows(changes, new, rules, handle, ProgressMeter(None), changed)

    def complete(self, manifest: Manifest, staged: StagedCommit) -> StagedCommit:
        """Say in a staged commit what the schema changes, too."""
        if self.before is self.after:
            return staged
        written = {dataset.key: dataset for dataset in staged.datasets}
        datasets = [self._based(manifest, dataset) for dataset in staged.datasets]
        datasets += [self._based(manifest, d) for d in self._reshaped() if d.key not in written]
        datasets += [self._gone(type_) for type_ in self.dropped]
        keys = {dataset.key for dataset in datasets}
        old = self.before.head.datasets
        reads = {
            name: (key, old[key].physical)
            for name, (key, _) in staged.reads.items()
            if key in old and key not in keys
        }
        head = self.after.head
        document = self.after.schema.to_json()
        return replace(
            staged,
            datasets=tuple(datasets),
            reads=reads,
            read_schema=self.before.head.schema_hash,
            schema=StagedSchema(head.schema_hash, self.after.schema_source, document),
        )

    def _based(self, manifest: Manifest, dataset: StagedDataset) -> StagedDataset:
        """Return a dataset as a change of what the target had, with all files that are new."""
        entry = self.before.head.datasets.get(dataset.key)
        if entry is not None:
            return with_checksums(manifest.datasets, replace(dataset, expected=entry.physical))
        new = replace(dataset, expected=None, location=dataset.path)
        if dataset.key in self.completed:
            based = replace(dataset, expected=self.completed[dataset.key])
            new = replace(new, checksums=with_checksums(manifest.datasets, based).checksums)
        return new

    def _reshaped(self) -> Iterator[StagedDataset]:
        for key, entry in self.after.entries().items():
            earlier = self.before.head.datasets.get(entry.key)
            if earlier is None or earlier.physical != entry.physical:
                yield StagedDataset(
                    key, *entry.key, entry.physical, entry.physical, entry.rows, location=""
                )

    def _gone(self, type_: AcceptedType) -> StagedDataset:
        entry = self.before.entry(type_.entity)
        return StagedDataset(type_.entity, *entry.key, entry.physical, None)


def evolve_target(
    manifest: Manifest, bases: Sequence[Snapshot], source: Snapshot, target: Snapshot
) -> EvolvedTarget:
    """Bring the target to the schema of a merge; what stands in the way are `conflicts`."""
    try:
        merged = merge_schemas(bases, source, target)
    except SchemaConflicts as error:
        comparable = replace(target, schema=_widened_schema(source.schema, target.schema))
        return EvolvedTarget(target, comparable, conflicts=tuple(error.conflicts))
    sides = (source, target)
    conflicts = list(find_dropped_changes(manifest, bases, sides, merged.accepted))
    conflicts += find_rekeyed_changes(manifest, bases, sides, merged.accepted)
    conflicts += find_reshaped_keys(source.schema, target.schema, merged.accepted)
    if merged.accepted is target.schema:
        return EvolvedTarget(target, target, conflicts=tuple(conflicts))
    plan = plan_migration(target.schema, merged.accepted)
    conflicts += [
        Conflict(kind=ConflictKind.SCHEMA_CONFLICT, message=refusal.reason, type=refusal.entity)
        for refusal in plan.refusals
    ]
    if conflicts:
        comparable = replace(target, schema=_widened_schema(source.schema, target.schema))
        return EvolvedTarget(target, comparable, conflicts=tuple(conflicts))
    return _stage_columns(manifest, source, target, merged, plan)


def _stage_columns(
    manifest: Manifest,
    source: Snapshot,
    target: Snapshot,
    merged: MergedSchema,
    plan: MigrationPlan,
) -> EvolvedTarget:
    """Stage the columns that the merged schema needs."""
    entries: dict[object, DatasetEntry] = {}
    added, rules, completed = set(), [], dict[object, int]()
    for new in (type_ for kind in _KINDS for type_ in merged.accepted.of_kind(kind)):
        old = target.schema.by_id(new.id)
        if old is None or old.incarnation != new.incarnation:
            # It has no entities yet: those of the source are merged in like any others.
            home = source.schema.by_id(new.id)
            assert home is not None, "one of the sides has each type"
            entry = source.entry(home.entity)
            if entry.excluded:
                completed[entry.key] = entry.physical
                with manifest.reading(home.entity, entry, to_change=True) as handle:
                    manifest.datasets.keep(entry.path(home.entity), handle)
                    entry = replace(entry, physical=int(handle.version), excluded=0)
            entry = replace(entry, version=0, rows=0)
            added.add(entry.key)
        else:
            entry = target.entry(old.entity)
            if required := MigrationRules.of(plan, new):
                rules.append((old, new, required))
            if needs_reshaping(old, new):
                with manifest.reading(old.entity, entry, to_change=True) as handle:
                    reshaped = reshape_dataset(handle, new, hard=False)
                manifest.datasets.keep(entry.path(new.entity), reshaped)
                entry = replace(entry, physical=int(reshaped.version), excluded=0)
        entries[entry.key] = entry
    stay = {(t.id, t.incarnation) for t in merged.accepted.types}
    dropped = tuple(t for t in target.types() if (t.id, t.incarnation) not in stay)
    after = _evolved_snapshot(target, merged, entries)
    return EvolvedTarget(
        target, after, frozenset(added), dropped, tuple(rules), completed=completed
    )


def _widened_schema(source: AcceptedSchema, target: AcceptedSchema) -> AcceptedSchema:
    """Return the schema of the target with types wide enough for the values of the source."""
    types = []
    for type_ in target.types:
        other = source.by_id(type_.id)
        wider = {} if other is None else dict(_wider_properties(other, type_))
        properties = {**type_.definition.properties, **wider}
        types.append(replace(type_, definition=replace(type_.definition, properties=properties)))
    return replace(target, types=tuple(types))


def _wider_properties(source: AcceptedType, target: AcceptedType) -> Iterator[tuple[str, Property]]:
    """Yield the properties of the target whose type is wider in the source."""
    names = {id_: name for name, id_ in source.property_ids.items()}
    for name, property_ in target.definition.properties.items():
        if (theirs := names.get(target.property_ids[name])) is not None:
            wide = source.definition.properties[theirs].type
            plain = property_.type.as_nullable(wide.nullable)
            if is_wider(plain, wide):
                yield name, replace(property_, type=wide.as_nullable(property_.type.nullable))


def _evolved_snapshot(
    target: Snapshot, merged: MergedSchema, entries: dict[object, DatasetEntry]
) -> Snapshot:
    head = replace(
        target.head,
        schema_hash=schema_hash(merged.accepted, merged.text),
        datasets=entries,  # type: ignore[arg-type]
    )
    return replace(target, head=head, schema=merged.accepted, schema_source=merged.text)
