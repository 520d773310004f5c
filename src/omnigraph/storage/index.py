"""This module builds indexes of a dataset, staged like everything else.

An index is derived state: it changes no answer, only what finding one costs.
"""

from __future__ import annotations

from lance import LanceDataset, LanceOperation

from omnigraph.storage.faults import translated


def build_btree(base: LanceDataset, column: str) -> LanceDataset | None:
    """Stage an index that finds rows by a column, over the fragments that have none yet.

    Returns None when all have one.
    """
    name = f"{column}_btree"
    with translated(f"indexing {column}"):
        missing = uncovered(base, name)
        if not missing:
            return None
        segment = base.create_index_uncommitted(
            column, "BTREE", name=name, fragment_ids=missing, replace=True
        )
        operation = LanceOperation.CreateIndex([segment], [])
        return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def uncovered(base: LanceDataset, name: str) -> list[int]:
    """Return the fragments no segment of an index covers."""
    segments = [
        s for index in base.describe_indices() if index.name == name for s in index.segments
    ]
    covered = {fragment for segment in segments for fragment in segment.fragment_ids}
    return [f.fragment_id for f in base.get_fragments() if f.fragment_id not in covered]
