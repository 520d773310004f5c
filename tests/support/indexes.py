"""Builds the indexes writes rely on, as upkeep will: staged, then published as one commit."""

from __future__ import annotations

import omnigraph.graph as og
from omnigraph.commit.model import Commit
from omnigraph.commit.publish import publish
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, new_commit_id
from omnigraph.storage.index import stage_btree_index
from omnigraph.storage.layout import dataset_path


def index_ids(graph: og.Graph, branch: str = "main") -> Commit:
    """Index the ids of all types and the ends of all edges."""
    snapshot = graph.snapshot(branch)
    datasets = []
    for table_key, entry in snapshot.entries().items():
        kind = table_key.partition(":")[0]
        path = dataset_path(kind, entry.type_id, entry.incarnation)
        made = base = graph._manifest.datasets.at(path, entry.physical)
        for column in ("id", "src", "dst") if kind == "edge" else ("id",):
            made = stage_btree_index(made, column) or made
        if made is not base:
            version = int(made.version)
            datasets.append(
                StagedDataset(table_key, *entry.key, entry.physical, version, entry.rows)
            )
    staged = StagedCommit(
        id=new_commit_id(),
        operation="optimize",
        datasets=tuple(datasets),
        read_schema=snapshot.head.schema_hash,
    )
    return publish(graph._manifest.lineage(snapshot.lineage_id), snapshot.branch, staged)
