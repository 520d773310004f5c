"""`omnigraph index`."""

from __future__ import annotations

import click

from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import (
    count_text,
    json_requested,
    print_json,
    print_result,
    print_table,
)
from omnigraph.cli.progress import show_progress
from omnigraph.graph import Graph


@click.group()
def index() -> None:
    """Show indexes and build missing ones."""


@index.command()
@graph_command()
@click.option("--branch", "at", default="main", help="Branch, tag, commit ID or timestamp.")
def status(graph: Graph, at: str) -> None:
    """List the indexes declared by the schema and their coverage."""
    indexes = graph.indexes.status(at)
    if json_requested():
        print_json({"uri": graph.uri, "indexes": [item.to_json() for item in indexes]})
        return
    rows = [
        (item.type_key, item.column, str(item.kind), f"{item.covered:,} of {item.rows:,}")
        for item in indexes
    ]
    print_table(f"indexes of {graph.uri}", ("type", "property", "kind", "covered"), rows)


@index.command()
@graph_command(actor=True, mode="rw")
@click.option("--branch", default="main", help="Branch to index.")
def build(graph: Graph, branch: str) -> None:
    """Build missing indexes, as one commit that changes no entities."""
    with show_progress("building indexes"):
        report = graph.indexes.ensure(branch=branch)
    built = sum(len(dataset.indexes_built) for dataset in report.datasets)
    text = f"built {count_text(built, 'index', 'indexes')} of {graph.uri}"
    print_result({"uri": graph.uri, **report.to_json()}, text)
