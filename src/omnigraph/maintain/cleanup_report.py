"""The report of a cleanup: removed and kept files."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from omnigraph.notebook.display import ReportDisplay


@dataclass(slots=True)
class DatasetCleanup:
    """What cleanup removed, or would remove, from one dataset.

    `recent_files` and `recent_bytes` are kept only because they are recent.
    """

    path: str
    type_key: str
    bytes_removed: int = 0
    bytes_kept: int = 0
    files_removed: int = 0
    old_versions_removed: int = 0
    recent_files: int = 0
    recent_bytes: int = 0
    error: str | None = None


_WIRE_MEMBERS = (
    "type_key",
    "bytes_removed",
    "bytes_kept",
    "recent_files",
    "recent_bytes",
    "old_versions_removed",
    "error",
)
"""The fields of a dataset's report in the wire form."""


@dataclass(slots=True)
class CleanupReport(ReportDisplay):
    """What cleanup did, or would do.

    Files that were written, or needed by a head, within the age `floor` are kept. They can be
    removed from `removable_at` on; None if there are none.
    """

    keep: int | None
    older_than: timedelta | None
    dry_run: bool
    floor: timedelta = timedelta(hours=1)
    datasets: list[DatasetCleanup] = field(default_factory=list)
    lineages_removed: int = 0
    removable_at: datetime | None = None

    @property
    def bytes_removed(self) -> int:
        """The bytes removed from all datasets."""
        return sum(dataset.bytes_removed for dataset in self.datasets)

    @property
    def bytes_kept(self) -> int:
        """The bytes that retained states need, or that are recent."""
        return sum(dataset.bytes_kept for dataset in self.datasets)

    @property
    def recent_files(self) -> int:
        """The files that are kept only because they are recent."""
        return sum(dataset.recent_files for dataset in self.datasets)

    @property
    def recent_bytes(self) -> int:
        """The bytes that are kept only because they are recent."""
        return sum(dataset.recent_bytes for dataset in self.datasets)

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        age = None if self.older_than is None else int(self.older_than.total_seconds())
        removable = None if self.removable_at is None else self.removable_at.isoformat()
        return {
            "dry_run": self.dry_run,
            "keep_versions": self.keep,
            "older_than_secs": age,
            "bytes_removed": self.bytes_removed,
            "bytes_kept": self.bytes_kept,
            "recent_files": self.recent_files,
            "recent_bytes": self.recent_bytes,
            "recent_removable_at": removable,
            "lineages_removed": self.lineages_removed,
            "datasets": [{n: getattr(d, n) for n in _WIRE_MEMBERS} for d in self.datasets],
        }
