"""Remove files that no retained snapshot needs, by mark and sweep.

The files of every retained snapshot are marked: heads, tags, the newest commits of each branch,
commits within the retention age, and versions in intents. Other files are removed if they are older
than the age floor and than every operation in progress, so that no writer loses files it is
staging; a writer that takes longer fails (`commit/cleanup_lease.py`). Ages are by the
store's clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from omnigraph.commit.branches import finish_branch_deletions, remove_lineage
from omnigraph.commit.cleanup_lease import STORE_CLOCK_TOLERANCE, CleanupLease
from omnigraph.commit.commit_log import find_divergence, newest_first
from omnigraph.commit.history import (
    add_versions,
    dataset_paths,
    datasets_at_commits,
    read_history,
)
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.lineage import MIN_VERSION_AGE_IN_BUCKET, LineageState
from omnigraph.commit.lineage_maintenance import remove_old_versions
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import CommitRow
from omnigraph.commit.model import CommitId
from omnigraph.commit.proposal_log import ProposalLog
from omnigraph.commit.recovery import recover
from omnigraph.errors import GraphCorrupt, InvalidInput, NotFound, StorageUnavailable
from omnigraph.maintain.cleanup_report import CleanupReport, DatasetCleanup
from omnigraph.storage import ObjectInfo
from omnigraph.storage.layout import (
    IDS,
    PIPELINE_RUNS,
    POSITIONS,
    PROPOSALS,
    REMOVED,
    SCRATCH,
    STAGED,
    VECTORS,
    checksum_file,
    lineage_path,
    manifests_first,
    parse_version_file,
    referenced_files,
    referenced_folders,
    version_file,
)

AGE_FLOOR = timedelta(hours=1)
"""Newer files are never removed: a writer may be about to publish them."""
SCRATCH_AGE = timedelta(days=7)
"""Age at which scratch rows of a job are removed; a job that misses some fails."""
DELETE_BATCH_FILES = 500
"""Files removed between two renewals of the lease."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Older than every commit."""


def cleanup(
    manifest: Manifest,
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    dry_run: bool = True,
    age_floor: timedelta = AGE_FLOOR,
) -> CleanupReport:
    """Remove files outside both limits; without `dry_run=False` only report.

    `keep` retains the newest commits of each branch, `older_than` those that were a head within
    that age.
    """
    if keep is None and older_than is None:
        message = "specify what to retain: a number of commits to keep, an age, or both"
        raise InvalidInput(message, code="cleanup_policy_missing")
    if (keep or 0) < 0 or (older_than or timedelta(0)) < timedelta(0):
        message = "the number of commits to keep and the age must not be negative"
        raise InvalidInput(message, code="cleanup_policy_negative")
    report = CleanupReport(keep, older_than, dry_run, age_floor)
    if dry_run:
        # The preview uses the local clock: reading the store's clock would write an object.
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
    """Announce a cleanup and remove files."""
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

    Besides the reserve, old versions of lineages are removed, which are only shortcuts.
    """
    manifest.objects.release_reserve()
    _remove_old_manifests(manifest, manifest.objects.now() - age_floor)


@dataclass(frozen=True, slots=True)
class _RetentionLimits:
    """Times that decide what is kept; files written since `files` are kept.

    A state is kept if it was a head since `horizon` by the times of commits, or since `floor` by
    those of the store. States since `requested` are kept at the request of the caller.
    """

    now: datetime
    floor: datetime
    horizon: datetime
    requested: datetime | None
    files: datetime

    @classmethod
    def of(
        cls, manifest: Manifest, now: datetime, age_floor: timedelta, older_than: timedelta | None
    ) -> _RetentionLimits:
        # Announcements are in milliseconds, and all comparisons must use the same time.
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        begun = [
            min(intent.started_at, intent.heartbeat) - STORE_CLOCK_TOLERANCE
            for intent in IntentLog(manifest.objects).list()
        ]
        floor = now - age_floor
        files = min([floor, *begun])
        files = files.replace(microsecond=files.microsecond // 1000 * 1000)
        requested = None if older_than is None else now - min(older_than, now - _EPOCH)
        return cls(now, floor, min(floor, requested or floor), requested, files)


def _mark_and_sweep(
    manifest: Manifest,
    report: CleanupReport,
    limits: _RetentionLimits,
    lease: CleanupLease | None,
) -> None:
    """Remove files under a lease or, without one, only report."""
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

    `heads` must exist; other versions may have been removed by an earlier, stricter cleanup.
    `requested` are kept at any age. `newest` is the time of the last publish.
    """

    newest: datetime
    versions: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    heads: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    requested: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    keys: dict[str, str] = field(default_factory=dict)


