"""`omnigraph tag`."""

from __future__ import annotations

import click

from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import print_result
from omnigraph.graph import Graph


@click.group()
def tag() -> None:
    """Create, list and delete tags: fixed names of commits."""


@tag.command()
@graph_command(actor=True, mode="rw")
@click.option("--at", default="main", help="Branch, tag, commit ID or timestamp to tag.")
@click.argument("name")
def create(graph: Graph, at: str, name: str) -> None:
    """Create a tag."""
    created = graph.tags.create(name, at=at)
    facts = {"uri": graph.uri, "name": created.name, "graph_commit_id": created.commit_id}
    print_result(facts, f"created tag {created.name} at {created.commit_id}")


@tag.command("list")
@graph_command()
def list_tags(graph: Graph) -> None:
    """List all tags."""
    tags = graph.tags.list()
    facts = [{"name": t.name, "graph_commit_id": t.commit_id, "actor_id": t.actor} for t in tags]
    print_result({"tags": facts}, *(f"{entry.name} {entry.commit_id}" for entry in tags))


@tag.command()
@graph_command(mode="rw")
@click.argument("name")
def delete(graph: Graph, name: str) -> None:
    """Delete a tag; its commit is kept."""
    graph.tags.delete(name)
    print_result({"uri": graph.uri, "name": name}, f"deleted tag {name}")
