"""`omnigraph snapshot`."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import graph_options
from omnigraph.cli.output import print_json
from omnigraph.commit.model import Snapshot
from omnigraph.version import INTERNAL_SCHEMA_VERSION


@click.command()
@graph_options(positional=True)
@click.option("--branch", "at", default="main", help="Branch, tag, commit ID or timestamp.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def snapshot(uri: str | None, store: str | None, at: str, as_json: bool) -> None:
    """Show the dataset versions of a snapshot."""
    facts = _facts(open_addressed_graph(uri, store).snapshot(at))
    if as_json:
        print_json(facts)
        return
    for name in ("graph_branch", "graph_manifest_version", "internal_schema_version"):
        click.echo(f"{name}: {facts[name]}")
    for dataset in facts["datasets"]:
        click.echo(
            f"{dataset['entity_kind']} type '{dataset['type_name']}' "
            f"published_dataset_version={dataset['published_dataset_version']} "
            f"native_dataset_branch=main entities={dataset['entity_count']}"
        )


def _facts(snapshot_: Snapshot) -> dict[str, Any]:
    datasets = []
    for key, entry in snapshot_.entries().items():
        kind, _, name = key.partition(":")
        datasets.append(
            {
                "entity_kind": kind,
                "type_name": name,
                "dataset_path": f"{kind}s/{entry.type_id:016x}-{entry.incarnation:016x}",
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
