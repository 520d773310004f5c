"""Plan a schema migration and apply it as one commit.

The commit is an ordinary publish: writers that prepared a change under the old schema are rejected
or prepare it again, and of two concurrent migrations one is planned again based on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from omnigraph.catalog import (
    AcceptedSchema,
    AcceptedType,
    DropMode,
    MigrationPlan,
    MigrationStep,
    SchemaChangeRefused,
    TimeOrderedAllocator,
    TypeKind,
    plan_migration,
    read_catalog,
    resolve_schema,
)
from omnigraph.catalog.migration_steps import DropProperty, DropType
from omnigraph.commit.graph_creation import create_datasets, schema_hash
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, CommitId, DatasetEntry, Snapshot
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.staged_commit import (
    StagedCommit,
    StagedDataset,
    StagedSchema,
    new_commit_id,
    with_checksums,
)
from omnigraph.dataset_view import needs_reshaping, reshape_dataset
from omnigraph.errors import ExpectedVersionMismatch, SchemaMoved
from omnigraph.lang import Code, Diagnostic, SchemaError, report_for_text
from omnigraph.notebook.results import schema_result_html
from omnigraph.storage.layout import dataset_path
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.checks.existing_rows import MigrationRules, check_existing_rows
from omnigraph.write.edge_rewrite import rewrite_edges
from omnigraph.write.progress import ProgressListener, ProgressMeter
from omnigraph.write.request import WriteRequest
from omnigraph.write.transaction import MAX_REPREPARES, publish_with_retry

SCHEMA_APPLY_OPERATION = "schema_apply"
"""The operation of commits that change the schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaResult:
    """What an apply did; `commit` is None when there was nothing to do, or it was only tried."""

    branch: str
    plan: MigrationPlan
    manifest_version: int
    commit: Commit | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    actor: str | None = None
    lost: tuple[str, ...] = ()
    """Paths of datasets of which something was dropped for good."""

    @property
    def supported(self) -> bool:
        """Whether every step could be applied: otherwise an error was raised."""
        return self.plan.supported

    @property
    def applied(self) -> bool:
        """Whether the schema changed."""
        return self.commit is not None

    @property
    def steps(self) -> tuple[MigrationStep, ...]:
        """The steps that were taken, or would be."""
        return self.plan.steps

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "branch": self.branch,
            **self.plan.to_json(),
            "applied": self.applied,
            "graph_manifest_version": self.manifest_version,
            "actor_id": self.actor,
            "commit": self.commit.to_json() if self.commit is not None else None,
        }

    def _repr_html_(self) -> str:
        return schema_result_html(
            {**self.to_json(), "descriptions": [step.describe() for step in self.steps]}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaOptions:
    """How to apply: whether drops delete data, whether it is a dry run, where to report."""

    allow_data_loss: bool = False
    dry_run: bool = False
    progress: ProgressListener | None = None


def plan_schema(
    accepted: AcceptedSchema,
    text: str,
    *,
    allow_data_loss: bool = False,
    snapshot: Snapshot | None = None,
) -> tuple[MigrationPlan, list[Diagnostic]]:
    """Return the steps to a schema text and what there is to say about it.

    `snapshot` is the state whose entities are counted, if there is one.

    Raises:
        SchemaError: the text is refused; `diagnostics` lists every reason.
    """
    target = _TargetSchema.of(accepted, text, allow_data_loss=allow_data_loss, snapshot=snapshot)
    return target.plan, list(target.diagnostics)


RewriteGuard: TypeAlias = Callable[[Snapshot, AcceptedType], None]
"""Raises if the edges of a type cannot get other IDs in a state now."""


def apply_schema(
    manifest: Manifest,
    request: WriteRequest,
    text: str,
    options: SchemaOptions,
    guard: RewriteGuard | None = None,
) -> SchemaResult:
    """Make a schema text the accepted schema of a branch.

    `guard` is called for every edge type of which the edges get other IDs.

    Raises:
        SchemaError: the text is refused.
        SchemaChangeRefused: the accepted schema cannot become it.
        ValidationFailed: entities break its new rules.
        SchemaMoved: another migration was made meanwhile, which this one would undo.
    """
    work = _MigrationRun(manifest, request, text, options, guard)
    for attempt in range(MAX_REPREPARES + 1):
        snapshot = head_snapshot(manifest, request.branch)
        target = work.plan(snapshot)
        if not target.plan.steps:
            return work.result(snapshot, target)
        staged = work.stage(snapshot, target)
        if options.dry_run:
            return work.result(snapshot, target)
        try:
            lineage = manifest.lineage(snapshot.lineage_id)
            commit = publish_with_retry(lineage, snapshot.branch, staged)
        except (ExpectedVersionMismatch, SchemaMoved):
            if attempt == MAX_REPREPARES:
                raise
        else:
            return work.result(snapshot, target, commit)
    raise AssertionError("the last attempt returns or raises")


@dataclass(frozen=True, slots=True)
class _TargetSchema:
    """A schema text based on an accepted schema, `base` being the address of the latter."""

    accepted: AcceptedSchema
    desired: AcceptedSchema
    plan: MigrationPlan
    diagnostics: tuple[Diagnostic, ...]
    base: str

    @classmethod
    def of(
        cls,
        accepted: AcceptedSchema,
        text: str,
        *,
        allow_data_loss: bool,
        snapshot: Snapshot | None = None,
    ) -> _TargetSchema:
        report = report_for_text(text, "<schema>", Code.SCHEMA_UNREADABLE)
        catalog = read_catalog(report)
        if report.errors:
            raise SchemaError(report.sorted())
        desired = resolve_schema(catalog, accepted, allocator=TimeOrderedAllocator(), report=report)
        plan = plan_migration(accepted, desired)
        plan = plan.with_data_loss() if allow_data_loss else plan
        if snapshot is not None:
            plan = plan.with_edge_counts(_edge_counter(snapshot, desired))
        base = "" if snapshot is None else snapshot.head.schema_hash
        return cls(accepted, desired, plan, tuple(report.sorted()), base)

    def types(self) -> Iterator[tuple[AcceptedType | None, AcceptedType | None]]:
        """Yield every node and edge type before and after: None where it is not there."""
        for kind in (TypeKind.NODE, TypeKind.EDGE):
            for new in self.desired.of_kind(kind):
                yield self.accepted.by_id(new.id), new
            for old in self.accepted.of_kind(kind):
                if self.desired.by_id(old.id) is None:
                    yield old, None

    def rewritten(self) -> Iterator[AcceptedType]:
        """Yield the accepted edge types whose edges get other IDs."""
        for old, new in self.types():
            if old is not None and new is not None and old.incarnation != new.incarnation:
                yield old

    def loses(self, old: AcceptedType, new: AcceptedType | None) -> bool:
        """Return whether something of a type is dropped with its data."""
        for step in self.plan.steps:
            match step:
                case DropType(kind, name, DropMode.HARD) if new is None:
                    if (kind, name) == (old.kind, old.name):
                        return True
                case DropProperty(kind, name, _, DropMode.HARD) if new is not None:
                    if (kind, name) == (new.kind, new.name):
                        return True
        return False

    def lost(self) -> Iterator[str]:
        """Yield the paths of datasets of which something is dropped with its data."""
        for old, new in self.types():
            if old is not None and self.loses(old, new):
                assert old.incarnation is not None, "node and edge types have an incarnation"
                yield dataset_path(old.kind, old.id, old.incarnation)


def _edge_counter(snapshot: Snapshot, desired: AcceptedSchema) -> Callable[[str], int]:
    """Return what counts the edges in a snapshot of a type that has a name in another schema."""

    def count(name: str) -> int:
        new = desired.find(TypeKind.EDGE, name)
        old = None if new is None else snapshot.schema.by_id(new.id)
        assert old is not None, "only edges that exist are written again"
        return snapshot.entry(old.entity).rows

    return count


@dataclass(slots=True)
class _MigrationRun:
    """One apply: what was planned and written so far."""

    manifest: Manifest
    request: WriteRequest
    text: str
    options: SchemaOptions
    guard: RewriteGuard | None = None
    _id: CommitId = field(default_factory=new_commit_id)
    _first: _TargetSchema | None = None
    _newest: _TargetSchema | None = None
    _made: dict[object, StagedDataset] = field(default_factory=dict)

    def plan(self, snapshot: Snapshot) -> _TargetSchema:
        """Return what is to be done to the newest state.

        A plan made again may do less than the first, because others have done some of it. It never
        does more: that would undo what others did meanwhile.
        """
        if self._newest is not None and self._newest.base == snapshot.head.schema_hash:
            return self._newest
        target = _TargetSchema.of(
            snapshot.schema,
            self.text,
            allow_data_loss=self.options.allow_data_loss,
            snapshot=snapshot,
        )
        if target.plan.refusals:
            raise SchemaChangeRefused(target.plan.refusals)
        first = self._first = self._first or target
        if not set(target.plan.steps) <= set(first.plan.steps):
            raise SchemaMoved(first.base, target.base)
        self._newest = target
        self._made.clear()  # new identities are others by now
        return target

    def stage(self, snapshot: Snapshot, target: _TargetSchema) -> StagedCommit:
        """Check the entities, and write what the new schema needs."""
        meter = ProgressMeter(self.options.progress)
        reads = self._check(snapshot, target, meter)
        datasets: tuple[StagedDataset, ...] = ()
        if not self.options.dry_run:
            meter.start_phase("write")
            datasets = tuple(self._datasets(snapshot, target))
            meter.start_phase("publish")
        document = target.desired.to_json()
        address = schema_hash(target.desired, self.text)
        written = {dataset.key for dataset in datasets}
        return StagedCommit(
            id=self._id,
            operation=self.request.operation,
            datasets=datasets,
            read_schema=snapshot.head.schema_hash,
            reads={k: (e.key, e.physical) for k, e in reads.items() if e.key not in written},
            schema=StagedSchema(address, self.text, document),
            actor=self.request.actor,
            message=self.request.message,
            if_commit=self.request.if_commit,
            permit=self.request.permit,
        )

    def result(
        self, snapshot: Snapshot, target: _TargetSchema, commit: Commit | None = None
    ) -> SchemaResult:
        """Return what was done."""
        version = snapshot.manifest_version if commit is None else commit.manifest_version
        return SchemaResult(
            branch=snapshot.branch,
            plan=target.plan,
            manifest_version=version,
            commit=commit,
            diagnostics=target.diagnostics,
            actor=self.request.actor,
            lost=() if commit is None else tuple(target.lost()),
        )

    def _check(
        self, snapshot: Snapshot, target: _TargetSchema, meter: ProgressMeter
    ) -> dict[str, DatasetEntry]:
        """Check entities against new rules; return the datasets that were looked at."""
        changes = ChangeSet()
        read: dict[str, DatasetEntry] = {}
        meter.start_phase("check")
        for type_ in target.rewritten():
            if self.guard is not None:
                self.guard(snapshot, type_)
        for old, new in target.types():
            if old is None or new is None:
                continue
            rules = MigrationRules.of(target.plan, new)
            if rules:
                entry = read[old.entity] = snapshot.entry(old.entity)
                with self.manifest.reading(old.entity, entry) as handle:
                    check_existing_rows(changes, new, rules, handle, meter)
        changes.findings.check()
        return read

    def _datasets(self, snapshot: Snapshot, target: _TargetSchema) -> Iterator[StagedDataset]:
        for old, new in target.types():
            if old is None:
                assert new is not None, "a type is there before or after"
                yield self._create(new)
            elif new is None:
                entry = snapshot.entry(old.entity)
                yield StagedDataset(old.entity, *entry.key, entry.physical, None)
            elif old.incarnation != new.incarnation:
                entry = snapshot.entry(old.entity)
                yield StagedDataset(old.entity, *entry.key, entry.physical, None)
                yield self._rewrite(old, entry, new)
            else:
                hard = target.loses(old, new)
                if hard or needs_reshaping(old, new):
                    yield self._reshape(snapshot.entry(old.entity), new, hard=hard)

    def _create(self, type_: AcceptedType) -> StagedDataset:
        staged = self._made.get(type_.id)
        if staged is None:
            [(key, entry)] = create_datasets(self.manifest, [type_]).items()
            new = StagedDataset(key, *entry.key, None, entry.physical, 0, entry.path(key))
            staged = with_checksums(self.manifest.datasets, new)
            self._made[type_.id] = staged
        return staged

    def _rewrite(self, old: AcceptedType, entry: DatasetEntry, new: AcceptedType) -> StagedDataset:
        """Write edges with new IDs, unless an attempt that lost its race did so."""
        earlier = self._made.get((entry.key, entry.physical, entry.excluded))
        if earlier is not None:
            return earlier
        created = self._create(new)
        if not entry.rows:
            return created
        assert created.physical is not None, "it was created"
        with self.manifest.reading(old.entity, entry, to_change=True) as base:
            empty = self.manifest.datasets.at(created.path, created.physical)
            written = rewrite_edges(new, reshape_dataset(base, new, hard=False), empty)
        self.manifest.datasets.keep(created.path, written)
        self.manifest.datasets.observe(f"staged {new.kind}")
        staged = replace(created, physical=int(written.version), rows=entry.rows)
        staged = with_checksums(self.manifest.datasets, staged)
        self._made[entry.key, entry.physical, entry.excluded] = staged
        return staged

    def _reshape(self, entry: DatasetEntry, type_: AcceptedType, *, hard: bool) -> StagedDataset:
        """Give a dataset the columns it lacks, unless an attempt that lost its race did so."""
        earlier = self._made.get((entry.key, entry.physical))
        if earlier is not None:
            return earlier
        with self.manifest.reading(type_.entity, entry, to_change=True) as base:
            reshaped = reshape_dataset(base, type_, hard=hard)
        self.manifest.datasets.keep(entry.path(type_.entity), reshaped)
        self.manifest.datasets.observe(f"staged {type_.kind}")
        staged = StagedDataset(
            type_.entity, *entry.key, entry.physical, int(reshaped.version), entry.rows
        )
        staged = with_checksums(self.manifest.datasets, staged)
        self._made[entry.key, entry.physical] = staged
        return staged
