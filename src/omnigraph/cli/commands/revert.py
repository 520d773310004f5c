"""This module is `omnigraph revert`."""

from __future__ import annotations

import click

from omnigraph.cli.addresses import actor_option, graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.merging import read_resolution, show_result


@click.command("revert")
@graph_options(positional=False)
@actor_option
@click.argument("commit_id", metavar="ID")
@click.option("--branch", default="main", help="Branch that is changed.")
@click.option("--dry-run", is_flag=True, help="Tell what would happen, conflicts included.")
@click.option(
    "--resolve",
    metavar="SIDE|FILE",
    help="Who wins a conflict: source, target, or decisions in a JSON file.",
)
@click.option("--message", "-m", help="What the commit is about.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def revert(
    uri: str | None,
    store: str | None,
    actor: str | None,
    commit_id: str,
    branch: str,
    dry_run: bool,
    resolve: str | None,
    message: str | None,
    as_json: bool,
) -> None:
    """Undo what a commit did, as a new commit."""
    graph = open_addressed(uri, store, mode="rw", actor=actor)
    decisions = read_resolution(resolve)
    result = graph.revert(
        commit_id, branch=branch, dry_run=dry_run, resolve=decisions, message=message
    )
    show_result(result, "reverted", dry_run=dry_run, as_json=as_json)