def _mark(manifest: Manifest, keep: int | None, limits: _RetentionLimits) -> _RetainedVersions:
    marks = _RetainedVersions(limits.floor)
    heads, others = _branch_states(manifest)
    for state in (*heads, *others):
        # A power failure must not bring back a state whose files are removed.
        state.lineage.sync(state.version)
    history = read_history([*heads, *others])
    paths = dataset_paths([*heads, *others], marks.keys)
    published = _publish_times(manifest, [*heads, *others], history.commits)
    for state in heads:
        retained = dict(_retained_commits(history.commits, state, keep, limits, published))
        for datasets in datasets_at_commits(history, retained):
            add_versions(marks.versions, datasets, paths)
        for datasets in datasets_at_commits(
            history, [id_ for id_, requested in retained.items() if requested]
        ):
            add_versions(marks.requested, datasets, paths)
        add_versions(marks.heads, state.head.datasets, paths)
    marks.newest = max(published.values(), default=limits.floor)
    tagged = {tag.commit_id for tag in manifest.tags().values()}
    tagged |= proposed_commits(manifest, history.commits)
    for datasets in datasets_at_commits(history, tagged & set(history.commits)):
        add_versions(marks.versions, datasets, paths)
        add_versions(marks.requested, datasets, paths)
    for intent in IntentLog(manifest.objects).list():
        for dataset in intent.staged.datasets:
            marks.versions[dataset.path] |= dataset.versions
            marks.requested[dataset.path] |= dataset.versions
    return marks


def proposed_commits(manifest: Manifest, commits: Mapping[CommitId, CommitRow]) -> set[CommitId]:
    """Return the source heads and the merge bases of open proposals, then and now."""
    found: set[CommitId] = set()
    for record in ProposalLog(manifest).head().open.values():
        found |= {record.head, record.base}
        with suppress(NotFound):
            heads = [manifest.head_state(name)[1].head for name in (record.source, record.target)]
            one, other = (head.commit_id for head in heads)
            if one in commits and other in commits:
                found |= set(find_divergence(commits, one, other).bases)
    return found


def _branch_states(manifest: Manifest) -> tuple[list[LineageState], list[LineageState]]:
    """Return the states of all branches, and those needed only by their history or a tag.

    Heads are read before their ancestors, which therefore cannot be missing.
    """
    branches = {branch.lineage_id for branch in manifest.branches().values()}
    states: dict[str, LineageState] = {}
    for lineage_id in sorted(
        manifest.named_lineages(), key=lambda lineage_id: lineage_id not in branches
    ):
        try:
            states[lineage_id] = manifest.lineage(lineage_id).state()
        except NotFound:
            if lineage_id in manifest.named_lineages():
                raise
            continue  # it was just deleted
    heads = [state for lineage_id, state in states.items() if lineage_id in branches]
    others = [state for lineage_id, state in states.items() if lineage_id not in branches]
    return [*heads, manifest.main.state()], others


def _retained_commits(
    commits: Mapping[CommitId, CommitRow],
    state: LineageState,
    keep: int | None,
    limits: _RetentionLimits,
    published: Mapping[CommitId, datetime],
) -> Iterator[tuple[CommitId, bool]]:
    """Yield the retained commits, and whether they are retained for more than the age floor.

    The head is always retained. The time when a commit was last a head counts, not its creation:
    until then a reader or a new branch may have started from it. If the store has that time, the
    clock of a writer neither extends it nor shortens it below the floor.
    """
    recent: set[CommitId] = set()
    requested: set[CommitId] = set()
    for index, commit in enumerate(newest_first(commits, state.head.commit_id)):
        stored = published.get(commit.id, commit.created_at)
        since = min(commit.created_at, stored)
        if since >= limits.horizon or stored > limits.floor:
            recent |= {commit.id, *commit.parents}
        if limits.requested is not None and since >= limits.requested:
            requested |= {commit.id, *commit.parents}
        if index == 0 or (keep is not None and index < keep) or commit.id in requested:
            yield commit.id, True
        elif commit.id in recent:
            yield commit.id, False


def _publish_times(
    manifest: Manifest, states: Iterable[LineageState], commits: Mapping[CommitId, CommitRow]
) -> dict[CommitId, datetime]:
    """Return when commits were published by the store's clock, as far as versions exist."""
    times: dict[tuple[str | None, int], datetime] = {}
    for lineage in (state.lineage for state in states):
        for info in manifest.objects.list(f"{lineage.path}/_versions"):
            version = parse_version_file(info.path.removeprefix(f"{lineage.path}/"))
            if version is not None:
                times[lineage.lineage_id, version] = info.modified
    versions = (
        (id_, (row.lineage_id, row.commit.manifest_version)) for id_, row in commits.items()
    )
    return {id_: times[version] for id_, version in versions if version in times}


