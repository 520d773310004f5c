"""The status of a graph: its size, the state of its datasets and indexes, its maintenance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from omnigraph.commit.commit_queue import LOCKS
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.maintain.due import TypeCounts, count_type
from omnigraph.maintain.maintainer_lock import MaintainerInfo, read_maintainer
from omnigraph.maintain.retention import Retention, read_retention
from omnigraph.notebook.display import ReportDisplay


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeStatus:
    """One type: its numbers, and the files of its dataset with all versions that are stored."""

    type_key: str
    counts: TypeCounts
    versions: int
    files: int
    bytes: int

    @property
    def indexed(self) -> int:
        """The rows that every required index covers."""
        return self.counts.rows - self.counts.unindexed

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        counts = self.counts
        return {
            "type_key": self.type_key,
            "rows": counts.rows,
            "deleted_rows": counts.deleted,
            "indexed_rows": self.indexed,
            "fragments": counts.fragments,
            "small_fragments": counts.small,
            "versions": self.versions,
            "files": self.files,
            "bytes": self.bytes,
            "compaction_due": counts.compaction_due,
            "index_due": counts.index_due,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphStatus(ReportDisplay):
    """The status of one branch of a graph, of all its files, and of its maintainer."""

    branch: str
    commit_id: str
    manifest_version: int
    branches: int
    tags: int
    files: int
    bytes: int
    types: tuple[TypeStatus, ...]
    retention: Retention | None
    maintainer: MaintainerInfo

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "branch": self.branch,
            "graph_commit_id": self.commit_id,
            "graph_manifest_version": self.manifest_version,
            "branches": self.branches,
            "tags": self.tags,
            "files": self.files,
            "bytes": self.bytes,
            "types": [type_.to_json() for type_ in self.types],
            "retention": None if self.retention is None else self.retention.to_json(),
            "maintainer": self.maintainer.to_json(),
        }


def read_status(manifest: Manifest, snapshot: Snapshot) -> GraphStatus:
    """Return the status of a graph; files are listed, and no row is read."""
    files, sizes, versions = Counter[str](), Counter[str](), Counter[str]()
    for info in manifest.objects.list(""):
        folder, _, below = info.path.partition("/")
        name, _, below = below.partition("/")
        if folder == LOCKS:
            continue
        path = f"{folder}/{name}"
        files[path] += 1
        sizes[path] += info.size
        versions[path] += below.startswith("_versions/") and below.endswith(".manifest")
    types = []
    for table_key, entry in snapshot.entries().items():
        path = entry.path(table_key)
        types.append(
            TypeStatus(
                type_key=table_key,
                counts=count_type(manifest, snapshot.type_of(table_key), entry),
                versions=versions[path],
                files=files[path],
                bytes=sizes[path],
            )
        )
    return GraphStatus(
        branch=snapshot.branch,
        commit_id=snapshot.commit_id,
        manifest_version=snapshot.manifest_version,
        branches=1 + len(manifest.branches()),
        tags=len(manifest.tags()),
        files=files.total(),
        bytes=sizes.total(),
        types=tuple(types),
        retention=read_retention(manifest.objects),
        maintainer=read_maintainer(manifest.location),
    )
