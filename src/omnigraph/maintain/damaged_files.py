"""Describe what a damaged file of a dataset affects, and what history can restore.

The rows of a data file belong to one fragment. Their IDs are read from the file that holds them, if
it can be decoded, and count only if something else proves them: the footprint of the commit that
wrote the file, or another intact version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.commit.footprint import Footprint, Requirements, hash_key
from omnigraph.commit.history import CommitHistory, dataset_paths, read_history
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import FOOTPRINT, commit_key, read_checksums, read_version
from omnigraph.commit.model import MAIN, CommitId, DatasetEntry
from omnigraph.errors import NEXT_STEP, OmniError
from omnigraph.maintain.recorded_checksums import lineage_states
from omnigraph.storage.layout import INDEX_FOLDER
from omnigraph.storage.row_lookup import sql_text
from omnigraph.storage.scan import read_fragment_ids

MAX_VERSIONS = 64
"""Number of other versions that are searched for the entities of a damaged file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedFile:
    """A damaged or missing file of a type.

    `commit_id` is the commit that wrote it, `branches` are those whose newest state needs it, and
    `commits` is the number of published versions that do. `rows` is the number of entities whose
    current row is in it, None if that cannot be read; `ids` are those of them that are known.
    `restorable` are IDs that another intact version has, by the commit that published it.
    """

    type_key: str
    file: str
    derived: bool
    commit_id: str | None
    branches: tuple[str, ...]
    commits: int
    rows: int | None
    ids: tuple[str, ...]
    restorable: Mapping[str, tuple[str, ...]]

    @property
    def next_step(self) -> str:
        """What to do about it."""
        if self.derived:
            return "an index is derived: results do not depend on it, and `optimize` replaces it"
        if not self.branches:
            return "only older commits need it: restore it from a backup, or do without them"
        return f"restore it from a backup; {NEXT_STEP.partition(',')[0]}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "type_key": self.type_key,
            "file": self.file,
            "derived": self.derived,
            "graph_commit_id": self.commit_id,
            "branches": list(self.branches),
            "versions": self.commits,
            "rows": self.rows,
            "ids": list(self.ids),
            "restorable": {commit: list(ids) for commit, ids in self.restorable.items()},
            "next_step": self.next_step,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> DamagedFile:
        """Read what `to_json` wrote."""
        return cls(
            type_key=document["type_key"],
            file=document["file"],
            derived=document["derived"],
            commit_id=document["graph_commit_id"],
            branches=tuple(document["branches"]),
            commits=document["versions"],
            rows=document["rows"],
            ids=tuple(document["ids"]),
            restorable={commit: tuple(ids) for commit, ids in document["restorable"].items()},
        )


