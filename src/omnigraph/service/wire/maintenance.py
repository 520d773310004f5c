"""Bodies of operations that report the condition of a graph."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from omnigraph.service.wire.parameters import FromQuery, Marker, ParameterLocation
from omnigraph.service.wire.requests import WireCount, WireUInt64

_Count = Annotated[int | None, Marker(ParameterLocation.QUERY, schema=WireCount)]


class TypeStatusOutput(Struct, kw_only=True):
    """A type of a state: rows, fragments, and the stored files of its dataset."""

    type_key: str
    rows: WireUInt64
    deleted_rows: WireUInt64
    indexed_rows: WireUInt64
    fragments: WireCount
    small_fragments: WireCount
    versions: WireCount
    files: WireCount
    bytes: WireUInt64
    compaction_due: bool
    index_due: bool


class RetentionOutput(Struct, kw_only=True):
    """Which commits automatic cleanup keeps: those that either limit keeps."""

    keep: WireCount | None = None
    older_than: str | None = None


class GraphStatusOutput(Struct, kw_only=True):
    """Sizes, fragments and index coverage of a state, the retention and the maintainer.

    Files and bytes of the graph are those of all branches. `maintainer` has at least `running`.
    """

    branch: str
    graph_commit_id: str
    graph_manifest_version: WireUInt64
    branches: WireCount
    tags: WireCount
    files: WireCount
    bytes: WireUInt64
    types: list[TypeStatusOutput]
    retention: RetentionOutput | None
    maintainer: dict[str, Any]


class IndexOutput(Struct, kw_only=True):
    """A required index, and how many rows of its type it covers."""

    type_key: str
    property: str
    kind: str
    rows: WireUInt64
    covered: WireUInt64
    segments: WireCount
    complete: bool


class IndexListOutput(Struct, kw_only=True):
    """The indexes that the schema of a state requires."""

    graph_branch: str
    graph_commit_id: str
    indexes: list[IndexOutput]


class CleanupQuery(Struct, kw_only=True):
    """What a cleanup would keep: newest commits of each branch, commits of an age, or both."""

    keep: _Count = None
    older_than_secs: _Count = None


class DatasetCleanupOutput(Struct, kw_only=True):
    """What a cleanup would remove from a dataset."""

    type_key: str
    bytes_removed: WireUInt64
    bytes_kept: WireUInt64
    recent_files: WireCount
    recent_bytes: WireUInt64
    old_versions_removed: WireCount
    error: str | None


class CleanupEstimateOutput(Struct, kw_only=True):
    """What a cleanup would remove; recent files are kept until `recent_removable_at`."""

    dry_run: bool
    keep_versions: WireCount | None
    older_than_secs: WireCount | None
    bytes_removed: WireUInt64
    bytes_kept: WireUInt64
    recent_files: WireCount
    recent_bytes: WireUInt64
    recent_removable_at: str | None
    lineages_removed: WireCount
    datasets: list[DatasetCleanupOutput]


class VerifyQuery(Struct, kw_only=True):
    """Whether to compare every file with its checksum, too."""

    deep: FromQuery[bool] = False


class IntegrityProblemOutput(Struct, kw_only=True):
    """A problem of a graph; a harmless one does not affect any result."""

    where: str
    message: str
    harmless: bool


class VerifyOutput(Struct, kw_only=True, omit_defaults=True):
    """Whether a graph is intact, and what was checked."""

    ok: bool
    branches: WireCount
    commits: WireCount
    versions: WireCount
    problems: list[IntegrityProblemOutput]
    files: WireCount | None = None
    files_without_checksum: WireCount | None = None
    damaged_files: list[Any] = []
