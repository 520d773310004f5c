"""`omnigraph branch`."""

from __future__ import annotations

import click

from omnigraph.cli.commands.merge import merge
from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import print_result
from omnigraph.graph import Graph


@click.group()
def branch() -> None:
    """Create, list, merge and delete branches."""


branch.add_command(merge)


@branch.command()
@graph_command(actor=True, mode="rw")
@click.option(
    "--from", "source", default="main", help="Branch, tag, commit ID or timestamp to start from."
)
@click.argument("name")
def create(graph: Graph, source: str, name: str) -> None:
    """Create a branch."""
    created = graph.branches.create(name, from_=source)
    facts = {"uri": graph.uri, "from": source, "name": created.name, "actor_id": created.actor}
    print_result(facts, f"created branch {created.name} from {source}")


@branch.command("list")
@graph_command()
def list_branches(graph: Graph) -> None:
    """List all branches."""
    names = graph.branches.list()
    print_result({"branches": names}, *names)


@branch.command()
@graph_command(actor=True, mode="rw", destroys=True)
@click.argument("name")
@click.option(
    "--force",
    is_flag=True,
    help="Delete also if other branches descend from it; they move to its parent.",
)
def delete(graph: Graph, name: str, force: bool) -> None:
    """Delete a branch."""
    graph.branches.delete(name, force=force)
    facts = {"uri": graph.uri, "name": name, "actor_id": graph.actor}
    print_result(facts, f"deleted branch {name}")
