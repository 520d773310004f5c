"""Repair derived state: the latest versions for other Lance readers, and leftovers.

OmniGraph does not rely on it. Other programs read the latest version of a dataset, which may be
older than the version on main; it is moved without copying data.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.commit.branches import finish_branch_deletions
from omnigraph.commit.cleanup_lease import release_stale_leases
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN
from omnigraph.commit.recovery import recover
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.errors import OmniError
from omnigraph.notebook.display import ReportDisplay
from omnigraph.storage.compaction import restore_as_latest
from omnigraph.storage.layout import same_files


class RepairAction(StrEnum):
    """The action taken for a dataset."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"


@dataclass(frozen=True, slots=True)
class DatasetRepair(ReportDisplay):
    """Whether the latest version of a dataset is that of main, and the action taken."""

    type_key: str
    version: int
    head_version: int | None
    action: RepairAction
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "type_key": self.type_key,
            "published_dataset_version": self.version,
            "lance_head_version": self.head_version,
            "classification": "no_drift" if self.action is RepairAction.NO_OP else "head_lags",
            "action": str(self.action),
            "operations": [],
            "error": self.error,
        }


def repair(manifest: Manifest, *, confirm: bool) -> list[DatasetRepair]:
    """Repair derived state; without `confirm` only report.

    Stale announcements of cleanups are withdrawn, too.
    """
    if confirm:
        release_stale_leases(manifest)
        recover(manifest)
        finish_branch_deletions(manifest)
    repairs = []
    for table_key, entry in head_snapshot(manifest, MAIN).entries().items():
        path = entry.path(table_key)
        head_version: int | None = None
        try:
            published = manifest.datasets.open(path, entry.physical)
            head = manifest.datasets.open(path, None)
            head_version = int(head.version)
            action = RepairAction.NO_OP if same_files(head, published) else RepairAction.PREVIEW
            if action is RepairAction.PREVIEW and confirm:
                manifest.datasets.sync_version(path, restore_as_latest(published))
                action = RepairAction.HEALED
            error = None
        except OmniError as problem:
            action, error = RepairAction.PREVIEW, problem.message
        repairs.append(DatasetRepair(table_key, entry.version, head_version, action, error))
    return repairs
