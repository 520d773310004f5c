"""Plan a schema migration and apply it as one commit.

The commit is an ordinary publish: writers that prepared a change under the old schema are rejected
or prepare it again, and of two concurrent migrations one is planned again based on the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.catalog import (
    AcceptedSchema,
    AcceptedType,
    DropMode,
    MigrationPlan,
    MigrationStep,
    Property,
    SchemaChangeRefused,
    TimeOrderedAllocator,
    TypeKind,
    plan_migration,
    read_catalog,
    resolve_schema,
)
from omnigraph.catalog.defaults import default_value
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
from omnigraph.errors import ExpectedVersionMismatch, InvalidInput, SchemaMoved
from omnigraph.lang import Code, Diagnostic, SchemaError, report_for_text
from omnigraph.storage import staged_writes
from omnigraph.storage.layout import (
    dataset_path,
    is_blob,
    physical_columns,
    property_column,
    unused_column_name,
)
from omnigraph.types.arrow import arrow_type, to_column
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.checks.existing_rows import MigrationRules, check_existing_rows
from omnigraph.write.progress import ProgressListener, ProgressMeter
from omnigraph.write.request import WriteRequest
from omnigraph.write.transaction import MAX_REPREPARES, publish_with_retry

# ----------------------------------------------------------------------
# Columns: give the dataset of a type the columns that another schema needs.
#
# Columns are only ever added: one for a new property, one for a wider type. What was renamed or
# dropped keeps its column; only a hard drop rewrites a dataset, without the columns of
# dropped properties.


def needs_reshaping(old: AcceptedType, new: AcceptedType) -> bool:
    """Return whether a dataset lacks a column for some property of the new state of its type."""
    before = {id_: old.definition.properties[name] for name, id_ in old.property_ids.items()}
    for name, property_ in new.definition.properties.items():
        former = before.get(new.property_ids[name])
        if former is None or arrow_type(former.type) != arrow_type(property_.type):
            return True
    return False


def reshape_dataset(base: Any, type_: AcceptedType, *, hard: bool) -> Any:  # noqa: ANN401 - Lance handles
    """Return a staged version with a column for every property, or the base if it has them.

    With `hard`, columns of dropped properties are left out.
    """
    made = _with_new_columns(base, type_)
    columns = physical_columns(base.schema)
    for name, property_ in type_.definition.properties.items():
        column = columns.get(type_.property_ids[name])
        if column is None and default_value(property_) is not None:
            made = _stage_default_column(made, type_, property_)
        elif column is not None and _is_narrow(base.schema.field(column), property_):
            made = _widened_column(made, type_, property_, column)
    return _rewrite_without_dropped(made, type_) if hard else made


def _with_new_columns(base: Any, type_: AcceptedType) -> Any:  # noqa: ANN401 - Lance handles
    """Stage columns of nulls, all at once."""
    columns = physical_columns(base.schema)
    fields: list[pa.Field] = []
    for name, property_ in type_.definition.properties.items():
        if type_.property_ids[name] not in columns and default_value(property_) is None:
            fields.append(_new_field(base, type_, property_, fields))
    return staged_writes.add_columns(base, fields) if fields else base


def _new_field(
    base: Any,  # noqa: ANN401 - a Lance handle
    type_: AcceptedType,
    property_: Property,
    others: list[pa.Field],
) -> pa.Field:
    name = unused_column_name(
        property_.name, [*base.schema.names, *(field.name for field in others)]
    )
    return property_column(name, property_.type, type_.property_ids[property_.name])


def _stage_default_column(base: Any, type_: AcceptedType, property_: Property) -> Any:  # noqa: ANN401 - as above
    value = to_column([default_value(property_)], property_.type)[0]
    return staged_writes.fill_column(base, _new_field(base, type_, property_, []), value)


def _is_narrow(field: pa.Field, property_: Property) -> bool:
    return not is_blob(field) and bool(field.type != arrow_type(property_.type))


def _widened_column(base: Any, type_: AcceptedType, property_: Property, column: str) -> Any:  # noqa: ANN401
    wanted = arrow_type(property_.type)
    field = _new_field(base, type_, property_, [])
    return staged_writes.widen_column(base, column, field, lambda old: old.cast(wanted))


def _rewrite_without_dropped(base: Any, type_: AcceptedType) -> Any:  # noqa: ANN401 - as above
    marked = physical_columns(base.schema)
    kept = {marked[id_] for id_ in type_.property_ids.values()}
    system = [
        name
        for name in ("id", "src", "dst")
        if name in base.schema.names[: _system_column_count(type_)]
    ]
    columns = [*system, *(name for name in base.schema.names if name in kept)]
    if len(columns) == len(base.schema.names):
        return base
    if any(is_blob(base.schema.field(name)) for name in columns):
        message = f"{type_.entity} has blobs and cannot be rewritten; drop without data loss"
        raise InvalidInput(message, code="hard_drop_unsupported", type=type_.entity)
    return staged_writes.rewrite_columns(base, columns)


def _system_column_count(type_: AcceptedType) -> int:
    return 3 if type_.kind == "edge" else 1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaOptions:
    """How to apply: whether drops delete data, whether it is a dry run, where to report."""

    allow_data_loss: bool = False
    dry_run: bool = False
    progress: ProgressListener | None = None


def plan_schema(
    accepted: AcceptedSchema, text: str, *, allow_data_loss: bool = False
) -> tuple[MigrationPlan, list[Diagnostic]]:
    """Return the steps to a schema text and what there is to say about it.

    Raises:
        SchemaError: the text is refused; `diagnostics` lists every reason.
    """
    wanted = _TargetSchema.of(accepted, text, allow_data_loss=allow_data_loss)
    return wanted.plan, list(wanted.diagnostics)


def apply_schema(
    manifest: Manifest, request: WriteRequest, text: str, options: SchemaOptions
) -> SchemaResult:
    """Make a schema text the accepted schema of a branch.

    Raises:
        SchemaError: the text is refused.
        SchemaChangeRefused: the accepted schema cannot become it.
        ValidationFailed: entities break its new rules.
        SchemaMoved: another migration was made meanwhile, which this one would undo.
    """
    work = _MigrationRun(manifest, request, text, options)
    for attempt in range(MAX_REPREPARES + 1):
        snapshot = head_snapshot(manifest, request.branch)
        wanted = work.plan(snapshot)
        if not wanted.plan.steps:
            return work.result(snapshot, wanted)
        staged = work.stage(snapshot, wanted)
        if options.dry_run:
            return work.result(snapshot, wanted)
        try:
            lineage = manifest.lineage(snapshot.lineage_id)
            commit = publish_with_retry(lineage, snapshot.branch, staged)
        except (ExpectedVersionMismatch, SchemaMoved):
            if attempt == MAX_REPREPARES:
                raise
        else:
            return work.result(snapshot, wanted, commit)
    raise AssertionError("the last attempt returns or raises")


@dataclass(frozen=True, slots=True)
class _TargetSchema:
    """A schema text on top of an accepted schema, `base` being the address of the latter."""

    accepted: AcceptedSchema
    desired: AcceptedSchema
    plan: MigrationPlan
    diagnostics: tuple[Diagnostic, ...]
    base: str

    @classmethod
    def of(
        cls, accepted: AcceptedSchema, text: str, *, allow_data_loss: bool, base: str = ""
    ) -> _TargetSchema:
        report = report_for_text(text, "<schema>", Code.SCHEMA_UNREADABLE)
        catalog = read_catalog(report)
        if report.errors:
            raise SchemaError(report.sorted())
        desired = resolve_schema(catalog, accepted, allocator=TimeOrderedAllocator(), report=report)
        plan = plan_migration(accepted, desired)
        plan = plan.with_data_loss() if allow_data_loss else plan
        return cls(accepted, desired, plan, tuple(report.sorted()), base)

    def types(self) -> Iterator[tuple[AcceptedType | None, AcceptedType | None]]:
        """Yield every node and edge type before and after: None where it is not there."""
        for kind in (TypeKind.NODE, TypeKind.EDGE):
            for new in self.desired.of_kind(kind):
                yield self.accepted.by_id(new.id), new
            for old in self.accepted.of_kind(kind):
                if self.desired.by_id(old.id) is None:
                    yield old, None

    def loses(self, old: AcceptedType, new: AcceptedType | None) -> bool:
        """Return whether something of a type is dropped with its data."""
        for step in self.plan.steps:
            match step:
                case DropType(kind, name, DropMode.HARD) if new is None:
                    found = (kind, name) == (old.kind, old.name)
                case DropProperty(kind, name, _, DropMode.HARD) if new is not None:
                    found = (kind, name) == (new.kind, new.name)
                case _:
                    found = False
            if found:
                return True
        return False

    def lost(self) -> Iterator[str]:
        """Yield the paths of datasets of which something is dropped with its data."""
        for old, new in self.types():
            if old is not None and self.loses(old, new):
                assert old.incarnation is not None, "node and edge types have an incarnation"
                yield dataset_path(old.kind, old.id, old.incarnation)


@dataclass(slots=True)
class _MigrationRun:
    """One apply: what was planned and written so far."""

    manifest: Manifest
    request: WriteRequest
    text: str
    options: SchemaOptions
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
        wanted = _TargetSchema.of(
            snapshot.schema,
            self.text,
            base=snapshot.head.schema_hash,
            allow_data_loss=self.options.allow_data_loss,
        )
        if wanted.plan.refusals:
            raise SchemaChangeRefused(wanted.plan.refusals)
        first = self._first = self._first or wanted
        if not set(wanted.plan.steps) <= set(first.plan.steps):
            raise SchemaMoved(first.base, wanted.base)
        self._newest = wanted
        self._made.clear()  # new identities are others by now
        return wanted

    def stage(self, snapshot: Snapshot, wanted: _TargetSchema) -> StagedCommit:
        """Check the entities, and write what the new schema needs."""
        meter = ProgressMeter(self.options.progress)
        reads = self._check(snapshot, wanted, meter)
        datasets: tuple[StagedDataset, ...] = ()
        if not self.options.dry_run:
            meter.start_phase("write")
            datasets = tuple(self._datasets(snapshot, wanted))
            meter.start_phase("publish")
        document = wanted.desired.to_json()
        address = schema_hash(wanted.desired, self.text)
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
        )

    def result(
        self, snapshot: Snapshot, wanted: _TargetSchema, commit: Commit | None = None
    ) -> SchemaResult:
        """Return what was done."""
        version = snapshot.manifest_version if commit is None else commit.manifest_version
        return SchemaResult(
            branch=snapshot.branch,
            plan=wanted.plan,
            manifest_version=version,
            commit=commit,
            diagnostics=wanted.diagnostics,
            actor=self.request.actor,
            lost=() if commit is None else tuple(wanted.lost()),
        )

    def _check(
        self, snapshot: Snapshot, wanted: _TargetSchema, meter: ProgressMeter
    ) -> dict[str, DatasetEntry]:
        """Check entities against new rules; return the datasets that were looked at."""
        changes = ChangeSet()
        read: dict[str, DatasetEntry] = {}
        meter.start_phase("check")
        for old, new in wanted.types():
            if old is None or new is None:
                continue
            rules = MigrationRules.of(wanted.plan, new)
            if rules:
                entry = read[old.entity] = snapshot.entry(old.entity)
                with self.manifest.reading(old.entity, entry) as handle:
                    check_existing_rows(changes, new, rules, handle, meter)
        changes.findings.check()
        return read

    def _datasets(self, snapshot: Snapshot, wanted: _TargetSchema) -> Iterator[StagedDataset]:
        for old, new in wanted.types():
            if old is None:
                assert new is not None, "a type is there before or after"
                yield self._create(new)
            elif new is None:
                entry = snapshot.entry(old.entity)
                yield StagedDataset(old.entity, *entry.key, entry.physical, None)
            else:
                hard = wanted.loses(old, new)
                if hard or needs_reshaping(old, new):
                    yield self._reshape(snapshot.entry(old.entity), new, hard=hard)

    def _create(self, type_: AcceptedType) -> StagedDataset:
        known = self._made.get(type_.id)
        if known is None:
            [(key, entry)] = create_datasets(self.manifest, [type_]).items()
            path = dataset_path(type_.kind, *entry.key)
            new = StagedDataset(key, *entry.key, None, entry.physical, 0, path)
            known = with_checksums(self.manifest.datasets, new)
            self._made[type_.id] = known
        return known

    def _reshape(self, entry: DatasetEntry, type_: AcceptedType, *, hard: bool) -> StagedDataset:
        """Give a dataset the columns it lacks, unless an attempt that lost its race did so."""
        known = self._made.get((entry.key, entry.physical))
        if known is not None:
            return known
        with self.manifest.reading(type_.entity, entry) as base:
            made = reshape_dataset(base, type_, hard=hard)
        self.manifest.datasets.keep(dataset_path(type_.kind, *entry.key), made)
        self.manifest.datasets.observe(f"staged {type_.kind}")
        staged = StagedDataset(
            type_.entity, *entry.key, entry.physical, int(made.version), entry.rows
        )
        staged = with_checksums(self.manifest.datasets, staged)
        self._made[entry.key, entry.physical] = staged
        return staged
