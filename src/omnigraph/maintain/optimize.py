"""Compact fragments and complete indexes, as one commit that changes no entity.

Concurrent writers take precedence: a type they changed is processed again, based on their commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from omnigraph.catalog import AcceptedType, vector_metric
from omnigraph.commit.footprint import NO_FOOTPRINT
from omnigraph.commit.intent_log import IntentLog, OperationIntent
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, Snapshot
from omnigraph.commit.publish import publish, retry_swap
from omnigraph.commit.recovery import abort_intent
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.staged_commit import (
    StagedCommit,
    StagedDataset,
    new_commit_id,
    with_checksums,
)
from omnigraph.dataset_view import StagedView
from omnigraph.errors import Contention, ExpectedVersionMismatch, OmniError, SchemaMoved
from omnigraph.maintain.indexes import required_indexes
from omnigraph.storage.compaction import (
    compaction_tasks,
    restore_as_latest,
    run_compaction,
    stage_compaction,
)
from omnigraph.storage.index import IndexTask, add_index, build_segment, merge_segments
from omnigraph.write.request import MAINTENANCE_OPERATION, WriteRequest

MAX_OPTIMIZE_ROUNDS = 8
"""Number of attempts when types change concurrently."""


@dataclass(slots=True)
class DatasetMaintenance:
    """Maintenance of one type; `head_version` is the latest version for other Lance readers."""

    type_key: str
    version: int
    path: str
    head_version: int | None = None
    fragments_removed: int = 0
    fragments_added: int = 0
    indexes_built: list[str] = field(default_factory=list)
    staged: StagedDataset | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "type_key": self.type_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "indexes_built": self.indexes_built,
            "committed": self.staged is not None,
            "skipped": None,
            "published_dataset_version": self.version + (self.staged is not None),
            "lance_head_version": self.head_version,
            "pending_indexes": [],
        }


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """The result of maintenance; `commit` is None if nothing had to be done."""

    datasets: list[DatasetMaintenance]
    commit: Commit | None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        commit = self.commit.to_json() if self.commit is not None else None
        return {"datasets": [d.to_json() for d in self.datasets], "commit": commit}


@dataclass(frozen=True, slots=True)
class DatasetVersionRef:
    """The path and physical version of a dataset, for other processes."""

    path: str
    physical: int


class MaintenanceExecutor(Protocol):
    """Rewrites fragments and builds index segments, in this process or in others."""

    def rewrite(self, base: Any, version: DatasetVersionRef, tasks: Sequence[str]) -> list[str]:  # noqa: ANN401 - a Lance handle
        """Run compaction tasks and return their results."""

    def index(
        self,
        base: Any,  # noqa: ANN401
        version: DatasetVersionRef,
        tasks: Sequence[IndexTask],
    ) -> list[list[Any]]:
        """Build one or more segments for each task."""


class LocalMaintenanceExecutor:
    """Runs all tasks in this process."""

    def rewrite(self, base: Any, version: DatasetVersionRef, tasks: Sequence[str]) -> list[str]:  # noqa: ANN401 - as above
        """Run compaction tasks one by one."""
        return [run_compaction(base, task) for task in tasks]

    def index(
        self,
        base: Any,  # noqa: ANN401
        version: DatasetVersionRef,
        tasks: Sequence[IndexTask],
    ) -> list[list[Any]]:
        """Build a segment for each task."""
        return [[build_segment(base, task)] for task in tasks]


def optimize(
    manifest: Manifest,
    request: WriteRequest,
    *,
    compacting: bool = True,
    executor: MaintenanceExecutor | None = None,
) -> MaintenanceReport:
    """Compact every type of a branch and complete its indexes, as one commit."""
    lineage = head_snapshot(manifest, request.branch).lineage_id
    retry_swap(manifest.lineage(lineage).record_row_checksum)
    work = _OptimizeRun(
        manifest, request, executor or LocalMaintenanceExecutor(), compacting=compacting
    )
    try:
        commit = work.publish_with_retry()
        return MaintenanceReport(_with_lance_heads(manifest, work.reports), commit)
    finally:
        work.end()


class _OptimizeRun:
    """One maintenance run: the staged datasets, and the intent that protects their files."""

    def __init__(
        self,
        manifest: Manifest,
        request: WriteRequest,
        executor: MaintenanceExecutor,
        *,
        compacting: bool,
    ) -> None:
        self._manifest = manifest
        self._request = request
        self._executor = executor
        self._compacting = compacting
        self._id = new_commit_id()
        self._done: dict[str, DatasetMaintenance] = {}
        self._intents = IntentLog(manifest.objects)
        self._intent: OperationIntent | None = None
        self._published = False

    @property
    def reports(self) -> list[DatasetMaintenance]:
        """The maintenance of each type, by name."""
        return [self._done[key] for key in sorted(self._done)]

    def publish_with_retry(self) -> Commit | None:
        """Publish; process types that change concurrently again."""
        for _ in range(MAX_OPTIMIZE_ROUNDS):
            with suppress(ExpectedVersionMismatch, SchemaMoved, Contention):
                return self.publish()
        return self.publish()

    def publish(self) -> Commit | None:
        """Stage missing types on the newest state and publish; None if nothing has to be done."""
        manifest = self._manifest
        snapshot = head_snapshot(manifest, self._request.branch)
        self._done = {k: d for k, d in self._done.items() if k in snapshot.entries()}
        for table_key, entry in snapshot.entries().items():
            done = self._done.get(table_key)
            if done is None or done.version != entry.version:
                self._done[table_key] = self._maintain_type(snapshot, table_key)
                self._record_intent(snapshot)
        staged = self._staged(snapshot)
        if not staged.datasets:
            return None
        commit = publish(manifest.lineage(snapshot.lineage_id), snapshot.branch, staged)
        self._published = True
        _restore_latest(manifest, snapshot, self.reports)
        return commit

    def end(self) -> None:
        """Remove the intent; abort it if it was not published."""
        if self._intent is None:
            return
        if self._published:
            self._intents.end(self._intent)
        else:
            abort_intent(self._manifest, self._intent)

    def _record_intent(self, snapshot: Snapshot) -> None:
        """Record the staged datasets in the intent, so that cleanup keeps their files."""
        staged = self._staged(snapshot)
        if self._intent is not None:
            self._intent = self._intents.update(self._intent, staged)
        elif staged.datasets:
            self._intent = self._intents.begin(snapshot.branch, snapshot.lineage_id, staged)

    def _staged(self, snapshot: Snapshot) -> StagedCommit:
        return StagedCommit(
            id=self._id,
            operation=MAINTENANCE_OPERATION,
            datasets=tuple(d.staged for d in self.reports if d.staged is not None),
            read_schema=snapshot.head.schema_hash,
            actor=self._request.actor,
            message=self._request.message,
            known_id=True,
            footprint=NO_FOOTPRINT,
        )

    def _maintain_type(self, snapshot: Snapshot, table_key: str) -> DatasetMaintenance:
        manifest, entry = self._manifest, snapshot.entry(table_key)
        type_, path = snapshot.type_of(table_key), entry.path(table_key)
        report = DatasetMaintenance(table_key, entry.version, path)
        if not entry.rows:
            return report
        with manifest.reading(table_key, entry, to_change=True) as base:
            staged = self._compact(base, report) if self._compacting else base
            staged = self._index(staged, type_, entry.rows, report)
        if staged is not base:
            physical = int(staged.version)
            manifest.datasets.keep(path, staged)
            new = StagedDataset(table_key, *entry.key, entry.physical, physical, entry.rows)
            report.staged = with_checksums(manifest.datasets, new)
            manifest.datasets.observe("maintenance: staged")
        return report

    def _compact(self, base: Any, report: DatasetMaintenance) -> Any:  # noqa: ANN401 - Lance handles
        tasks = compaction_tasks(base)
        if not tasks:
            return base
        version = DatasetVersionRef(report.path, int(base.version))
        done = self._executor.rewrite(base, version, tasks)
        staged, report.fragments_removed, report.fragments_added = stage_compaction(base, done)
        return staged

    def _index(
        self,
        staged: Any,  # noqa: ANN401 - Lance handles
        type_: AcceptedType,
        rows: int,
        report: DatasetMaintenance,
    ) -> Any:  # noqa: ANN401 - as above
        tasks: dict[str, IndexTask] = {}
        for column, kind in required_indexes(type_, rows):
            metric = vector_metric(type_.definition, column)
            task = StagedView(type_, staged).index_task(column, kind, metric)
            if task is not None:
                tasks[f"{column}:{kind}"] = task
        if not tasks:
            return staged
        place = DatasetVersionRef(report.path, int(staged.version))
        built = self._executor.index(staged, place, list(tasks.values()))
        pairs = zip(tasks.values(), built, strict=True)
        whole = [merge_segments(staged, task, segments) for task, segments in pairs]
        for (name, task), segment in zip(tasks.items(), whole, strict=True):
            staged = add_index(staged, task, segment)
            report.indexes_built.append(name)
        return staged


def _restore_latest(
    manifest: Manifest, snapshot: Snapshot, reports: list[DatasetMaintenance]
) -> None:
    """Make main's versions the latest for other Lance readers."""
    if snapshot.branch != MAIN:
        return
    for report in reports:
        if report.staged is not None:
            with suppress(OmniError):
                assert report.staged.physical is not None, "maintenance drops no dataset"
                restore_as_latest(manifest.datasets.open(report.path, report.staged.physical))


def _with_lance_heads(
    manifest: Manifest, reports: list[DatasetMaintenance]
) -> list[DatasetMaintenance]:
    """Add the latest version for other Lance readers, if it can be read."""
    for report in reports:
        with suppress(OmniError):
            report.head_version = int(manifest.datasets.open(report.path, None).version)
    return reports
