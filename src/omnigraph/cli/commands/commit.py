"""This module is `omnigraph commit …`."""

from __future__ import annotations

import click

from omnigraph.cli.addresses import graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import print_json


@click.group()
def commit() -> None:
    """Look at the history of a graph."""


@commit.command("list")
@graph_options(positional=True)
@click.option("--branch", default="main", help="Branch whose history is listed.")
@click.option("--limit", type=click.IntRange(min=0), help="Newest commits to list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_commits(
    uri: str | None, store: str | None, branch: str, limit: int | None, as_json: bool
) -> None:
    """List commits, newest first."""
    commits = open_addressed(uri, store).commits.list(branch, limit=limit)
    if as_json:
        print_json({"commits": [found.to_json() for found in commits]})
        return
    for found in commits:
        actor = f" actor={found.actor}" if found.actor else ""
        click.echo(
            f"{found.id} graph_branch={found.branch} "
            f"graph_manifest_version={found.manifest_version}{actor}"
        )


@commit.command()
@graph_options(positional=False)
@click.argument("commit_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(uri: str | None, store: str | None, commit_id: str, as_json: bool) -> None:
    """Show one commit."""
    found = open_addressed(uri, store).commits.get(commit_id)
    if as_json:
        print_json(found.to_json())
        return
    for name, value in found.to_json().items():
        click.echo(f"{name}: {'' if value is None else value}".rstrip())
    for key, counts in found.counts.items():
        changes = f"+{counts.inserted} ~{counts.updated} -{counts.deleted}"
        click.echo(f"{key}: {changes}")