# --- sweep -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _RetainedFiles:
    """Files and folders that versions of a dataset need, relative to its path."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def add(self, handle: Any) -> None:  # noqa: ANN401 - a Lance handle
        self.files |= referenced_files(handle) | {checksum_file(int(handle.version))}
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
    """Add a dataset to the report; return its files that no retained version refers to."""
    dataset = DatasetCleanup(path, marks.keys.get(path, path))
    report.datasets.append(dataset)
    listed = list(manifest.objects.list(path))
    try:
        needed, requested = _required_files(manifest, path, marks, listed)
    except (GraphCorrupt, NotFound, StorageUnavailable) as error:
        dataset.error = error.message
        return []
    removable, recent = list[ObjectInfo](), list[ObjectInfo]()
    for info in listed:
        below = info.path.removeprefix(f"{path}/")
        if info.modified < before and not needed.has(below):
            removable.append(info)
        elif not requested.has(below):
            recent.append(info)
    dataset.bytes_removed = sum(info.size for info in removable)
    dataset.bytes_kept = sum(info.size for info in listed) - dataset.bytes_removed
    dataset.files_removed = len(removable)
    dataset.old_versions_removed = sum(info.path.endswith(".manifest") for info in removable)
    dataset.recent_files = len(recent)
    dataset.recent_bytes = sum(info.size for info in recent)
    if recent:
        last = max(marks.newest, *(info.modified for info in recent)) + report.floor
        report.removable_at = max(last, report.removable_at or last)
    return manifests_first(info.path for info in removable)


def _required_files(
    manifest: Manifest, path: str, marks: _RetainedVersions, listed: Iterable[ObjectInfo]
) -> tuple[_RetainedFiles, _RetainedFiles]:
    """Return the files of retained versions of a dataset, and those of requested versions."""
    stored = {info.path.removeprefix(f"{path}/") for info in listed}
    versions = {v for v in marks.versions[path] if version_file(v) in stored}
    if not marks.heads[path] <= versions:
        raise GraphCorrupt("a version of a branch head is missing: no file is removed")
    needed, requested = _RetainedFiles(), _RetainedFiles()
    # The latest version is for other Lance readers; its files are kept as long as the dataset.
    for version in (*sorted(versions), None) if versions else ():
        try:
            handle = manifest.datasets.open(path, version)
        except NotFound:
            if version is None or version in marks.heads[path]:
                raise
            continue  # it was staged and rolled back
        needed.add(handle)
        if version is None or version in marks.requested[path]:
            requested.add(handle)
    return needed, requested


def _remove(manifest: Manifest, files: Sequence[str], lease: CleanupLease) -> None:
    for start in range(0, len(files), DELETE_BATCH_FILES):
        lease.renew()
        manifest.objects.delete(files[start : start + DELETE_BATCH_FILES])
        manifest.datasets.observe("cleanup: files removed")


def _sweep_lineages(manifest: Manifest, before: datetime, lease: CleanupLease | None) -> int:
    """Remove unreferenced lineages: closed ones, and those that were never registered.

    Only lineages older than the cutoff are removed: no process writes to them any more.
    """
    if lease is not None:
        finish_branch_deletions(manifest)
    if not manifest.location.is_local:
        before = min(before, manifest.objects.now() - MIN_VERSION_AGE_IN_BUCKET)
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
    """Remove temporary files of finished pipeline runs; running ones have newer files."""
    folders = [f"/{name}/" for name in (POSITIONS, IDS, VECTORS, REMOVED, STAGED)]
    files = manifest.objects.list(PIPELINE_RUNS)
    temporary = (info for info in files if any(folder in info.path for folder in folders))
    manifest.objects.delete([info.path for info in temporary if info.modified < before])


def _sweep_scratch(manifest: Manifest, before: datetime) -> None:
    """Remove scratch rows of abandoned jobs."""
    for folder in manifest.objects.folders(SCRATCH):
        files = list(manifest.objects.list(f"{SCRATCH}/{folder}"))
        if all(info.modified < before for info in files):
            manifest.objects.delete([info.path for info in files])
            manifest.datasets.observe("cleanup: scratch removed")


def _remove_old_manifests(manifest: Manifest, horizon: datetime) -> None:
    """Drop old manifest versions; commits stay readable through their history rows."""
    for lineage_id in (None, PROPOSALS, *sorted(manifest.named_lineages())):
        with suppress(NotFound):  # it was just deleted, or there never was a proposal
            if lineage_id == PROPOSALS:
                manifest.lineage(PROPOSALS).state()
            remove_old_versions(manifest.lineage(lineage_id), horizon)
            manifest.datasets.observe("cleanup: manifest cleaned")
