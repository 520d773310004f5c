"""`omnigraph tag`."""

from __future__ import annotations

import click

from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, graph_options
from omnigraph.cli.output import print_json


@click.group()
def tag() -> None:
    """Create, list and delete tags: fixed names of commits."""


@tag.command()
@graph_options(positional=False)
@actor_option
@click.option("--at", default="main", help="Branch, tag, commit ID or timestamp to tag.")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create(
    uri: str | None, store: str | None, actor: str | None, at: str, name: str, as_json: bool
) -> None:
    """Create a tag."""
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    created = graph.tags.create(name, at=at)
    if as_json:
        print_json({"uri": graph.uri, "name": created.name, "graph_commit_id": created.commit_id})
        return
    click.echo(f"created tag {created.name} at {created.commit_id}")


@tag.command("list")
@graph_options(positional=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_tags(uri: str | None, store: str | None, as_json: bool) -> None:
    """List all tags."""
    tags = open_addressed_graph(uri, store).tags.list()
    if as_json:
        facts = [
            {"name": t.name, "graph_commit_id": t.commit_id, "actor_id": t.actor} for t in tags
        ]
        print_json({"tags": facts})
        return
    for listed in tags:
        click.echo(f"{listed.name} {listed.commit_id}")


@tag.command()
@graph_options(positional=False)
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def delete(uri: str | None, store: str | None, name: str, as_json: bool) -> None:
    """Delete a tag; its commit is kept."""
    graph = open_addressed_graph(uri, store, mode="rw")
    graph.tags.delete(name)
    if as_json:
        print_json({"uri": graph.uri, "name": name})
        return
    click.echo(f"deleted tag {name}")
