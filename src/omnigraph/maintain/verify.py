"""Verify a graph: history matches heads, versions can be opened, row counts agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.commit_log import (
    DatasetEntries,
    ancestors,
    datasets_at_commit,
    first_parents,
)
from omnigraph.commit.history import (
    dataset_paths,
    find_commit,
    read_history,
)
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import CommitRow
from omnigraph.commit.model import MAIN, CommitId, DatasetEntry, Head, Tag
from omnigraph.commit.proposal_log import ProposalLog, find_event_problems
from omnigraph.errors import GraphCorrupt, NotFound, OmniError
from omnigraph.maintain.damaged_files import DamagedFile
from omnigraph.maintain.recorded_checksums import RecordedChecksums
from omnigraph.maintain.retention import SETTINGS, read_retention
from omnigraph.notebook.display import ReportDisplay
from omnigraph.storage.checksums import clear_checked_files
from omnigraph.storage.layout import PROPOSALS, referenced_files, version_file
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.scan import count_ids
from omnigraph.storage.small_fragments import clear_cached_columns


@dataclass(frozen=True, slots=True)
class IntegrityProblem:
    """A violated invariant, or (`harmless`) a leftover."""

    where: str
    message: str
    harmless: bool = False


@dataclass(slots=True)
class VerifyReport(ReportDisplay):
    """The result of `verify`."""

    branches: int = 0
    commits: int = 0
    versions: int = 0
    files: int | None = None
    """Files that were compared with their checksums; None if that was not requested."""
    unsummed: int = 0
    """Files without a checksum, which were only decoded."""
    problems: list[IntegrityProblem] = field(default_factory=list)
    damaged_files: list[DamagedFile] = field(default_factory=list)
    """What damaged files of types affect; found by a deep verify only."""

    @property
    def ok(self) -> bool:
        """Whether every problem is harmless."""
        return all(problem.harmless for problem in self.problems)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        damaged = [file.to_json() for file in self.damaged_files]
        deep = {"files": self.files, "files_without_checksum": self.unsummed}
        return {
            "ok": self.ok,
            "branches": self.branches,
            "commits": self.commits,
            "versions": self.versions,
            **({} if self.files is None else deep),
            "problems": [asdict(problem) for problem in self.problems],
            **({"damaged_files": damaged} if damaged else {}),
        }


VersionChecker: TypeAlias = Callable[[Sequence[tuple[str, DatasetEntry]]], Sequence[str | None]]
"""Checks dataset versions, given by path; returns the problem of each, or None."""


def verify(
    manifest: Manifest, checker: VersionChecker | None = None, report: VerifyReport | None = None
) -> VerifyReport:
    """Check every branch, every commit and every dataset version of a head or tag.

    `checker` checks versions, by default in this process. Problems are added to `report`.
    """
    report = report or VerifyReport()
    clear_checked_files()
    clear_cached_columns()
    try:
        _verify(
            manifest, report, _CheckedVersions(manifest, checker or LocalVersionChecker(manifest))
        )
    except OmniError as error:
        report.problems.append(IntegrityProblem("manifest", error.message))
    return report


def _verify(manifest: Manifest, report: VerifyReport, versions: _CheckedVersions) -> None:
    names = {MAIN: None, **{b.name: b.lineage_id for b in manifest.branches().values()}}
    for name, lineage_id in sorted(names.items()):
        report.branches += 1
        problems: list[IntegrityProblem] = []
        try:
            state = manifest.lineage(lineage_id).state()
            problems += versions.check(f"branch {name}", state, state.head.datasets)
            problems += _check_lineage(manifest, name, state, report)
        except OmniError as error:
            problems.append(IntegrityProblem(f"branch {name}", error.message))
        # A branch that was deleted meanwhile may be incomplete.
        if problems and (lineage_id is None or lineage_id in manifest.ref_lineages()):
            report.problems += problems
    for tag in manifest.tags().values():
        problems = list(_check_tag(manifest, tag, versions))
        if problems and manifest.tags().get(tag.name) == tag:
            report.problems += problems
    report.problems += _check_proposals(manifest)
    report.problems += _check_protection(manifest)
    report.problems += _check_settings(manifest)
    report.versions = len(versions.seen)
    report.problems += _find_leftovers(manifest)


def _check_proposals(manifest: Manifest) -> Iterator[IntegrityProblem]:
    """Yield what is wrong with the events of proposals and the head that folds them."""
    try:
        yield from _check_newest(manifest, "proposals", manifest.lineage(PROPOSALS))
        state = ProposalLog(manifest).state()
        for problem in () if state is None else find_event_problems(state):
            yield IntegrityProblem("proposals", problem)
    except OmniError as error:
        yield IntegrityProblem("proposals", error.message)


def _check_settings(manifest: Manifest) -> Iterator[IntegrityProblem]:
    """Yield what is wrong with the stored retention; without one, nothing is removed."""
    try:
        read_retention(manifest.objects)
    except OmniError as error:
        yield IntegrityProblem(SETTINGS, error.message)


def _check_newest(manifest: Manifest, where: str, lineage: Lineage) -> Iterator[IntegrityProblem]:
    """Yield the newest version of a lineage if it is incomplete or missing."""
    torn = manifest.datasets.torn_version(lineage.path)
    hinted = manifest.datasets.hinted_version(lineage.path)
    if torn is not None:
        what = f"manifest version {torn} is incomplete: an older state is used"
        yield IntegrityProblem(where, f"{what}; open the graph for writing to set it aside")
    elif hinted > 0 and hinted > lineage.state().version:
        yield IntegrityProblem(
            where, f"manifest version {hinted} is missing: an older state is used"
        )


def _check_protection(manifest: Manifest) -> Iterator[IntegrityProblem]:
    """Yield branches whose head does not hold the protection that main stores."""
    main = manifest.main.state().head
    for branch in manifest.branches().values():
        with suppress(OmniError):
            head = manifest.lineage(branch.lineage_id).state().head
            if head.protection.get("version", 0) != main.protection.get("version", 0):
                what = "its head does not hold the protection of the graph"
                spreading = bool(main.protection.get("spreading"))
                what += "; opening the graph for writing finishes that" if spreading else ""
                yield IntegrityProblem(f"branch {branch.name}", what, harmless=spreading)


def _check_lineage(
    manifest: Manifest, name: str, state: LineageState, report: VerifyReport
) -> Iterator[IntegrityProblem]:
    where = f"branch {name}"
    head = state.head
    if head.closed:
        what = "its deletion was interrupted; delete it again or create it again"
        yield IntegrityProblem(where, what, harmless=True)
    yield from _check_newest(manifest, where, state.lineage)
    keys = Counter(row.row["object_id"] for row in state.rows("object_type <> 'graph_head'"))
    for key, count in sorted(keys.items()):
        if count > 1:
            yield IntegrityProblem(where, f"manifest row {key} exists {count} times")
    history = read_history(manifest.history_states(state))
    commits = history.commits
    report.commits = max(report.commits, len(commits))
    if head.commit_id not in commits:
        yield IntegrityProblem(where, f"head commit {head.commit_id} is missing")
        return
    for commit_id in sorted(ancestors(commits, head.commit_id) - set(commits)):
        yield IntegrityProblem(where, f"commit {commit_id} is a parent but is missing")
    yield from _check_generations(where, head, commits)
    entries: DatasetEntries = {}
    for commit_id in reversed(list(first_parents(commits, head.commit_id))):
        history.changes.apply(commit_id, entries)
        recorded = commits[commit_id].datasets
        if recorded is not None and {entry.key: entry for entry in recorded} != entries:
            message = f"the datasets that commit {commit_id} records differ from its history"
            yield IntegrityProblem(where, message)
    if entries != dict(head.datasets):
        yield IntegrityProblem(where, "the datasets of the head differ from its history")
    if state.row(f"schema:{head.schema_hash}") is None:
        yield IntegrityProblem(where, f"accepted schema {head.schema_hash} is missing")
        return
    schema, _ = manifest.schema(head.schema_hash, state)
    types = {(t.id, t.incarnation) for t in schema.types if t.incarnation is not None}
    if types != set(head.datasets):
        yield IntegrityProblem(where, "the datasets of the head do not match the accepted schema")


def _check_generations(
    where: str, head: Head, commits: Mapping[CommitId, CommitRow]
) -> Iterator[IntegrityProblem]:
    """Yield commits whose generation is not greater than those of their parents."""
    if head.generation != commits[head.commit_id].generation:
        yield IntegrityProblem(where, "the generation of the head differs from its commit")
    for commit_id, row in sorted(commits.items()):
        parents = (commits[parent] for parent in row.commit.parents if parent in commits)
        if any(parent.generation >= max(row.generation, 1) for parent in parents):
            message = f"the generation of commit {commit_id} is not above those of its parents"
            yield IntegrityProblem(where, message)


def _check_tag(
    manifest: Manifest, tag: Tag, versions: _CheckedVersions
) -> Iterator[IntegrityProblem]:
    where = f"tag {tag.name}"
    try:
        row, state = find_commit(manifest, tag.commit_id)
        datasets = datasets_at_commit(manifest.history_states(state), row)
        yield from versions.check(where, state, datasets)
    except NotFound:
        yield IntegrityProblem(where, "its commit was on a deleted branch", harmless=True)
    except OmniError as error:
        yield IntegrityProblem(where, error.message)


class _CheckedVersions:
    """The dataset versions checked so far, and the problem of each."""

    def __init__(self, manifest: Manifest, checker: VersionChecker) -> None:
        self._manifest = manifest
        self._checker = checker
        self.seen: dict[tuple[str, int], str | None] = {}

    def check(
        self,
        where: str,
        state: LineageState,
        datasets: Mapping[tuple[TypeId, IncarnationId], DatasetEntry],
    ) -> Iterator[IntegrityProblem]:
        """Open every version, check that its files exist and count its rows."""
        paths = dataset_paths(self._manifest.history_states(state))
        path_of = {entry: paths.get(entry.key) for entry in datasets.values()}
        new = [
            (path, entry)
            for entry, path in path_of.items()
            if path is not None and (path, entry.physical) not in self.seen
        ]
        for (checked, entry), problem in zip(new, self._checker(new), strict=True):
            self.seen[checked, entry.physical] = problem
        for entry, path in path_of.items():
            if path is None:
                yield IntegrityProblem(where, f"dataset {entry.type_id:016x} is not registered")
                continue
            problem = self.seen[path, entry.physical]
            if problem is not None:
                yield IntegrityProblem(f"{where}, {path}", f"version {entry.version} {problem}")


class LocalVersionChecker:
    """Checks dataset versions in this process."""

    def __init__(self, manifest: Manifest) -> None:
        self._datasets = manifest.datasets
        self._files = StoredDatasetFiles(manifest.objects)
        self._checksums = RecordedChecksums(manifest)

    def __call__(self, versions: Sequence[tuple[str, DatasetEntry]]) -> list[str | None]:
        """Return the problem of each version, or None."""
        return [self._problem(path, entry) for path, entry in versions]

    def _problem(self, path: str, entry: DatasetEntry) -> str | None:
        try:
            # Lance may allocate any amount of memory for a damaged file.
            damaged = self._checksums.compare(path, [version_file(entry.physical)])
            if damaged is not None:
                return damaged
            handle = self._datasets.open(path, entry.physical)
            files = referenced_files(handle)
            damaged = self._files.missing(path, files)
            damaged = damaged or self._checksums.compare(path, files, small=True)
            return damaged or row_count_problem(entry.rows + entry.excluded, *count_ids(handle))
        except OmniError as error:
            return unreadable_problem(error.message)


class StoredDatasetFiles:
    """The files of datasets, listed once."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._stored: dict[str, set[str]] = {}

    def missing(self, path: str, files: set[str]) -> str | None:
        """Return a problem if files of a version do not exist."""
        missing = files - self._listed(path)
        if missing and self._stored.pop(path):  # they may have been written after the listing
            missing = files - self._listed(path)
        return missing_files_problem(missing)

    def _listed(self, path: str) -> set[str]:
        if path not in self._stored:
            listed = self._objects.list(path)
            self._stored[path] = {info.path.removeprefix(f"{path}/") for info in listed}
        return self._stored[path]


