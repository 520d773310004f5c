"""`omnigraph retention`."""

from __future__ import annotations

import click

from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.options import read_duration
from omnigraph.cli.output import print_result
from omnigraph.graph import Graph


@click.group()
def retention() -> None:
    """Declare which commits automatic cleanup keeps."""


@retention.command()
@graph_command()
def show(graph: Graph) -> None:
    """Show the retention of a graph."""
    _print_retention(graph)


@retention.command("set")
@graph_command(mode="rw")
@click.option(
    "--keep", type=click.IntRange(min=0), help="Number of newest commits to keep on each branch."
)
@click.option("--older-than", help="Keep commits younger than this: 90s, 15m, 12h, 30d, 2w.")
def set_(graph: Graph, keep: int | None, older_than: str | None) -> None:
    """Set the retention; `omnigraph maintain` and `serve` then remove what it does not keep."""
    graph.maintenance.set_retention(keep=keep, older_than=read_duration(older_than))
    _print_retention(graph)


@retention.command()
@graph_command(mode="rw")
def unset(graph: Graph) -> None:
    """Remove the retention; nothing is removed automatically any more."""
    graph.maintenance.clear_retention()
    _print_retention(graph)


def _print_retention(graph: Graph) -> None:
    declared = graph.maintenance.retention()
    facts = None if declared is None else declared.to_json()
    text = "no retention: nothing is removed automatically" if declared is None else str(declared)
    print_result({"uri": graph.uri, "retention": facts}, text)
