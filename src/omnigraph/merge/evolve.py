"""This module brings a target to a merged schema before entities are merged into it.

What it stages nobody sees: the merge goes on from there and publishes both at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from omnigraph.catalog import AcceptedType, TypeKind, plan_migration
from omnigraph.commit.create import schema_hash
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.commit.staged import StagedCommit, StagedDataset, StagedSchema, with_sums
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.schemas import MergedSchema, SchemaConflicts, merge_schemas
from omnigraph.merge.states import side_of
from omnigraph.storage.layout import dataset_path
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.checks.existing import NewRules, check_existing
from omnigraph.write.progress import Meter
from omnigraph.write.reshape import needs_reshaping, reshape

_KINDS = (TypeKind.NODE, TypeKind.EDGE)


@dataclass(frozen=True, slots=True)
class Evolved:
    """A target as it was, and as it is under the merged schema; `added` are types it gets."""

    before: Snapshot
    after: Snapshot
    added: frozenset[object] = frozenset()
    dropped: tuple[AcceptedType, ...] = field(default_factory=tuple)

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


def evolve(manifest: Manifest, base: Snapshot, source: Snapshot, target: Snapshot) -> Evolved:
    """Bring the target to the schema of a merge.

    Raises:
        SchemaConflicts: the schemas do not go together, or one side changed what the other dropped.
        ValidationFailed: entities of the target break rules the source has added.
    """
    merged = merge_schemas(base, source, target)
    if merged.accepted is target.schema:
        _check_kept(base, source, target)
        return Evolved(target, target)
    plan = plan_migration(target.schema, merged.accepted)
    conflicts = [
        Conflict(kind=ConflictKind.SCHEMA_CONFLICT, message=refusal.reason, type=refusal.entity)
        for refusal in plan.refusals
    ]
    dropped = tuple(
        type_
        for kind in _KINDS
        for type_ in target.schema.of_kind(kind)
        if merged.accepted.by_id(type_.id) is None
    )
    conflicts += list(_changed_meanwhile(dropped, base, target))
    if conflicts:
        raise SchemaConflicts(conflicts)
    changes = ChangeSet()
    entries: dict[object, DatasetEntry] = {}
    added = set()
    for new in (type_ for kind in _KINDS for type_ in merged.accepted.of_kind(kind)):
        old = target.schema.by_id(new.id)
        if old is None:
            # It has no entities yet: those of the source are merged in like any others.
            entry = replace(source.entry(new.entity), version=0, rows=0)
            added.add(entry.key)
        else:
            entry = target.entry(old.entity)
            with manifest.reading(old.entity, entry) as handle:
                rules = NewRules.of(plan, new)
                if rules:
                    check_existing(changes, new, rules, handle, Meter(None))
                if needs_reshaping(old, new):
                    made = reshape(handle, new, hard=False)
                    manifest.datasets.keep(dataset_path(new.kind, *entry.key), made)
                    entry = replace(entry, physical=int(made.version))
        entries[entry.key] = entry
    changes.findings.check()
    return Evolved(target, _snapshot(target, merged, entries), frozenset(added), dropped)


def _check_kept(base: Snapshot, source: Snapshot, target: Snapshot) -> None:
    """Refuse changes of types the target has dropped."""
    gone = [
        type_
        for kind in _KINDS
        for type_ in source.schema.of_kind(kind)
        if side_of(target, type_) is None
    ]
    conflicts = list(_changed_meanwhile(gone, base, source))
    if conflicts:
        raise SchemaConflicts(conflicts)


def _changed_meanwhile(
    types: tuple[AcceptedType, ...] | list[AcceptedType], base: Snapshot, side: Snapshot
) -> Iterator[Conflict]:
    """Yield a conflict for each type one side dropped and the other has changed since the base."""
    for type_ in types:
        before, after = side_of(base, type_), side_of(side, type_)
        if after is None or (before is not None and before.entry.physical == after.entry.physical):
            continue
        message = f"{type_.name}: one side dropped it, the other changed its entities"
        yield Conflict(kind=ConflictKind.SCHEMA_CONFLICT, message=message, type=type_.name)


def _snapshot(
    target: Snapshot, merged: MergedSchema, entries: dict[object, DatasetEntry]
) -> Snapshot:
    head = replace(
        target.head,
        schema_hash=schema_hash(merged.accepted, merged.text),
        datasets=entries,  # type: ignore[arg-type]
    )
    return replace(target, head=head, schema=merged.accepted, schema_source=merged.text)
