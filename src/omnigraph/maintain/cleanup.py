"""This module removes what no retained snapshot needs: mark, then sweep.

Marked are the files of every snapshot that is retained: heads, tags, the newest commits of each
branch, what is younger than asked, and what intents refer to. Swept is the rest, if it is older
than the age floor and than every operation in flight, so that no writer loses what it is just
staging; one that takes longer is refused (`commit/cleanup_lease.py`). Ages are by the
store's clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.branches import finish_branch_deletions, remove_lineage
from omnigraph.commit.cleanup_lease import STORE_CLOCK_TOLERANCE, CleanupLease
from omnigraph.commit.history import (
    dataset_paths,
    datasets_at_commits,
    newest_first,
    read_history,
    registered_path,
)
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.lineage_maintenance import remove_old_versions
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import CommitRow
from omnigraph.commit.model import CommitId, DatasetEntry
from omnigraph.commit.recovery import recover
from omnigraph.errors import GraphCorrupt, InvalidInput, NotFound, StorageUnavailable
from omnigraph.maintain.cleanup_report import CleanupReport, DatasetCleanup
from omnigraph.storage import ObjectInfo
from omnigraph.storage.layout import (
    IDS,
    PIPELINE_RUNS,
    POSITIONS,
    SCRATCH,
    VECTORS,
    dataset_path,
    lineage_path,
    parse_version_file,
    referenced_files,
    referenced_folders,
    version_file,
)

AGE_FLOOR = timedelta(hours=1)
"""Nothing younger is ever removed: a writer may be about to publish it."""
SCRATCH_AGE = timedelta(days=7)
"""Rows a job put down stay so long after the last of them; one that finds some missing fails."""
DELETE_BATCH_FILES = 500
"""Files removed between two looks at whether this cleanup is still welcome."""


def cleanup(
    manifest: Manifest,
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    dry_run: bool = True,
    age_floor: timedelta = AGE_FLOOR,
) -> CleanupReport:
    """Remove what is outside of both limits; without `dry_run=False` only tell.

    `keep` retains the newest commits of each branch, `older_than` those that were a head since.
    """
    if keep is None and older_than is None:
        message = "say what to retain: a number of commits to keep, an age, or both"
        raise InvalidInput(message, code="cleanup_policy_missing")
    if (keep or 0) < 0 or (older_than or timedelta(0)) < timedelta(0):
        message = "what to retain cannot be negative, neither a number of commits nor an age"
        raise InvalidInput(message, code="cleanup_policy_negative")
    report = CleanupReport(keep, older_than, dry_run, age_floor)
    if dry_run:
        # What is foretold may be wrong if this clock is: nothing is written to ask the store's.
        limits = _RetentionLimits.of(manifest, datetime.now(UTC), age_floor, older_than)
        _mark_and_sweep(manifest, report, limits, None)
        return report
    try:
        _run_cleanup(manifest, report, age_floor)
    except StorageUnavailable as error:
        if error.code != "storage_full":
            raise
        _free_disk_space(manifest, age_floor)
        report = CleanupReport(keep, older_than, dry_run, age_floor)
        _run_cleanup(manifest, report, age_floor)
    manifest.objects.hold_reserve()
    return report


def _run_cleanup(manifest: Manifest, report: CleanupReport, age_floor: timedelta) -> None:
    """Announce a cleanup, and remove what it may."""
    recover(manifest)
    now = manifest.objects.now()
    limits = _RetentionLimits.of(manifest, now, age_floor, report.older_than)
    lease = CleanupLease(manifest, began=now, horizon=limits.floor, cutoff=limits.files)
    lease.acquire()
    manifest.datasets.observe("cleanup: announced")
    try:
        _mark_and_sweep(manifest, report, limits, lease)
    finally:
        lease.release()
    manifest.datasets.observe("cleanup: concluded")


def _free_disk_space(manifest: Manifest, age_floor: timedelta) -> None:
    """Free space on a full disk, so that a cleanup can announce itself.

    Besides what is held for this, old versions of lineages go, which only are shortcuts.
    """
    manifest.objects.release_reserve()
    _remove_old_manifests(manifest, manifest.objects.now() - age_floor)


@dataclass(frozen=True, slots=True)
class _RetentionLimits:
    """Times that decide what stays: files written since `files`, states that were heads since.

    A state stays if it was a head since `horizon` by the times of commits, or since `floor` by
    those of the store. Those since `asked` stay because the caller wants it.
    """

    now: datetime
    floor: datetime
    horizon: datetime
    asked: datetime | None
    files: datetime

    @classmethod
    def of(
        cls, manifest: Manifest, now: datetime, age_floor: timedelta, older_than: timedelta | None
    ) -> _RetentionLimits:
        # Announcements are in milliseconds, and all compare with the very same time.
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        begun = [
            min(intent.started_at, intent.heartbeat) - STORE_CLOCK_TOLERANCE
            for intent in IntentLog(manifest.objects).list()
        ]
        floor = now - age_floor
        files = min([floor, *begun])
        files = files.replace(microsecond=files.microsecond // 1000 * 1000)
        asked = None if older_than is None else now - older_than
        return cls(now, floor, min(floor, asked or floor), asked, files)


def _mark_and_sweep(
    manifest: Manifest,
    report: CleanupReport,
    limits: _RetentionLimits,
    lease: CleanupLease | None,
) -> None:
    """Do it under an announcement, or, without one, only report."""
    marks, before = _mark(manifest, report.keep, limits), limits.files
    manifest.datasets.observe("cleanup: marked")
    for folder in ("nodes", "edges"):
        for name in manifest.objects.folders(folder):
            files = _sweep_dataset(manifest, report, f"{folder}/{name}", marks, before)
            try:
                if lease is not None:
                    _remove(manifest, files, lease)
            except (NotFound, StorageUnavailable) as error:
                report.datasets[-1].error = error.message
            manifest.datasets.observe(f"cleanup: swept {folder}")
    report.lineages_removed = _sweep_lineages(manifest, before, lease)
    if lease is not None:
        _sweep_pipeline_runs(manifest, before)
        _sweep_scratch(manifest, limits.now - SCRATCH_AGE)
        _remove_old_manifests(manifest, limits.horizon)


# --- mark --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _RetainedVersions:
    """The physical versions to retain by dataset path, and the type key of each path.

    `heads` are those that must be there; others may have gone under an earlier, narrower policy.
    `asked` are those that stay however old they are. `newest` is when something was last published.
    """

    newest: datetime
    versions: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    heads: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    asked: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    keys: dict[str, str] = field(default_factory=dict)


def _mark(manifest: Manifest, keep: int | None, limits: _RetentionLimits) -> _RetainedVersions:
    marks = _RetainedVersions(limits.floor)
    heads, others = _branch_states(manifest)
    history = read_history([*heads, *others])
    paths = dataset_paths([*heads, *others], marks.keys)
    published = _publish_times(manifest, [*heads, *others], history.commits)
    for state in heads:
        retained = dict(_retained_commits(history.commits, state, keep, limits, published))
        for datasets in datasets_at_commits(history, retained):
            _add_versions(marks.versions, datasets, paths)
        for datasets in datasets_at_commits(
            history, [id_ for id_, asked in retained.items() if asked]
        ):
            _add_versions(marks.asked, datasets, paths)
        _add_versions(marks.heads, state.head.datasets, paths)
    marks.newest = max(published.values(), default=limits.floor)
    tagged = {tag.commit_id for tag in manifest.tags().values()}
    for datasets in datasets_at_commits(history, tagged & set(history.commits)):
        _add_versions(marks.versions, datasets, paths)
        _add_versions(marks.asked, datasets, paths)
    for intent in IntentLog(manifest.objects).list():
        for dataset in intent.staged.datasets:
            kind = dataset.table_key.partition(":")[0]
            path = dataset_path(kind, dataset.type_id, dataset.incarnation)
            versions = {v for v in (dataset.physical, dataset.expected) if v is not None}
            marks.versions[path] |= versions
            marks.asked[path] |= versions
    return marks


def _add_versions(
    marked: defaultdict[str, set[int]],
    datasets: Mapping[tuple[TypeId, IncarnationId], DatasetEntry],
    paths: Mapping[tuple[TypeId, IncarnationId], str],
) -> None:
    for entry in datasets.values():
        marked[registered_path(paths, entry)].add(entry.physical)


def _branch_states(manifest: Manifest) -> tuple[list[LineageState], list[LineageState]]:
    """Return the states of all branches, and those only their history or a tag needs.

    Heads are read before what they descend from, which can therefore not be missing.
    """
    branches = {branch.lineage_id for branch in manifest.branches().values()}
    found: dict[str, LineageState] = {}
    for lineage_id in sorted(
        manifest.named_lineages(), key=lambda lineage_id: lineage_id not in branches
    ):
        try:
            found[lineage_id] = manifest.lineage(lineage_id).state()
        except NotFound:
            if lineage_id in manifest.named_lineages():
                raise
            continue  # it was just deleted
    heads = [state for lineage_id, state in found.items() if lineage_id in branches]
    others = [state for lineage_id, state in found.items() if lineage_id not in branches]
    return [*heads, manifest.main.state()], others


def _retained_commits(
    commits: Mapping[CommitId, CommitRow],
    state: LineageState,
    keep: int | None,
    limits: _RetentionLimits,
    published: Mapping[CommitId, datetime],
) -> Iterator[tuple[CommitId, bool]]:
    """Yield the commits whose snapshots stay readable, and whether they do for more than the floor.

    The head always does. What counts is when a commit was last a head, not when it was made: until
    then a reader or a new branch may have started from it, however old it was. Where the store says
    when that was, no clock of a writer retains it longer, or shorter than the floor.
    """
    recent: set[CommitId] = set()
    asked: set[CommitId] = set()
    for index, commit in enumerate(newest_first(commits, state.head.commit_id)):
        stored = published.get(commit.id, commit.created_at)
        since = min(commit.created_at, stored)
        if since >= limits.horizon or stored > limits.floor:
            recent |= {commit.id, *commit.parents}
        if limits.asked is not None and since >= limits.asked:
            asked |= {commit.id, *commit.parents}
        if index == 0 or (keep is not None and index < keep) or commit.id in asked:
            yield commit.id, True
        elif commit.id in recent:
            yield commit.id, False


def _publish_times(
    manifest: Manifest, states: Iterable[LineageState], commits: Mapping[CommitId, CommitRow]
) -> dict[CommitId, datetime]:
    """Return when commits were published by the store's clock, as far as it still knows."""
    made: dict[tuple[str | None, int], datetime] = {}
    for lineage in (state.lineage for state in states):
        for info in manifest.objects.list(f"{lineage.path}/_versions"):
            version = parse_version_file(info.path.removeprefix(f"{lineage.path}/"))
            if version is not None:
                made[lineage.lineage_id, version] = info.modified
    places = ((id_, (row.lineage_id, row.commit.manifest_version)) for id_, row in commits.items())
    return {id_: made[place] for id_, place in places if place in made}


