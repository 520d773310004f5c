"""`omnigraph init`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from omnigraph.cli.files import open_catalog
from omnigraph.cli.options import actor_and_policy, json_option
from omnigraph.cli.output import json_requested, print_json
from omnigraph.graph import init as create


@click.command()
@click.argument("uri")
@click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(path_type=Path),
    help="Schema file (.pg) of the graph.",
)
@click.option(
    "--force", is_flag=True, help="Overwrite leftovers of a failed attempt; never a graph."
)
@json_option
def init(uri: str, schema_path: Path, force: bool) -> None:
    """Create an empty graph in a folder or at an s3:// address."""
    # Leftovers of failed attempts are always overwritten, and a graph never is, with or without
    # --force.
    _, report = open_catalog(schema_path)
    import_module("omnigraph.service.cluster.store").refuse_managed(uri, "declare it")
    who = actor_and_policy()
    graph = create(uri, report.source.text, policy=who.policy, actor=who.actor)
    if json_requested():
        print_json({"uri": graph.uri, "graph_commit_id": graph.snapshot().commit_id})
    else:
        click.echo(f"initialized {graph.uri}")
