"""`omnigraph snapshot`."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import print_result
from omnigraph.commit.model import Snapshot
from omnigraph.graph import Graph
from omnigraph.version import INTERNAL_SCHEMA_VERSION


@click.command()
@graph_command()
@click.option("--branch", "at", default="main", help="Branch, tag, commit ID or timestamp.")
def snapshot(graph: Graph, at: str) -> None:
    """Show the dataset versions of a snapshot."""
    facts = _facts(graph.snapshot(at))
    names = ("graph_branch", "graph_manifest_version", "internal_schema_version")
    lines = [f"{name}: {facts[name]}" for name in names]
    lines += [
        f"{dataset['entity_kind']} type '{dataset['type_name']}' "
        f"published_dataset_version={dataset['published_dataset_version']} "
        f"native_dataset_branch=main entities={dataset['entity_count']}"
        for dataset in facts["datasets"]
    ]
    print_result(facts, *lines)


def _facts(snapshot_: Snapshot) -> dict[str, Any]:
    datasets = []
    for key, entry in snapshot_.entries().items():
        kind, _, name = key.partition(":")
        datasets.append(
            {
                "entity_kind": kind,
                "type_name": name,
                "dataset_path": entry.path(key),
                "published_dataset_version": entry.version,
                "native_dataset_branch": None,
                "entity_count": entry.rows,
            }
        )
    return {
        "graph_branch": snapshot_.branch,
        "graph_commit_id": snapshot_.commit_id,
        "graph_manifest_version": snapshot_.manifest_version,
        "internal_schema_version": INTERNAL_SCHEMA_VERSION,
        "datasets": datasets,
    }
