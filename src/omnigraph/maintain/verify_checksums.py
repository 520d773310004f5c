"""Compare every file of a graph with its recorded checksum, and decode files that have none.

Checked are the rows of every lineage, and every version of a commit in the history that no cleanup
may have removed. Files that no version refers to are not checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from omnigraph.commit.history import CommitHistory, dataset_paths, datasets_at_commits, read_history
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import checksum_rows
from omnigraph.commit.model import CommitId, DatasetEntry
from omnigraph.commit.recovery import read_audit
from omnigraph.commit.staged_commit import commit_id_time
from omnigraph.errors import OmniError
from omnigraph.maintain.recorded_checksums import RecordedChecksums, lineage_states
from omnigraph.maintain.verify import (
    IntegrityProblem,
    LocalVersionChecker,
    VerifyReport,
    missing_files_problem,
    unreadable_problem,
    verify,
)
from omnigraph.query.topology_files import TopologyFiles
from omnigraph.storage.checksums import version_files
from omnigraph.storage.layout import referenced_files, referenced_folders, version_file
from omnigraph.storage.scan import decode_rows

_MAX_LISTED = 10
ProgressCallback = Callable[[str], None]
"""Called with the name of the file or dataset that is read next."""


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
        self._note = note
        self._checksums = RecordedChecksums(manifest)
        self._decoded: set[str] = set()
        self._uncovered: set[str] = set()
        self.damaged: set[tuple[str, int]] = set()

    def run(self, report: VerifyReport) -> None:
        """Add the problems to a report."""
        self._note("manifest")
        states = lineage_states(self._manifest)
        for state in states:
            report.problems += self._check_rows(state)
        for dataset in self._datasets(states):
            self._note(dataset.path)
            report.problems += self._check_dataset(dataset)
        report.problems += self._check_beside()
        report.files = self._checksums.compared
        report.unsummed = len(self._uncovered)

    # --- rows of lineages ------------------------------------------------------------------------

    def _check_rows(self, state: LineageState) -> Iterator[IntegrityProblem]:
        self._note(state.lineage.path)
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
            self._note(f"{path}, version {version}")
            problem = self._check_version(path, physical, stored)
            if problem is not None:
                self.damaged.add((path, physical))
                broken[f"{problem} (first shown by commit {commit_id})"].append(version)
        for problem, versions in broken.items():
            listed = ", ".join(map(str, sorted(versions)[:_MAX_LISTED]))
            yield IntegrityProblem(path, f"version {listed} {problem}")

    def _check_version(self, path: str, physical: int, stored: set[str]) -> str | None:
        name = version_file(physical)
        if name not in stored:
            return f"is incomplete: {name} is missing"
        damaged = self._checksums.compare(path, [name])
        if damaged is not None:
            return damaged
        try:
            handle = self._manifest.datasets.open(path, physical)
            files, recorded = self._files(path, handle)
            damaged = missing_files_problem(recorded - stored)
            damaged = damaged or self._checksums.compare(path, self._noting(path, files))
            return damaged or self._decode(path, handle, files)
        except OmniError as error:
            return unreadable_problem(error.message)

    def _files(self, path: str, handle: Any) -> tuple[set[str], set[str]]:  # noqa: ANN401 - Lance
        """Return the existing files of a version, and its expected files."""
        folders = tuple(referenced_folders(handle))
        in_folders = {name for name in self._checksums.of(path) if name.startswith(folders)}
        if not self._manifest.location.is_local:
            files = referenced_files(handle)
            return files, files
        return set(version_files(handle)), referenced_files(handle) | in_folders

    def _noting(self, path: str, files: Iterable[str]) -> Iterator[str]:
        for name in files:
            self._note(f"{path}/{name}")
            yield name

    def _decode(self, path: str, handle: Any, files: set[str]) -> str | None:  # noqa: ANN401 - Lance
        """Read every row of fragments with files that have no checksum, once."""
        checksums = self._checksums.of(path) if self._manifest.location.is_local else {}
        unsummed = {name for name in files if name not in checksums}
        self._uncovered |= {f"{path}/{name}" for name in unsummed}
        for fragment in handle.get_fragments():
            data: list[Any] = fragment.data_files()
            names = {f"data/{file.path}" for file in data} & unsummed
            if names - self._decoded:
                for _ in decode_rows(handle, int(fragment.fragment_id)):
                    self._note(f"{path}/{min(names)}")
                self._decoded |= names
        return None

    # --- derived files and logs ------------------------------------------------------------------

    def _check_beside(self) -> Iterator[IntegrityProblem]:
        """Check adjacency files and the audit of recoveries."""
        self._note("_topology")
        for folder in TopologyFiles(self._manifest.location, may_write=False).damaged():
            message = "an adjacency file is damaged: remove this folder, it is rebuilt"
            yield IntegrityProblem(folder, message)
        self._note("the log of recovery")
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
    manifest: Manifest, note: ProgressCallback, report: VerifyReport, *, plain: bool = True
) -> VerifyReport:
    """Compare checksums; then, unless `plain` is false, verify versions that are not damaged."""
    deep = ChecksumVerifier(manifest, note)
    try:
        deep.run(report)
    except OmniError as error:
        report.problems.append(IntegrityProblem("manifest", error.message))
    if plain:
        checker = LocalVersionChecker(manifest)

        def check(versions: Sequence[tuple[str, DatasetEntry]]) -> list[str | None]:
            problems: list[str | None] = []
            for path, entry in versions:
                note(path)
                damaged = (path, entry.physical) in deep.damaged
                problems += [None] if damaged else checker([(path, entry)])
            return problems

        verify(manifest, check, report)
    return report
