"""`omnigraph branch`."""

from __future__ import annotations

import click

from omnigraph.cli.commands.merge import merge
from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, graph_options
from omnigraph.cli.output import print_json


@click.group()
def branch() -> None:
    """Create, list, merge and delete branches."""


branch.add_command(merge)


@branch.command()
@graph_options(positional=False)
@actor_option
@click.option(
    "--from", "source", default="main", help="Branch, tag, commit ID or timestamp to start from."
)
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create(
    uri: str | None, store: str | None, actor: str | None, source: str, name: str, as_json: bool
) -> None:
    """Create a branch."""
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    created = graph.branches.create(name, from_=source)
    if as_json:
        print_json(
            {"uri": graph.uri, "from": source, "name": created.name, "actor_id": created.actor}
        )
        return
    click.echo(f"created branch {created.name} from {source}")


@branch.command("list")
@graph_options(positional=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_branches(uri: str | None, store: str | None, as_json: bool) -> None:
    """List all branches."""
    names = open_addressed_graph(uri, store).branches.list()
    if as_json:
        print_json({"branches": names})
        return
    for name in names:
        click.echo(name)


@branch.command()
@graph_options(positional=False)
@actor_option
@click.argument("name")
@click.option(
    "--force",
    is_flag=True,
    help="Delete also if other branches descend from it; they move to its parent.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def delete(
    uri: str | None, store: str | None, actor: str | None, name: str, force: bool, as_json: bool
) -> None:
    """Delete a branch."""
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor, destroys=True)
    graph.branches.delete(name, force=force)
    if as_json:
        print_json({"uri": graph.uri, "name": name, "actor_id": graph.actor})
        return
    click.echo(f"deleted branch {name}")
