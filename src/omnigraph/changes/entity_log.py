"""Find the commits that may have changed one entity, without opening versions of datasets.

Every commit has an origin: the newest commit, itself or an ancestor, that may have changed the
entity. Commits with one origin show the entity alike. Footprints decide what a commit may have
changed; without one, and where the schema changed, that is every entity of the types it published.

A merge into a target that left the entity alone since the merge base shows what its source shows,
so it is read there, however many merges brought it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.commit_log import (
    DATASET_ROWS,
    CommitLog,
    DatasetChanges,
    HistoryPage,
    find_divergence,
)
from omnigraph.commit.footprint import Footprint, Requirements, TypeKey, hash_key
from omnigraph.commit.manifest_rows import FOOTPRINT, CommitRow, commit_key
from omnigraph.commit.model import CommitId, DatasetEntry
from omnigraph.errors import GraphCorrupt


@dataclass(frozen=True, slots=True)
class EntityOrigin:
    """The origin of a commit, None if no commit may have made the entity, and the dataset there."""

    commit_id: CommitId | None = None
    entry: DatasetEntry | None = None


class EntityLog:
    """The commits of a history as far as they matter to one entity; read as far as needed.

    `versions` are, by origin, versions of the dataset that show the entity as the origin left it.
    """

    def __init__(self, log: CommitLog, type_key: TypeKey, id_: str) -> None:
        self.versions: defaultdict[CommitId | None, list[DatasetEntry]] = defaultdict(list)
        self._log = log
        self.type_key = type_key
        changed = frozenset({hash_key(type_key, "id", id_)})
        self._required = Requirements(changed, key_types=frozenset({type_key}))
        self._existence = hash_key(type_key, "exists", id_)
        self._pages = 0
        self._published: dict[CommitId, DatasetEntry | None] = {}
        self._footprints: dict[CommitId, bytes] = {}
        self._origins: dict[CommitId, EntityOrigin] = {}
        self._sources: dict[CommitId, CommitId | None] = {}

    def commit(self, commit_id: CommitId) -> CommitRow:
        """Return a commit; what it published has been read, too."""
        row = self._log.get(commit_id)
        if row is None:
            raise GraphCorrupt(f"commit {commit_id} is missing from the history")
        if not row.generation:
            self._log.read_all()  # older releases wrote the rows of datasets before their commit
        for page in self._log.pages[self._pages :]:
            self._read_page(page)
        self._pages = len(self._log.pages)
        return row

    def origin(self, commit_id: CommitId) -> CommitId | None:
        """Return the newest commit, up to one, that may have changed the entity."""
        stack = [commit_id]
        while stack:
            current = stack[-1]
            if current in self._origins:
                stack.pop()
                continue
            row = self.commit(current)
            changed = self._may_change(row)
            unknown = [p for p in self._deciding(row, changed=changed) if p not in self._origins]
            if unknown:
                stack += unknown
                continue
            origin = self._origins[current] = self._origin_of(row, changed=changed)
            if origin.commit_id is not None and origin.entry is not None:
                self.versions[origin.commit_id].append(origin.entry)
        return self._origins[commit_id].commit_id

    def merged_origin(self, origin: CommitId | None) -> CommitId | None:
        """Return the origin that shows the entity as an origin does, behind merges that took it."""
        current = origin
        while current is not None:
            if current not in self._sources:
                self._sources[current] = self._taken_from(self.commit(current))
            source = self._sources[current]
            if source is None:
                break
            current = self.origin(source)
        return current

    def _taken_from(self, row: CommitRow) -> CommitId | None:
        """Return the source of a merge whose entity is that of its source; None if unclear.

        What the target has as the merge base has it becomes what the source has, whether that
        changed it or not: no conflict, so nothing that a reviewer decided.
        """
        if len(row.commit.parents) < 2:
            return None
        target, source = (self.commit(parent) for parent in row.commit.parents[:2])
        rows = (row, target, source)
        if len({one.commit.schema_hash for one in rows}) > 1 or not all(r.generation for r in rows):
            return None
        bases = find_divergence(self._log, source.commit.id, target.commit.id).bases
        if len(bases) != 1 or self.origin(bases[0]) != self.origin(target.commit.id):
            return None
        return source.commit.id

    def inserts_or_deletes(self, row: CommitRow) -> bool:
        """Return whether a commit is known to have inserted or deleted the entity."""
        keys = self._footprint(row).keys
        return isinstance(keys, frozenset) and self._existence in keys

    # --- what a commit may have changed --------------------------------------------------------

    def _may_change(self, row: CommitRow) -> bool:
        commit = row.commit
        if commit.id not in self._published:
            return False
        if not commit.parents or self._footprint(row).overlaps(self._required):
            return True
        # What a merge or a migration writes to a property that is new to a type is in no footprint.
        return self.commit(commit.parents[0]).commit.schema_hash != commit.schema_hash

    def _deciding(self, row: CommitRow, *, changed: bool) -> tuple[CommitId, ...]:
        """Return the parents whose origins decide about that of a commit."""
        if not changed:
            return row.commit.parents[:1]
        is_merge = len(row.commit.parents) > 1
        return row.commit.parents if is_merge and self._footprint(row).keys is None else ()

    def _origin_of(self, row: CommitRow, *, changed: bool) -> EntityOrigin:
        parents = [self._origins.get(parent, EntityOrigin()) for parent in row.commit.parents]
        inherited = parents[0] if parents else EntityOrigin()
        entry = self._published.get(row.commit.id, inherited.entry)
        if not changed or _is_same_in_both(entry, parents):
            return EntityOrigin(inherited.commit_id, entry)
        return EntityOrigin(row.commit.id, entry)

    def _footprint(self, row: CommitRow) -> Footprint:
        return Footprint.decode(self._footprints.get(row.commit.id))

    def _read_page(self, page: HistoryPage) -> None:
        """Read the versions of the type, and the footprints of the commits that published them."""
        type_id, incarnation = self.type_key
        matches = pc.and_(
            pc.equal(page.table["stable_table_id"], pa.scalar(type_id, pa.uint64())),
            pc.equal(page.table["table_incarnation_id"], pa.scalar(incarnation, pa.uint64())),
        )
        rows = page.table.filter(matches).to_pylist()
        changes = DatasetChanges.of(row for row in rows if row["object_type"] in DATASET_ROWS)
        self._published |= {id_: next(iter(e.values())) for id_, e in changes.published.items()}
        self._published |= dict.fromkeys(changes.dropped)
        if FOOTPRINT in page.table.column_names:
            ids = {commit_key(id_): id_ for id_ in page.commits if id_ in self._published}
            is_wanted = pc.is_in(page.table["object_id"], pa.array(ids, pa.string()))
            wanted = page.table.select(["object_id", FOOTPRINT]).filter(is_wanted)
            for object_id, footprint in zip(*(c.to_pylist() for c in wanted.columns), strict=True):
                if footprint is not None:
                    self._footprints[ids[object_id]] = footprint


def _is_same_in_both(entry: DatasetEntry | None, parents: list[EntityOrigin]) -> bool:
    """Return whether a merge took the dataset of its source, where the origin is the same."""
    if len(parents) < 2 or entry is None:
        return False
    target, source = parents
    is_taken = source.entry is not None and source.entry.state == entry.state
    return is_taken and source.commit_id == target.commit_id
