"""Sync the states that relaxed writers left to the operating system.

The head of a lineage records whether commits since the last synced state may not be on disk. A
writer of full durability syncs such a state before it publishes on it, and clears the mark.
"""

from __future__ import annotations

from omnigraph.commit.model import Head
from omnigraph.storage import Datasets
from omnigraph.storage.layout import dataset_path


def sync_relaxed_state(datasets: Datasets, lineage: str, head: Head) -> None:
    """Sync all files of a lineage and of the datasets of its head, older versions included."""
    paths = [dataset_path(kind, *key) for key in head.datasets for kind in ("node", "edge")]
    for path in (*paths, lineage):
        datasets.sync_all_files(path)
