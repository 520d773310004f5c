"""Read one entity in the states of its history, each through one of the versions that show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from omnigraph.catalog import AcceptedType
from omnigraph.changes.diff import entity_images
from omnigraph.changes.entity_log import EntityLog
from omnigraph.changes.model import EntityImage
from omnigraph.changes.type_delta import same_columns
from omnigraph.commit.commit_log import CommitLog
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import CommitId, DatasetEntry, Snapshot, VersionState
from omnigraph.commit.snapshot import apply_scope_to_schema
from omnigraph.dataset_view import DatasetView
from omnigraph.errors import VersionReclaimed
from omnigraph.storage.layout import dataset_path, version_file
from omnigraph.types.arrow import Mask


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity in a state, by the names that the schema of the state gives."""

    type: AcceptedType
    rows: pa.Table

    @property
    def image(self) -> EntityImage:
        """The properties and ends."""
        [(_, image)] = entity_images(self.rows, self.type)
        return image

    def unchanged(
        self, before: EntityRow | None, keys: frozenset[str | int]
    ) -> frozenset[str | int]:
        """Return those of the ends, and identities of properties, that are as before."""
        if before is None:
            return frozenset()
        ids, columns = self.type.property_ids, _same_columns(before, self)
        differing = {ids.get(name, name) for name, same in columns if not same.all()}
        return keys - differing


def _is_embedded(type_: AcceptedType) -> bool:
    return any(p.embed is not None for p in type_.definition.properties.values())


def same_entity(before: EntityRow | None, after: EntityRow | None) -> bool:
    """Return whether an entity is the same in two states, or absent in both."""
    if before is None or after is None:
        return before is after
    return all(same.all() for _, same in _same_columns(before, after))


def _same_columns(before: EntityRow, after: EntityRow) -> Iterator[tuple[str, Mask]]:
    return same_columns(before.rows, after.rows, before.type, after.type)


class EntityReader:
    """Reads an entity of a snapshot in the states of its history.

    The states show what the scope of the snapshot shows of them. As few versions as possible are
    opened: one for each origin.
    """

    def __init__(
        self, manifest: Manifest, snapshot: Snapshot, type_: AcceptedType, id_: str
    ) -> None:
        assert type_.incarnation is not None, "a type of entities has a dataset"
        self._manifest = manifest
        self.id = id_
        self._scope = snapshot.scope
        self._type = type_
        self._state: LineageState = manifest.lineage(snapshot.lineage_id).state()
        log = CommitLog(manifest.history_states(self._state), footprints=lambda _: True)
        self.log = EntityLog(log, (type_.id, type_.incarnation), id_)
        self._rows: dict[tuple[VersionState, str], EntityRow | None] = {}

    def row(self, commit_id: CommitId) -> EntityRow | None:
        """Return the entity as a commit shows it, None if it does not exist.

        Raises:
            VersionReclaimed: all versions that show it were cleaned up, or the type is not visible.
        """
        origin = self.log.origin(commit_id)
        entries = self.log.versions.get(origin, [])
        if not entries or not all(entry.rows for entry in entries):
            return None
        schema_hash = self.log.commit(commit_id).commit.schema_hash
        type_ = self._type_in(schema_hash)
        if not _is_embedded(type_):  # a merge may compute the vectors of its source again
            merged = self.log.merged_origin(origin)
            entries = entries if merged == origin else [*entries, *self.log.versions[merged]]
        for entry in entries:
            if (entry.state, schema_hash) in self._rows:
                return self._rows[entry.state, schema_hash]
        try:
            return self._read(entries[-1], type_, schema_hash)
        except VersionReclaimed:
            for entry in reversed(entries):
                if version_file(entry.physical) in self._kept_versions:
                    return self._read(entry, type_, schema_hash)
            raise

    def _read(self, entry: DatasetEntry, type_: AcceptedType, schema_hash: str) -> EntityRow | None:
        rows = DatasetView(self._manifest, type_, entry).entities(pa.array([self.id]))
        row = EntityRow(type_, rows) if rows.num_rows else None
        self._rows[entry.state, schema_hash] = row
        return row

    def _type_in(self, schema_hash: str) -> AcceptedType:
        """Return the type in an older schema."""
        schema = apply_scope_to_schema(self._manifest, schema_hash, self._state, self._scope)
        type_ = schema.by_id(self._type.id)
        if type_ is None or type_.incarnation != self._type.incarnation:
            message = f"type {self._type.name} is not visible in older states"
            raise VersionReclaimed(message, type=self._type.name)
        return type_

    @cached_property
    def _kept_versions(self) -> frozenset[str]:
        """The files of versions that cleanup has not removed; listed once one is missing."""
        folder = dataset_path(self._type.kind, *self.log.type_key)
        stored = self._manifest.objects.list(f"{folder}/_versions")
        return frozenset(info.path.removeprefix(f"{folder}/") for info in stored)
