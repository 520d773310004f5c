"""Bring a target to a merged schema before entities are merged into it.

What it stages nobody sees: the merge goes on from there and publishes both at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from omnigraph.catalog import (
    AcceptedSchema,
    AcceptedType,
    MigrationPlan,
    Property,
    TypeKind,
    plan_migration,
)
from omnigraph.catalog.retype import is_wider
from omnigraph.commit.create import schema_hash
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.commit.staged import StagedCommit, StagedDataset, StagedSchema, with_sums
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.dropped import dropped_changes
from omnigraph.merge.schemas import MergedSchema, SchemaConflicts, merge_schemas
from omnigraph.storage.layout import dataset_path
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.checks.existing import Changed, NewRules, check_existing
from omnigraph.write.progress import Meter
from omnigraph.write.reshape import needs_reshaping, reshape

_KINDS = (TypeKind.NODE, TypeKind.EDGE)


@dataclass(frozen=True, slots=True)
class Evolved:
    """A target as it was, and as it is under the merged schema.

    `added` are types it gets, `dropped` those it loses, `rules` what the merged schema newly asks
    of its entities. With `conflicts` there is no merged schema; `after` then serves to find the
    entities that conflict, too.
    """

    before: Snapshot
    after: Snapshot
    added: frozenset[object] = frozenset()
    dropped: tuple[AcceptedType, ...] = ()
    rules: tuple[tuple[AcceptedType, AcceptedType, NewRules], ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    def check_existing(self, manifest: Manifest, changes: ChangeSet) -> None:
        """Report entities of the target that break rules the source has added.

        Those the change writes or deletes are validated with it.
        """
        for old, new, rules in self.rules:
            changed = Changed.of(changes.types.get(new.entity))
            with manifest.reading(old.entity, self.before.entry(old.entity)) as handle:
                check_existing(changes, new, rules, handle, Meter(None), changed)

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
        known = self.before.head.datasets.get(dataset.key)
        if known is not None:
            return with_sums(manifest.datasets, replace(dataset, expected=known.physical))
        path = dataset_path(dataset.table_key.partition(":")[0], *dataset.key)
        return replace(dataset, expected=None, location=path)

    def _reshaped(self) -> Iterator[StagedDataset]:
        for key, entry in self.after.entries().items():
            known = self.before.head.datasets.get(entry.key)
            if known is None or known.physical != entry.physical:
                yield StagedDataset(
                    key, *entry.key, entry.physical, entry.physical, entry.rows, location=""
                )

    def _gone(self, type_: AcceptedType) -> StagedDataset:
        entry = self.before.entry(type_.entity)
        return StagedDataset(type_.entity, *entry.key, entry.physical, None)


def evolve(
    manifest: Manifest, bases: Sequence[Snapshot], source: Snapshot, target: Snapshot
) -> Evolved:
    """Bring the target to the schema of a merge; what stands in the way are `conflicts`."""
    try:
        merged = merge_schemas(bases, source, target)
    except SchemaConflicts as error:
        comparable = replace(target, schema=_comparable(source.schema, target.schema))
        return Evolved(target, comparable, conflicts=tuple(error.conflicts))
    conflicts = list(dropped_changes(manifest, bases, (source, target), merged.accepted))
    if merged.accepted is target.schema:
        return Evolved(target, target, conflicts=tuple(conflicts))
    plan = plan_migration(target.schema, merged.accepted)
    conflicts += [
        Conflict(kind=ConflictKind.SCHEMA_CONFLICT, message=refusal.reason, type=refusal.entity)
        for refusal in plan.refusals
    ]
    if conflicts:
        comparable = replace(target, schema=_comparable(source.schema, target.schema))
        return Evolved(target, comparable, conflicts=tuple(conflicts))
    return _evolved(manifest, source, target, merged, plan)


def _evolved(
    manifest: Manifest,
    source: Snapshot,
    target: Snapshot,
    merged: MergedSchema,
    plan: MigrationPlan,
) -> Evolved:
    """Stage the columns that the merged schema needs."""
    entries: dict[object, DatasetEntry] = {}
    added, rules = set(), []
    for new in (type_ for kind in _KINDS for type_ in merged.accepted.of_kind(kind)):
        old = target.schema.by_id(new.id)
        if old is None:
            # It has no entities yet: those of the source are merged in like any others.
            entry = replace(source.entry(new.entity), version=0, rows=0)
            added.add(entry.key)
        else:
            entry = target.entry(old.entity)
            if asked := NewRules.of(plan, new):
                rules.append((old, new, asked))
            if needs_reshaping(old, new):
                with manifest.reading(old.entity, entry) as handle:
                    made = reshape(handle, new, hard=False)
                manifest.datasets.keep(dataset_path(new.kind, *entry.key), made)
                entry = replace(entry, physical=int(made.version))
        entries[entry.key] = entry
    dropped = tuple(
        type_
        for kind in _KINDS
        for type_ in target.schema.of_kind(kind)
        if merged.accepted.by_id(type_.id) is None
    )
    after = _snapshot(target, merged, entries)
    return Evolved(target, after, frozenset(added), dropped, tuple(rules))


def _comparable(source: AcceptedSchema, target: AcceptedSchema) -> AcceptedSchema:
    """Return the schema of the target with types wide enough for the values of the source."""
    types = []
    for type_ in target.types:
        other = source.by_id(type_.id)
        wider = {} if other is None else dict(_wider(other, type_))
        properties = {**type_.definition.properties, **wider}
        types.append(replace(type_, definition=replace(type_.definition, properties=properties)))
    return replace(target, types=tuple(types))


def _wider(source: AcceptedType, target: AcceptedType) -> Iterator[tuple[str, Property]]:
    """Yield the properties of the target whose type is wider in the source."""
    names = {id_: name for name, id_ in source.property_ids.items()}
    for name, property_ in target.definition.properties.items():
        if (theirs := names.get(target.property_ids[name])) is not None:
            wide = source.definition.properties[theirs].type
            plain = property_.type.as_nullable(wide.nullable)
            if is_wider(plain, wide):
                yield name, replace(property_, type=wide.as_nullable(property_.type.nullable))


def _snapshot(
    target: Snapshot, merged: MergedSchema, entries: dict[object, DatasetEntry]
) -> Snapshot:
    head = replace(
        target.head,
        schema_hash=schema_hash(merged.accepted, merged.text),
        datasets=entries,  # type: ignore[arg-type]
    )
    return replace(target, head=head, schema=merged.accepted, schema_source=merged.text)
