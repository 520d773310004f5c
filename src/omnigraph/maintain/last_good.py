"""Find the newest whole version of every lineage, and what returning to it would lose.

A version is whole if its own files are, if its rows match the checksum of its head, if its history
is complete, and if the files of every dataset version of its head are whole. Indexes do not count:
they are derived. The newest version of a graph need not be readable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import (
    NewManifestRow,
    checksum_rows,
    read_branch,
    read_commit,
    read_table,
    read_tag,
    update_row_checksum,
)
from omnigraph.commit.model import MAIN, Branch, Commit, Head, Tag
from omnigraph.errors import OmniError
from omnigraph.maintain.last_good_model import LineagePlan
from omnigraph.maintain.lineage_files import (
    LineageFiles,
    Row,
    StoredRows,
    raise_unless_damage,
    rows_by_key,
)
from omnigraph.maintain.recorded_checksums import RecordedChecksums, checksums_by_path
from omnigraph.maintain.verify import row_count_problem
from omnigraph.maintain.version_files import ProgressCallback, VersionFileChecker
from omnigraph.storage.checksums import clear_checked_files
from omnigraph.storage.layout import PROPOSALS
from omnigraph.storage.scan import count_ids

_NAME_KINDS = {"graph_branch": "branch", "graph_tag": "tag"}


@dataclass(frozen=True, slots=True)
class _Content:
    """The rows and the head of a lineage at some version."""

    head: Head
    rows: Mapping[str, Row]

    def names(self) -> set[str]:
        """Return branches and tags as `branch NAME` and `tag NAME`."""
        return set(_names(self.rows.values()))

    def commit_ids(self) -> set[str]:
        """Return the IDs of the commits that have a row."""
        commits = (read_commit(row) for row in _of_kind(self.rows.values(), "graph_commit"))
        return {row.commit.id for row in commits if not row.aborted}


@dataclass(slots=True)
class _Examined:
    """The outcome for one version: its content if its rows are intact, and the first problem."""

    version: int
    state: LineageState | None = None
    content: _Content | None = None
    problem: str | None = None


class LastGoodSearch:
    """Plans the return of a graph to its last good versions.

    `examining` is called before a version of a lineage, by path and number, is opened; `fatal` are
    those that must not be opened again.
    """

    def __init__(
        self,
        manifest: Manifest,
        note: ProgressCallback,
        examining: Callable[[str, int], None],
        fatal: Collection[tuple[str, int]] = (),
    ) -> None:
        self._manifest = manifest
        self._examining = examining
        self._fatal = set(fatal)
        self._plans: dict[str | None, LineagePlan] = {}
        self._kept: dict[str | None, _Content] = {}
        self._datasets = _DatasetProblems(manifest, note)

    def run(self) -> list[LineagePlan]:
        """Return the plans of all lineages that branches and tags need, main first."""
        clear_checked_files()
        self._plan(MAIN, None, ())
        if None in self._kept:
            names = list(_registered(self._kept[None].rows.values()))
            origins = {name.lineage_id: name.ancestor_lineages for name in names}
            for name in sorted(names, key=lambda name: isinstance(name, Tag)):
                self._plan_named(name, origins)
            lost = self._tags_of_lost_commits(names)
            main = self._plans[None]
            self._plans[None] = replace(main, lost_names=(*main.lost_names, *lost))
        self._plan("(proposals)", PROPOSALS, ())
        kept = set[str]().union(*(content.commit_ids() for content in self._kept.values()))
        return [_with_merged_commits(plan, kept) for plan in self._plans.values()]

    def _plan_named(
        self, name: Branch | Tag, origins: Mapping[str | None, tuple[str, ...]]
    ) -> None:
        ancestors = [id_ for id_ in reversed(name.ancestor_lineages) if id_ not in self._plans]
        for lineage_id in ancestors:
            self._plan(f"(history of {name.name})", lineage_id, origins.get(lineage_id, ()))
        if name.lineage_id in self._plans:
            return
        if isinstance(name, Tag):
            self._plan(f"(history of {name.name})", name.lineage_id, name.ancestor_lineages)
        else:
            self._plan(name.name, name.lineage_id, name.ancestor_lineages)

    def _tags_of_lost_commits(self, names: Iterable[Branch | Tag]) -> list[str]:
        lost = {commit.id for plan in self._plans.values() for commit in plan.lost_commits}
        return sorted(
            f"tag {name.name}" for name in names if isinstance(name, Tag) and name.commit_id in lost
        )

    # --- one lineage -----------------------------------------------------------------------------

    def _plan(self, branch: str, lineage_id: str | None, ancestors: Sequence[str]) -> None:
        files = LineageFiles(self._manifest, lineage_id)
        if not files.newest and branch.startswith("("):
            return  # removed with its branch; tags that need it are reported by verify
        inherited = [self._kept[id_] for id_ in (*ancestors, None) if id_ in self._kept]
        if lineage_id is None:
            inherited = []
        examined: list[_Examined] = []
        for version in sorted(files.versions, reverse=True):
            examined.append(self._examine(files, version, inherited))
            if examined[-1].problem is None:
                break
        self._plans[lineage_id] = self._conclude(branch, files, examined, inherited)

    def _conclude(
        self,
        branch: str,
        files: LineageFiles,
        examined: Sequence[_Examined],
        inherited: Sequence[_Content],
    ) -> LineagePlan:
        good = examined[-1] if examined and examined[-1].problem is None else None
        plan = LineagePlan(
            branch=branch,
            lineage_id=files.lineage_id,
            newest=files.newest,
            last_good=None if good is None else good.version,
            damage=tuple(_describe(files, examined)),
        )
        content = None if good is None else good.content
        if good is not None and content is not None:
            self._kept[files.lineage_id] = content
        if plan.is_whole:
            return plan
        later = files.written_after(None if good is None else good.state)
        if content is not None and plan.last_good is not None:
            steps, content = self._republish(plan.last_good, content, later, inherited)
            self._kept[files.lineage_id] = content
            plan = replace(plan, republished=tuple(steps))
        newest = next((e for e in examined if e.content is not None and e is not good), None)
        plan = _with_losses(plan, content, later, newest)
        lost = self._commits_of_lost_branches(plan.lost_names, later)
        return replace(plan, lost_commits=(*plan.lost_commits, *lost))

    def _commits_of_lost_branches(
        self, names: Collection[str], later: Iterable[StoredRows]
    ) -> Iterator[Commit]:
        """Yield the commits of branches whose names are lost, the newest of each first."""
        branches: dict[str, Branch] = {}
        for named in (named for stored in later for named in _registered(stored.rows)):
            if isinstance(named, Branch) and f"branch {named.name}" in names:
                branches[named.name] = named
        for _, branch in sorted(branches.items()):
            stored = LineageFiles(self._manifest, branch.lineage_id).written_after(None)
            commits = {c.id: c for rows in stored for c in rows.commits(branch.lineage_id)}
            yield from sorted(commits.values(), key=lambda c: c.created_at, reverse=True)

    def _examine(
        self, files: LineageFiles, version: int, inherited: Sequence[_Content]
    ) -> _Examined:
        self._examining(files.path, version)
        outcome = _Examined(version)
        if (files.path, version) in self._fatal:
            outcome.problem = "reading it ends the process"
            return outcome
        try:
            state = self._manifest.lineage(files.lineage_id).open_version(version)
            rows = [row.row for row in state.rows("object_type <> 'graph_head'")]
            stated = state.head.row_checksum
            if stated is not None and checksum_rows(rows) != stated:
                outcome.problem = "its rows do not match the checksum of the head"
                return outcome
            content = _Content(state.head, rows_by_key(rows))
            outcome.state, outcome.content = state, content
            outcome.problem = self._problem(content, inherited)
        except OmniError as error:
            raise_unless_damage(error, self._manifest.location)
            outcome.problem = error.message.partition("; ")[0]
        return outcome

    def _problem(self, content: _Content, inherited: Sequence[_Content]) -> str | None:
        """Return the first problem of the history or of the datasets of a head."""
        if not content.head.commit_id:
            return None  # the events of proposals, which have neither
        rows = content.rows.values()
        known = content.commit_ids().union(*(other.commit_ids() for other in inherited))
        commits = (read_commit(row) for row in _of_kind(rows, "graph_commit"))
        needed = {parent for row in commits for parent in row.commit.parents}
        missing = {content.head.commit_id, *needed} - known
        if missing:
            return f"commit {min(missing)} is missing from the history"
        if f"schema:{content.head.schema_hash}" not in content.rows:
            return f"accepted schema {content.head.schema_hash} is missing"
        if content.head.closed:
            return None
        held = [*rows, *(row for other in inherited for row in other.rows.values())]
        return self._datasets.first(content.head, held)

    def _republish(
        self,
        version: int,
        content: _Content,
        later: Iterable[StoredRows],
        inherited: Sequence[_Content],
    ) -> tuple[list[tuple[int, str]], _Content]:
        """Return the versions after a good one whose rows are intact and provably complete."""
        by_version: dict[int, list[StoredRows]] = defaultdict(list)
        for stored in later:
            if stored.head is not None:
                by_version[stored.head[0]].append(stored)
        steps: list[tuple[int, str]] = []
        while len(by_version[version + 1]) == 1:
            version += 1
            [stored] = by_version[version]
            changed = apply_stored_rows(content, stored)
            if changed is None or self._problem(changed, inherited) is not None:
                break
            content = changed
            steps.append((version, stored.file))
        return steps, content


def apply_stored_rows(content: _Content, stored: StoredRows) -> _Content | None:
    """Return the content after a swap, by its data file; None if that is not provable.

    Rows that exist already were only moved, and rows with a known key replace the known ones. The
    checksum of the new head proves that nothing else was removed.
    """
    assert stored.head is not None, "the caller chose a file with a head"
    before, head = content.head.row_checksum, stored.head[1]
    if before is None or head.row_checksum is None:
        return None
    new, stale = new_and_stale_rows(content.rows, stored.rows)
    written = [NewManifestRow(**row) for row in new.values()]
    if update_row_checksum(before, written, stale) != head.row_checksum:
        return None
    return _Content(head, {**content.rows, **new})


def new_and_stale_rows(
    rows: Mapping[str, Row], written: Iterable[Row]
) -> tuple[dict[str, Row], list[Row]]:
    """Return the rows of a data file that rows lack, and the rows that they replace."""
    new = {key: row for key, row in rows_by_key(written).items() if rows.get(key) != row}
    return new, [rows[key] for key in new if key in rows]


class _DatasetProblems:
    """The problems of dataset versions, each checked once."""

    def __init__(self, manifest: Manifest, note: ProgressCallback) -> None:
        self._manifest = manifest
        self._by_path: dict[str, dict[str, str]] = defaultdict(dict)
        checksums = RecordedChecksums(manifest, self._by_path)
        self._checker = VersionFileChecker(manifest, checksums, note, derived=False)
        self._stored: dict[str, set[str]] = {}
        self._checked: dict[tuple[str, int], str | None] = {}

    def first(self, head: Head, rows: Sequence[Row]) -> str | None:
        """Return the problem of the first damaged dataset of a head, or None."""
        tables = (read_table(row) for row in _of_kind(rows, "table"))
        paths = {identity: path for identity, path, _ in tables}
        recorded = checksums_by_path(_of_kind(rows, "table_version"), paths)
        for path, checksums in recorded.items():
            self._by_path[path] |= checksums
        for _, entry in sorted(head.datasets.items()):
            path_of = paths.get(entry.key)
            if path_of is None:
                return f"dataset {entry.type_id:016x} is not registered"
            key = (path_of, entry.physical)
            if key not in self._checked:
                expected = entry.rows + entry.excluded
                self._checked[key] = self._problem(path_of, entry.physical, expected)
            problem = self._checked[key]
            if problem is not None:
                return f"{path_of} version {entry.version} {problem}"
        return None

    def _problem(self, path: str, physical: int, expected: int) -> str | None:
        if path not in self._stored:
            listed = self._manifest.objects.list(path)
            self._stored[path] = {info.path.removeprefix(f"{path}/") for info in listed}
        problem = self._checker.problem(path, physical, self._stored[path])
        if problem is None:
            counted = count_ids(self._manifest.datasets.open(path, physical))
            problem = row_count_problem(expected, *counted)
        return problem


# --- what is lost --------------------------------------------------------------------------------


def _with_merged_commits(plan: LineagePlan, kept: Collection[str]) -> LineagePlan:
    """Add to a plan which of its lost commits another lineage keeps."""
    merged = (commit.id for commit in plan.lost_commits if commit.id in kept)
    return replace(plan, merged_commits=tuple(merged))


def _with_losses(
    plan: LineagePlan,
    content: _Content | None,
    later: Sequence[StoredRows],
    newest: _Examined | None,
) -> LineagePlan:
    """Add to a plan what is not kept of the later versions."""
    kept = set() if content is None else content.commit_ids()
    found: dict[str, Commit] = {}
    readable: set[int] = set()
    for stored in later:
        commits = list(stored.commits(plan.lineage_id))
        found |= {commit.id: commit for commit in commits if commit.id not in kept}
        readable |= {commit.manifest_version for commit in commits}
        readable |= {stored.head[0]} if stored.head is not None else set()
    complete = newest.version if newest is not None else 0
    names = set(_names(row for stored in later for row in stored.rows))
    if newest is not None and newest.content is not None and newest.version == plan.newest:
        names = newest.content.names()
    names -= set() if content is None else content.names()
    lost = range(max(plan.kept, complete) + 1, plan.newest + 1)
    return replace(
        plan,
        lost_commits=tuple(
            sorted(found.values(), key=lambda c: (c.manifest_version, c.created_at), reverse=True)
        ),
        lost_names=tuple(sorted(names)),
        unreadable_versions=sum(version not in readable for version in lost),
    )


def _describe(files: LineageFiles, examined: Sequence[_Examined]) -> Iterator[str]:
    newest = max(files.versions, default=0)
    if files.newest > newest:
        yield f"version {files.newest}: its file is missing"
    for outcome in examined:
        if outcome.problem is not None:
            yield f"version {outcome.version}: {outcome.problem}"


def _registered(rows: Iterable[Row]) -> Iterator[Branch | Tag]:
    """Yield the branches and tags of rows of main."""
    for row in rows:
        if row["object_type"] == "graph_branch":
            branch = read_branch(row)
            if not branch.deleting:
                yield branch
        elif row["object_type"] == "graph_tag":
            tag = read_tag(row)
            if tag.lineage_id is not None or tag.ancestor_lineages:
                yield tag


def _names(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        kind = _NAME_KINDS.get(row["object_type"])
        if kind is not None:
            yield f"{kind} {str(row['object_id']).partition(':')[2]}"


def _of_kind(rows: Iterable[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["object_type"] == kind]
