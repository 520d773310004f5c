"""Move a staged commit onto a newer state of its branch, if nothing it relies on has changed.

Data files are attached to the newer versions again; nothing is read or written twice. Deletions are
applied again, to the rows that the newer version has: fragments are matched by their data files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omnigraph.commit.footprint import Footprint
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import FOOTPRINT, read_commit
from omnigraph.commit.model import Commit, Head, Snapshot
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, with_checksums
from omnigraph.storage import Datasets
from omnigraph.storage.layout import dataset_path
from omnigraph.storage.staged_writes import move_changes


def commits_since(state: LineageState, base: Snapshot) -> list[Commit]:
    """Return the commits of a branch after one of its past heads."""
    return [read_commit(row).commit for row in _rows_since(state, base.manifest_version)]


def footprints_since(state: LineageState, version: int) -> list[Footprint]:
    """Return the footprints of the commits of a branch after a manifest version."""
    rows = _rows_since(state, version, footprints=True)
    return [Footprint.decode(row.get(FOOTPRINT)) for row in rows]


def _rows_since(
    state: LineageState, version: int, *, footprints: bool = False
) -> list[dict[str, Any]]:
    """Return the rows of the commits that were published on a branch after a manifest version."""
    rows = state.rows_after(version, footprints=footprints)
    return [
        row
        for row in rows
        if row["object_type"] == "graph_commit"
        and row["table_branch"] == state.lineage.lineage_id
        and row["table_version"] > version
    ]


def rebase(manifest: Manifest, staged: StagedCommit, base: Snapshot) -> StagedCommit | None:
    """Return a staged commit moved from `base` to the newest state; None if it has to be redone."""
    state = manifest.lineage(base.lineage_id).state()
    head = state.head
    if staged.requirements is None or head.schema_hash != staged.read_schema:
        return None
    newer = footprints_since(state, base.manifest_version)
    if any(footprint.overlaps(staged.requirements) for footprint in newer):
        return None
    moved = [_rebase_dataset(manifest.datasets, dataset, head) for dataset in staged.datasets]
    datasets = [dataset for dataset in moved if dataset is not None]
    if len(datasets) != len(moved):
        return None
    reads = {name: (key, head.datasets[key].physical) for name, (key, _) in staged.reads.items()}
    return replace(staged, datasets=tuple(datasets), reads=reads)


def _rebase_dataset(datasets: Datasets, staged: StagedDataset, head: Head) -> StagedDataset | None:
    entry = head.datasets.get(staged.key)
    if entry is None or staged.expected is None or staged.physical is None:
        return None
    if entry.physical == staged.expected:
        return staged
    path = dataset_path(staged.table_key.partition(":")[0], *staged.key)
    base, made, now = (
        datasets.at(path, version) for version in (staged.expected, staged.physical, entry.physical)
    )
    moved = move_changes(base, made, now)
    if moved is None:
        return None
    datasets.keep(path, moved)
    rows = entry.rows + staged.rows - int(base.count_rows())
    new = replace(staged, expected=entry.physical, physical=int(moved.version), rows=rows)
    return with_checksums(datasets, new)