class DamageReader:
    """Reads what damaged files affect; `damaged` are versions that cannot be trusted."""

    def __init__(self, manifest: Manifest, damaged: set[tuple[str, int]]) -> None:
        self._manifest = manifest
        self._damaged = damaged
        self._states: Sequence[LineageState] = lineage_states(manifest)
        self._keys: dict[str, str] = {}
        self._paths = dataset_paths(self._states, self._keys)
        self._history: CommitHistory = read_history(self._states)
        self._ids_of: dict[tuple[str, int, int], set[str]] = {}

    def describe(self, path: str, name: str, versions: set[int]) -> DamagedFile:
        """Return what a file of a dataset affects, given the versions that refer to it."""
        published = self._published(path)
        needed = [(commit, entry) for commit, entry in published if entry.physical in versions]
        wrote = self._writer(path, name)
        rows, ids = (None, ()) if not needed else self._affected(path, name, needed[0][1], wrote)
        derived = name.startswith(INDEX_FOLDER)
        return DamagedFile(
            type_key=self._keys.get(path, path),
            file=f"{path}/{name}",
            derived=derived,
            commit_id=wrote,
            branches=tuple(self._branches(path, versions)),
            commits=len(needed),
            rows=0 if derived else rows,
            ids=ids,
            restorable=self._restorable(path, ids, published),
        )

    def _published(self, path: str) -> list[tuple[CommitId, DatasetEntry]]:
        """Return the versions of a dataset with the commits that published them, newest first."""
        return [
            (commit_id, entry)
            for commit_id, entries in sorted(self._history.published.items(), reverse=True)
            for entry in entries.values()
            if self._paths.get(entry.key) == path
        ]

    def _writer(self, path: str, name: str) -> str | None:
        """Return the oldest commit that recorded a file."""
        commits = [
            read_version(row.row)[0]
            for state in self._states
            for row in state.rows("object_type = 'table_version'")
            if self._paths.get(read_version(row.row)[1].key) == path
            and name in read_checksums(row.row)
        ]
        return min(commits, default=None)

    def _branches(self, path: str, versions: set[int]) -> Iterator[str]:
        names = {b.lineage_id: b.name for b in self._manifest.branches().values()}
        for state in self._states:
            lineage_id = state.lineage.lineage_id
            shown = (e for key, e in state.head.datasets.items() if self._paths.get(key) == path)
            if not state.head.closed and any(entry.physical in versions for entry in shown):
                yield MAIN if lineage_id is None else names.get(lineage_id, lineage_id)

    # --- entities --------------------------------------------------------------------------------

    def _affected(
        self, path: str, name: str, entry: DatasetEntry, wrote: str | None
    ) -> tuple[int | None, tuple[str, ...]]:
        """Return the number and the proven IDs of the rows of a file in the newest version."""
        if name.startswith("_versions/"):
            return entry.rows, ()
        try:
            handle = self._manifest.datasets.open(path, entry.physical)
            fragment = _fragment_of(handle, name)
            if fragment is None:
                return entry.rows, ()
            rows = int(fragment.physical_rows) - int(fragment.num_deletions)
        except OmniError:
            return None, ()
        try:
            batches = read_fragment_ids(handle, int(fragment.fragment_id))
            ids = [str(id_) for batch in batches for id_ in batch.to_pylist()]
        except OmniError:
            return rows, ()
        return rows, tuple(self._proven(path, ids, entry, wrote))

    def _proven(
        self, path: str, ids: Sequence[str], entry: DatasetEntry, wrote: str | None
    ) -> list[str]:
        """Return the IDs that the footprint of a commit or an intact version contains."""
        footprint = self._footprint(wrote)
        unproven = set(ids)
        if footprint.types is not None and footprint.keys is not None:
            hashes = {id_: frozenset([hash_key(entry.key, "id", id_)]) for id_ in ids}
            unproven = {
                id_ for id_, key in hashes.items() if not footprint.overlaps(Requirements(key))
            }
        for other in self._intact(path):
            unproven = unproven and unproven - self._ids(path, other)
        return [id_ for id_ in ids if id_ not in unproven]

    def _footprint(self, commit_id: str | None) -> Footprint:
        if commit_id is None:
            return Footprint()
        condition = f"object_id = {sql_text(commit_key(commit_id))}"
        for state in self._states:
            for row in state.rows(condition, footprints=True):
                return Footprint.decode(row.row.get(FOOTPRINT))
        return Footprint()

    def _intact(self, path: str) -> list[DatasetEntry]:
        entries = (entry for _, entry in self._published(path))
        return [e for e in entries if (path, e.physical) not in self._damaged][:MAX_VERSIONS]

    def _ids(self, path: str, entry: DatasetEntry) -> set[str]:
        key = (path, entry.physical, entry.excluded)
        if key not in self._ids_of:
            try:
                handle = self._manifest.datasets.at(*key)
                self._ids_of[key] = {
                    str(id_)
                    for fragment in handle.get_fragments()
                    for batch in read_fragment_ids(handle, int(fragment.fragment_id))
                    for id_ in batch.to_pylist()
                }
            except OmniError:
                self._ids_of[key] = set()
        return self._ids_of[key]

    def _restorable(
        self,
        path: str,
        ids: Sequence[str],
        published: Sequence[tuple[CommitId, DatasetEntry]],
    ) -> dict[str, tuple[str, ...]]:
        """Return which of the IDs the newest intact versions have, by their commits."""
        missing, found = set(ids), dict[str, tuple[str, ...]]()
        intact = {entry.physical for entry in self._intact(path)}
        for commit_id, entry in published:
            if not missing or entry.physical not in intact:
                continue
            here = missing & self._ids(path, entry)
            if here:
                found[commit_id] = tuple(sorted(here))
                missing -= here
        return found


def _fragment_of(handle: Any, name: str) -> Any:  # noqa: ANN401 - Lance
    """Return the fragment of a data, blob or deletion file, or None."""
    stem = name.removeprefix("data/").partition("/")[0].removesuffix(".lance")
    for fragment in handle.get_fragments():
        files: list[Any] = fragment.data_files()
        if any(file.path.removesuffix(".lance") == stem for file in files):
            return fragment
        if fragment.deletion_file() == name:
            return fragment
    return None
