"""Compare every file of a graph with its recorded checksum, and decode files that have none.

Checked are the rows of every lineage, and every version of a commit in the history that no cleanup
may have removed. Files that no version refers to are not checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from omnigraph.commit.history import CommitHistory, dataset_paths, datasets_at_commits, read_history
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import checksum_rows
from omnigraph.commit.model import CommitId, DatasetEntry
from omnigraph.commit.proposal_log import ProposalLog
from omnigraph.commit.recovery import read_audit
from omnigraph.commit.staged_commit import commit_id_time
from omnigraph.errors import GraphCorrupt, OmniError
from omnigraph.maintain.damaged_files import DamagedFile, DamageReader
from omnigraph.maintain.recorded_checksums import RecordedChecksums, lineage_states
from omnigraph.maintain.verify import (
    IntegrityProblem,
    LocalVersionChecker,
    VerifyReport,
    verify,
)
from omnigraph.maintain.version_files import ProgressCallback, VersionFileChecker
from omnigraph.query.text_index_files import TextIndexFiles
from omnigraph.query.topology_files import TopologyFiles
from omnigraph.storage.layout import checksum_file, version_file
from omnigraph.storage.version_checksums import read_version_checksums

_MAX_LISTED = 10


@dataclass(slots=True)
class _DatasetVersions:
    """The versions of one dataset in the history, with the oldest commit of each."""

    path: str
    shown: dict[int, tuple[int, CommitId]] = field(default_factory=dict)
    needed: set[int] = field(default_factory=set)


class ChecksumVerifier:
    """Finds damage by checksums; `damaged` are versions that Lance must not read."""

    def __init__(self, manifest: Manifest, note: ProgressCallback) -> None:
        self._manifest = manifest
        self.note = note
        self._checksums = RecordedChecksums(manifest)
        self._checker = VersionFileChecker(manifest, self._checksums, note)
        self.damaged: set[tuple[str, int]] = set()

    def run(self, report: VerifyReport) -> None:
        """Add the problems to a report."""
        self.note("manifest")
        states: list[LineageState] = []
        for state in lineage_states(self._manifest):
            try:
                report.problems += self._check_rows(state)
                states.append(state)
            except GraphCorrupt as error:  # of a branch: everything else is compared
                if state.lineage is self._manifest.main:
                    raise
                report.problems.append(IntegrityProblem(state.lineage.path, error.message))
        with suppress(OmniError):  # `verify` reports proposals that cannot be read
            proposals = ProposalLog(self._manifest).state()
            if proposals is not None:
                report.problems += self._check_rows(proposals)
        for dataset in self._datasets(states):
            self.note(dataset.path)
            report.problems += self._check_dataset(dataset)
        report.problems += self._check_beside()
        report.files = self._checksums.compared
        report.unsummed = len(self._checker.without_checksum)

    def describe_damage(self) -> Iterator[DamagedFile]:
        """Yield what each damaged file of a dataset affects."""
        if self._checker.damaged:
            reader = DamageReader(self._manifest, self.damaged)
            for (path, name), versions in sorted(self._checker.damaged.items()):
                yield reader.describe(path, name, versions)

    # --- rows of lineages ------------------------------------------------------------------------

    def _check_rows(self, state: LineageState) -> Iterator[IntegrityProblem]:
        self.note(state.lineage.path)
        stated = state.head.row_checksum
        rows = state.rows("object_type <> 'graph_head'")
        if stated is None:
            message = "its rows have no checksum: an older release wrote them; `optimize` adds one"
            yield IntegrityProblem(state.lineage.path, message, harmless=True)
        elif checksum_rows(row.row for row in rows) != stated:
            message = f"the rows do not match the checksum of the head ({stated.count} rows)"
            yield IntegrityProblem(
                state.lineage.path, f"{message}: a row is missing, changed or restored"
            )

    # --- versions of datasets --------------------------------------------------------------------

    def _datasets(self, states: Sequence[LineageState]) -> list[_DatasetVersions]:
        paths = dataset_paths(states)
        history = read_history(states)
        versions: dict[str, _DatasetVersions] = {}
        horizon = _removal_horizon(history, states)
        for commit_id, entries in sorted(history.published.items()):
            for entry in entries.values():
                if entry.key in paths:
                    path = paths[entry.key]
                    dataset = versions.setdefault(path, _DatasetVersions(path))
                    dataset.shown.setdefault(entry.physical, (entry.version, commit_id))
                    if commit_id_time(commit_id) > horizon:
                        dataset.needed.add(entry.physical)
        tagged = {tag.commit_id for tag in self._manifest.tags().values()} & set(history.commits)
        shown = [state.head.datasets for state in states if not state.head.closed]
        shown += [dict(datasets) for datasets in datasets_at_commits(history, tagged)]
        for entry in (entry for datasets in shown for entry in datasets.values()):
            if entry.key in paths and paths[entry.key] in versions:
                versions[paths[entry.key]].needed.add(entry.physical)
        return [versions[path] for path in sorted(versions)]

    def _check_dataset(self, dataset: _DatasetVersions) -> Iterator[IntegrityProblem]:
        """Report every damaged file once, with the versions that need it."""
        path = dataset.path
        stored = {info.path.removeprefix(f"{path}/") for info in self._manifest.objects.list(path)}
        broken: dict[str, list[int]] = defaultdict(list)
        for physical, (version, commit_id) in dataset.shown.items():
            name = version_file(physical)
            if name not in stored and physical not in dataset.needed:
                continue  # removed by a cleanup or by a hard drop
            self.note(f"{path}, version {version}")
            problem = self._checker.problem(path, physical, stored)
            if problem is not None:
                self.damaged.add((path, physical))
                broken[f"{problem} (first shown by commit {commit_id})"].append(version)
            yield from self._check_readers(path, physical, stored)
        for problem, versions in broken.items():
            listed = ", ".join(map(str, sorted(versions)[:_MAX_LISTED]))
            yield IntegrityProblem(path, f"version {listed} {problem}")

    def _check_readers(
        self, path: str, physical: int, stored: set[str]
    ) -> Iterator[IntegrityProblem]:
        """Report checksums for readers that cannot be read; without them nothing is compared."""
        name, location = checksum_file(physical), self._manifest.location
        if name not in stored or not location.is_local:
            return
        if not read_version_checksums(Path(location.child(path)), physical):
            message = f"{name} is damaged: readers do not compare files; it is derived, remove it"
            yield IntegrityProblem(path, message, harmless=True)

    # --- derived files and logs ------------------------------------------------------------------

    def _check_beside(self) -> Iterator[IntegrityProblem]:
        """Check files of adjacencies and of text indexes, and the audit of recoveries."""
        self.note("derived files")
        location = self._manifest.location
        for name, files in (
            ("an adjacency file", TopologyFiles(location, may_write=False)),
            ("a file of a text index", TextIndexFiles(location, may_write=False)),
        ):
            for folder in files.damaged():
                message = f"{name} is damaged: remove this folder, it is rebuilt"
                yield IntegrityProblem(folder, message)
        self.note("the log of recovery")
        try:
            read_audit(self._manifest)
        except OmniError as error:
            yield IntegrityProblem("the log of recovery", error.message)


def _removal_horizon(history: CommitHistory, states: Iterable[LineageState]) -> datetime:
    """Return the time before which versions of past commits may have been removed.

    Cleanups remove them, and so do schema changes that drop data permanently.
    """
    cleanup_cutoff = max((state.head.cleanup_cutoff for state in states), default=0)
    times = [datetime.fromtimestamp(cleanup_cutoff / 1000).astimezone()]
    for row in history.commits.values():
        parent = history.commits.get(row.commit.parents[0]) if row.commit.parents else None
        if parent is not None and parent.commit.schema_hash != row.commit.schema_hash:
            times.append(row.commit.created_at)
    return max(times)


def verify_deep(
    manifest: Manifest, deep: ChecksumVerifier, report: VerifyReport, *, plain: bool = True
) -> VerifyReport:
    """Compare checksums; then, unless `plain` is false, verify versions that are not damaged."""
    try:
        deep.run(report)
    except OmniError as error:
        report.problems.append(IntegrityProblem("manifest", error.message))
    if plain:
        checker = LocalVersionChecker(manifest)

        def check(versions: Sequence[tuple[str, DatasetEntry]]) -> list[str | None]:
            problems: list[str | None] = []
            for path, entry in versions:
                deep.note(path)
                damaged = (path, entry.physical) in deep.damaged
                problems += [None] if damaged else checker([(path, entry)])
            return problems

        verify(manifest, check, report)
    return report
