"""Compact fragments and complete indexes, as one commit that changes no entity.

Concurrent writers take precedence. Datasets are staged beside them; what they commit meanwhile is
carried over to the staged versions, and only the publish takes a turn in the queue of the branch.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from omnigraph.catalog import AcceptedType, vector_metric
from omnigraph.commit.commit_queue import QueuedChange
from omnigraph.commit.footprint import NO_FOOTPRINT
from omnigraph.commit.intent_log import IntentLog, OperationIntent
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, DatasetEntry, Snapshot
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
from omnigraph.maintain.derived_files import (
    indexed_texts,
    large_edge_types,
    refresh_text_index,
    refresh_topology,
)
from omnigraph.maintain.indexes import required_indexes
from omnigraph.notebook.display import ReportDisplay
from omnigraph.storage.compaction import (
    compaction_tasks,
    restore_as_latest,
    run_compaction,
    stage_compaction,
)
from omnigraph.storage.index import (
    IndexTask,
    add_index,
    build_segment,
    drop_text_indexes,
    merge_segments,
)
from omnigraph.storage.staged_writes import move_changes
from omnigraph.write.request import MAINTENANCE_OPERATION, WriteRequest
from omnigraph.write.transaction import commit_queue

MAX_OPTIMIZE_ROUNDS = 8
"""Number of attempts when types change concurrently."""
_LOST_RACES = (ExpectedVersionMismatch, SchemaMoved, Contention)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeOptions:
    """What to do: compact, index or both, of these types (`node:T`, `edge:E`) or of all.

    With `derived`, topologies and the words of indexed texts are stored, too.
    """

    compact: bool = True
    index: bool = True
    derived: bool = True
    types: Collection[str] | None = None


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
class MaintenanceReport(ReportDisplay):
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
    options: OptimizeOptions | None = None,
    executor: MaintenanceExecutor | None = None,
) -> MaintenanceReport:
    """Compact the types of a branch and complete their indexes, as one commit.

    Raises:
        Contention: the request timed out while it waited for writers of the branch.
    """
    lineage = head_snapshot(manifest, request.branch).lineage_id
    retry_swap(manifest.lineage(lineage).record_row_checksum)
    work = _OptimizeRun(
        manifest, request, executor or LocalMaintenanceExecutor(), options or OptimizeOptions()
    )
    try:
        commit = work.publish_with_retry()
        if work.indexes and executor is None and (options is None or options.derived):
            _store_derived_files(manifest, head_snapshot(manifest, request.branch))
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
        options: OptimizeOptions,
    ) -> None:
        self._manifest = manifest
        self._request = request
        self._executor = executor
        self._options = options
        self._id = new_commit_id()
        self._done: dict[str, DatasetMaintenance] = {}
        self._intents = IntentLog(manifest.objects)
        self._intent: OperationIntent | None = None
        self._published = False

    @property
    def indexes(self) -> bool:
        """Whether indexes are completed."""
        return self._options.index

    @property
    def reports(self) -> list[DatasetMaintenance]:
        """The maintenance of each type, by name."""
        return [self._done[key] for key in sorted(self._done)]

    def publish_with_retry(self) -> Commit | None:
        """Stage and publish; repeat what was lost to concurrent commits."""
        for _ in range(MAX_OPTIMIZE_ROUNDS):
            with suppress(*_LOST_RACES):
                return self.run()
        return self.run()

    def run(self) -> Commit | None:
        """Stage on the newest state, then publish in a turn; None if nothing has to be done."""
        snapshot = head_snapshot(self._manifest, self._request.branch)
        self._stage(snapshot)
        if not self._staged(snapshot).datasets:
            return None
        queue = commit_queue(self._manifest, snapshot.lineage_id)
        turn: QueuedChange[Commit] = QueuedChange(
            time.monotonic() + self._request.timeout, alone=True
        )
        with queue.turn(turn):
            commit = self._publish()
        self._published = True
        _restore_latest(self._manifest, snapshot, self.reports)
        return commit

    def _publish(self) -> Commit:
        """Publish on the newest state; commits since staging are few, and are carried over."""
        snapshot = head_snapshot(self._manifest, self._request.branch)
        for table_key in [key for key, done in self._done.items() if done.staged is not None]:
            if not self._carry_over(snapshot, table_key):
                entry = snapshot.entries().get(table_key)
                stale = self._done.pop(table_key).version
                raise ExpectedVersionMismatch(table_key, stale, entry.version if entry else None)
        self._record_intent(snapshot)
        return publish(
            self._manifest.lineage(snapshot.lineage_id), snapshot.branch, self._staged(snapshot)
        )

    def _stage(self, snapshot: Snapshot) -> None:
        """Stage the selected types of a state, or carry over to it what is staged already."""
        entries, types = snapshot.entries(), self._options.types
        self._done = {key: done for key, done in self._done.items() if key in entries}
        for table_key in entries if types is None else [key for key in types if key in entries]:
            if not self._carry_over(snapshot, table_key):
                self._done[table_key] = self._maintain_type(snapshot, table_key)
            self._record_intent(snapshot)

    def _carry_over(self, snapshot: Snapshot, table_key: str) -> bool:
        """Base the maintenance of a type on a state; return whether that is possible."""
        done, entry = self._done.get(table_key), snapshot.entries().get(table_key)
        if done is None or entry is None or done.path != entry.path(table_key):
            return False  # another type may have the name by now
        if done.version == entry.version or done.staged is None:
            return True
        moved = _carried_over(self._manifest, done.staged, entry)
        if moved is None:
            return False
        done.staged, done.version = moved, entry.version
        return True

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
        if self._intent is not None and self._intent.staged.datasets != staged.datasets:
            self._intent = self._intents.update(self._intent, staged)
        elif self._intent is None and staged.datasets:
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
            maintenance=True,
        )

    def _maintain_type(self, snapshot: Snapshot, table_key: str) -> DatasetMaintenance:
        manifest, entry = self._manifest, snapshot.entry(table_key)
        type_, path = snapshot.type_of(table_key), entry.path(table_key)
        report = DatasetMaintenance(table_key, entry.version, path)
        if not entry.rows:
            return report
        with manifest.reading(table_key, entry, to_change=True) as base:
            staged = drop_text_indexes(base) if self._options.index else base
            if self._options.compact:
                staged = self._compact(staged, report)
            if self._options.index:
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


def _carried_over(
    manifest: Manifest, staged: StagedDataset, entry: DatasetEntry
) -> StagedDataset | None:
    """Return a staged dataset with what was committed since its base; None if that cannot be."""
    assert staged.expected is not None, "maintenance creates no dataset"
    assert staged.physical is not None, "maintenance drops no dataset"
    path, datasets = staged.path, manifest.datasets
    if entry.key != staged.key or entry.excluded:
        return None
    base, new = datasets.at(path, staged.expected), datasets.at(path, staged.physical)
    moved = move_changes(base, datasets.at(path, entry.physical), new)
    if moved is None:
        return None
    datasets.keep(path, moved)
    result = replace(
        staged, expected=entry.physical, physical=int(moved.version), rows=entry.rows, checksums={}
    )
    datasets.observe("maintenance: carried over")
    return with_checksums(datasets, result)


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
                handle = manifest.datasets.open(report.path, report.staged.physical)
                manifest.datasets.sync_version(report.path, restore_as_latest(handle))


def _store_derived_files(manifest: Manifest, snapshot: Snapshot) -> None:
    """Store topologies and the words of indexed texts; a failure costs the next query time."""
    for name in large_edge_types(snapshot):
        with suppress(OmniError):
            refresh_topology(manifest, snapshot, name)
    for name, property_name in indexed_texts(snapshot):
        with suppress(OmniError):
            refresh_text_index(manifest, snapshot, name, property_name)


def _with_lance_heads(
    manifest: Manifest, reports: list[DatasetMaintenance]
) -> list[DatasetMaintenance]:
    """Add the latest version for other Lance readers, if it can be read."""
    for report in reports:
        with suppress(OmniError):
            report.head_version = int(manifest.datasets.open(report.path, None).version)
    return reports