def missing_files_problem(missing: set[str]) -> str | None:
    """Return a problem if files are missing."""
    return f"lacks {len(missing)} of its files, such as {min(missing)}" if missing else None


def row_count_problem(expected: int, rows: int, ids: int) -> str | None:
    """Return a problem if the numbers of rows and of distinct IDs of a version are wrong."""
    if rows != expected:
        return f"has {rows} rows, the manifest says {expected}"
    return None if ids == rows else f"has {rows} rows but only {ids} ids"


def unreadable_problem(message: str) -> str:
    """Return the problem of a version that cannot be read."""
    return f"cannot be read: {message}"


def _find_leftovers(manifest: Manifest) -> Iterator[IntegrityProblem]:
    """Yield unreferenced data; cleanup removes it.

    Proposals that cannot be read, which is a problem of its own, may refer to any lineage.
    """
    try:
        named = manifest.named_lineages()
    except GraphCorrupt:
        named = manifest.stored_lineages()
    for path in _find_unregistered(manifest, named):
        yield IntegrityProblem(path, "no branch refers to this dataset", harmless=True)
    for lineage_id in sorted(manifest.stored_lineages() - named):
        yield IntegrityProblem(
            f"lineage {lineage_id}", "no branch refers to this lineage", harmless=True
        )
    for intent in IntentLog(manifest.objects).list():
        what = f"{intent.staged.operation} on branch {intent.branch} is in progress"
        yield IntegrityProblem(f"intent {intent.id}", what, harmless=True)


def _find_unregistered(manifest: Manifest, named: Iterable[str]) -> list[str]:
    stored = [
        f"{folder}/{name}"
        for folder in ("nodes", "edges")
        for name in manifest.objects.folders(folder)
    ]
    registered: set[str] = set()
    for lineage_id in (None, *named):
        try:
            registered |= set(dataset_paths([manifest.lineage(lineage_id).state()]).values())
        except OmniError:
            return []  # its datasets are not known
    return [path for path in stored if path not in registered]