# --- sweep -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _RetainedFiles:
    """Files and folders that versions of a dataset need, below it."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def add(self, handle: Any) -> None:  # noqa: ANN401 - a Lance handle
        self.files |= referenced_files(handle)
        self.folders |= referenced_folders(handle)

    def has(self, below: str) -> bool:
        return (
            below in self.files
            or any(below.startswith(folder) for folder in self.folders)
            or (bool(self.files) and below.startswith(("_versions/latest", "_refs/")))
        )


def _sweep_dataset(
    manifest: Manifest, report: CleanupReport, path: str, marks: _RetainedVersions, before: datetime
) -> list[str]:
    """Report about one dataset; return its files that no retained version refers to."""
    dataset = DatasetCleanup(path, marks.keys.get(path, path))
    report.datasets.append(dataset)
    listed = list(manifest.objects.list(path))
    try:
        needed, asked = _required_files(manifest, path, marks, listed)
    except (GraphCorrupt, NotFound, StorageUnavailable) as error:
        dataset.error = error.message
        return []
    doomed, recent = list[ObjectInfo](), list[ObjectInfo]()
    for info in listed:
        below = info.path.removeprefix(f"{path}/")
        if info.modified < before and not needed.has(below):
            doomed.append(info)
        elif not asked.has(below):
            recent.append(info)
    dataset.bytes_removed = sum(info.size for info in doomed)
    dataset.bytes_kept = sum(info.size for info in listed) - dataset.bytes_removed
    dataset.files_removed = len(doomed)
    dataset.old_versions_removed = sum(info.path.endswith(".manifest") for info in doomed)
    dataset.recent_files = len(recent)
    dataset.recent_bytes = sum(info.size for info in recent)
    if recent:
        last = max(marks.newest, *(info.modified for info in recent)) + report.floor
        report.removable_at = max(last, report.removable_at or last)
    # Manifests go first: a version that cannot be opened is cleaner than one that is hollow.
    return sorted((i.path for i in doomed), key=lambda path: not path.endswith(".manifest"))


def _required_files(
    manifest: Manifest, path: str, marks: _RetainedVersions, listed: Iterable[ObjectInfo]
) -> tuple[_RetainedFiles, _RetainedFiles]:
    """Return what retained versions of a dataset need, and what those do that were asked for."""
    there = {info.path.removeprefix(f"{path}/") for info in listed}
    versions = {v for v in marks.versions[path] if version_file(v) in there}
    if not marks.heads[path] <= versions:
        raise GraphCorrupt("a version a branch shows is missing: nothing is removed")
    needed, asked = _RetainedFiles(), _RetainedFiles()
    # The HEAD is for foreign readers; its files stay as long as the dataset is alive.
    for version in (*sorted(versions), None) if versions else ():
        try:
            handle = manifest.datasets.open(path, version)
        except NotFound:
            if version is None or version in marks.heads[path]:
                raise
            continue  # what staged it was undone since
        needed.add(handle)
        if version is None or version in marks.asked[path]:
            asked.add(handle)
    return needed, asked


def _remove(manifest: Manifest, files: Sequence[str], lease: CleanupLease) -> None:
    for start in range(0, len(files), DELETE_BATCH_FILES):
        lease.renew()
        manifest.objects.delete(files[start : start + DELETE_BATCH_FILES])
        manifest.datasets.observe("cleanup: files removed")


def _sweep_lineages(manifest: Manifest, before: datetime, lease: CleanupLease | None) -> int:
    """Remove lineages nobody needs: closed ones, and those their creator never registered.

    Nobody can be at work on one that was not written to for so long.
    """
    if lease is not None:
        finish_branch_deletions(manifest)
    unnamed = manifest.stored_lineages() - manifest.named_lineages()
    removed = 0
    for lineage_id in sorted(unnamed):
        files = manifest.objects.list(lineage_path(lineage_id))
        if all(info.modified < before for info in files):
            removed += 1
            if lease is not None:
                lease.renew()
                remove_lineage(manifest, lineage_id)
                manifest.datasets.observe("cleanup: lineage removed")
    return removed


def _sweep_pipeline_runs(manifest: Manifest, before: datetime) -> None:
    """Remove what runs needed while they lasted; who is at work is younger than that."""
    folders = [f"/{name}/" for name in (POSITIONS, IDS, VECTORS)]
    files = manifest.objects.list(PIPELINE_RUNS)
    found = (info for info in files if any(folder in info.path for folder in folders))
    manifest.objects.delete([info.path for info in found if info.modified < before])


def _sweep_scratch(manifest: Manifest, before: datetime) -> None:
    """Remove rows that nobody came back for."""
    for folder in manifest.objects.folders(SCRATCH):
        files = list(manifest.objects.list(f"{SCRATCH}/{folder}"))
        if all(info.modified < before for info in files):
            manifest.objects.delete([info.path for info in files])
            manifest.datasets.observe("cleanup: scratch removed")


def _remove_old_manifests(manifest: Manifest, horizon: datetime) -> None:
    """Drop old manifest versions; commits stay readable through their history rows."""
    for lineage_id in (None, *sorted(manifest.named_lineages())):
        with suppress(NotFound):  # it was just deleted
            remove_old_versions(manifest.lineage(lineage_id), horizon)
            manifest.datasets.observe("cleanup: manifest cleaned")
