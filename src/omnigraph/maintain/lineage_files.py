"""The files of one lineage, read without opening its newest version."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import FOOTPRINT, HEAD_KEY, read_commit, read_head
from omnigraph.commit.model import Commit, Head
from omnigraph.errors import FormatUnsupported, OmniError, StorageUnavailable
from omnigraph.storage.data_files import read_data_file
from omnigraph.storage.layout import (
    lineage_path,
    parse_version_file,
    referenced_files,
    version_file,
)
from omnigraph.storage.location import Location

Row = Mapping[str, Any]
_DATA = "data/"
_TRANSACTION = re.compile(r"_transactions/(\d+)-[0-9a-f-]+\.txn")


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The rows of one intact data file of a lineage; `head` if a swap wrote one there."""

    file: str
    rows: tuple[Row, ...]
    head: tuple[int, Head] | None

    def commits(self, lineage_id: str | None) -> Iterator[Commit]:
        """Yield the commits that were made on a lineage."""
        for row in self.rows:
            if row["object_type"] == "graph_commit":
                commit = read_commit(row)
                if not commit.aborted and commit.lineage_id == lineage_id:
                    yield commit.commit


class LineageFiles:
    """The version and data files of a lineage, listed once."""

    def __init__(self, manifest: Manifest, lineage_id: str | None) -> None:
        self._manifest = manifest
        self.lineage_id = lineage_id
        self.path = lineage_path(lineage_id)
        listed = [
            info.path.removeprefix(f"{self.path}/") for info in manifest.objects.list(self.path)
        ]
        parsed = ((parse_version_file(name), name) for name in listed)
        self.versions = {version: name for version, name in parsed if version is not None}
        self._data = [name for name in listed if name.startswith(_DATA)]
        self._transactions: dict[int, list[str]] = defaultdict(list)
        for name in listed:
            if (match := _TRANSACTION.fullmatch(name)) is not None:
                self._transactions[int(match.group(1))].append(name)

    @property
    def newest(self) -> int:
        """The greatest version that ever existed: its file may be missing; 0 if there is none."""
        return max((*self.versions, self._manifest.datasets.hinted_version(self.path)))

    def written_after(self, good: LineageState | None) -> list[StoredRows]:
        """Return the intact data files of the versions after a good one."""
        since = 0 if good is None else good.version
        traces = b"\0".join(self._traces(since))
        older = set() if good is None else referenced_files(good.handle)
        files = (
            name
            for name in self._data
            if name not in older and name.removeprefix(_DATA).encode() in traces
        )
        return [rows for rows in map(self.read, files) if rows is not None]

    def _traces(self, since: int) -> Iterator[bytes]:
        """Yield bytes that contain the names of the data files of versions after one.

        A version file that cannot be opened still contains them as text, and so does the
        transaction file of its writer, if no other writer tried to publish the same version. Any
        other data file belongs to a writer that lost a race: it was never published.
        """
        for version in range(since + 1, self.newest + 1):
            names = self._transactions[version - 1]
            names = [*names, version_file(version)] if len(names) == 1 else [version_file(version)]
            for name in names:
                yield self._manifest.objects.get(f"{self.path}/{name}") or b""

    def read(self, name: str) -> StoredRows | None:
        """Return the rows of a data file, None if it is damaged."""
        try:
            table = read_data_file(self._manifest.location, f"{self.path}/{name}")
            rows = table.to_pylist()
            heads = [row for row in rows if row["object_id"] == HEAD_KEY]
            head = (heads[0]["table_version"], read_head(heads[0])) if heads else None
        except OmniError as error:
            raise_unless_damage(error, self._manifest.location)
            return None
        return StoredRows(name, tuple(row for row in rows if row["object_id"] != HEAD_KEY), head)


def rows_by_key(rows: Iterable[Row]) -> dict[str, Row]:
    """Return rows by their key, without footprints."""
    return {
        str(row["object_id"]): {name: v for name, v in row.items() if name != FOOTPRINT}
        for row in rows
    }


def raise_unless_damage(error: OmniError, location: Location) -> None:
    """Raise an error that is not caused by damaged files: denied access, a newer format."""
    if isinstance(error, FormatUnsupported) and (error.details["found"] or "").isdigit():
        raise error
    if isinstance(error, StorageUnavailable) and (
        not location.is_local or error.code in ("storage_denied", "storage_read_only")
    ):
        raise error
