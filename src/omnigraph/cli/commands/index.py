"""`omnigraph index`."""

from __future__ import annotations

import click

from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, graph_options
from omnigraph.cli.output import count_text, print_json, print_table
from omnigraph.cli.progress import show_progress


@click.group()
def index() -> None:
    """Show indexes and build missing ones."""


@index.command()
@graph_options(positional=True)
@click.option("--branch", "at", default="main", help="Branch, tag, commit ID or timestamp.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(uri: str | None, store: str | None, at: str, as_json: bool) -> None:
    """List the indexes declared by the schema and their coverage."""
    graph = open_addressed_graph(uri, store)
    indexes = graph.indexes.status(at)
    if as_json:
        print_json({"uri": graph.uri, "indexes": [item.to_json() for item in indexes]})
        return
    rows = [
        (item.type_key, item.column, str(item.kind), f"{item.covered:,} of {item.rows:,}")
        for item in indexes
    ]
    print_table(f"indexes of {graph.uri}", ("type", "property", "kind", "covered"), rows)


@index.command()
@graph_options(positional=True)
@actor_option
@click.option("--branch", default="main", help="Branch to index.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def build(
    uri: str | None, store: str | None, actor: str | None, branch: str, as_json: bool
) -> None:
    """Build missing indexes, as one commit that changes no entities."""
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    with show_progress("building indexes"):
        done = graph.indexes.ensure(branch=branch)
    if as_json:
        print_json({"uri": graph.uri, **done.to_json()})
        return
    built = sum(len(dataset.indexes_built) for dataset in done.datasets)
    click.echo(f"built {count_text(built, 'index', 'indexes')} of {graph.uri}")
