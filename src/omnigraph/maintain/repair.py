"""This module brings derived state up to date: what foreign readers see, and leftovers.

Nothing of ours relies on it. A dataset's own newest version is what other programs read; it may lag
behind what main shows, never matters to us, and is moved without copying data.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.commit.branches import finish_deletions
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN
from omnigraph.commit.recovery import recover
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.sweeps import lift
from omnigraph.errors import OmniError
from omnigraph.storage.compaction import show_as_head
from omnigraph.storage.files import shows_same
from omnigraph.storage.layout import dataset_path


class Action(StrEnum):
    """What was done about a dataset."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"


@dataclass(frozen=True, slots=True)
class DatasetRepair:
    """Whether foreign readers see of a dataset what main shows, and what was done about it."""

    type_key: str
    version: int
    head_version: int | None
    action: Action
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "type_key": self.type_key,
            "published_dataset_version": self.version,
            "lance_head_version": self.head_version,
            "classification": "no_drift" if self.action is Action.NO_OP else "head_lags",
            "action": str(self.action),
            "operations": [],
            "error": self.error,
        }


def repair(manifest: Manifest, *, confirm: bool) -> list[DatasetRepair]:
    """Bring derived state up to date; without `confirm` only report.

    It withdraws what a cleanup announced with a wrong clock, too.
    """
    if confirm:
        lift(manifest)
        recover(manifest)
        finish_deletions(manifest)
    found = []
    for table_key, entry in head_snapshot(manifest, MAIN).entries().items():
        path = dataset_path(table_key.partition(":")[0], *entry.key)
        head_version: int | None = None
        try:
            published = manifest.datasets.open(path, entry.physical)
            head = manifest.datasets.open(path, None)
            head_version = int(head.version)
            action = Action.NO_OP if shows_same(head, published) else Action.PREVIEW
            if action is Action.PREVIEW and confirm:
                show_as_head(published)
                action = Action.HEALED
            error = None
        except OmniError as problem:
            action, error = Action.PREVIEW, problem.message
        found.append(DatasetRepair(table_key, entry.version, head_version, action, error))
    return found
