"""This module is `omnigraph merge`, also known as `branch merge`."""

from __future__ import annotations

import click

from omnigraph.cli.addresses import actor_option, graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.merging import read_resolution, resolve_option, show_result
from omnigraph.cli.progress import showing


@click.command()
@graph_options(positional=False)
@actor_option
@click.argument("source")
@click.option("--into", default="main", help="Branch to merge into.")
@click.option("--dry-run", is_flag=True, help="Tell what would happen, conflicts included.")
@click.option("--strict", is_flag=True, help="Do not merge different properties of one entity.")
@resolve_option
@click.option("--delete-branch", is_flag=True, help="Delete the source afterwards.")
@click.option("--message", "-m", help="What the merge is about.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def merge(
    uri: str | None,
    store: str | None,
    actor: str | None,
    source: str,
    into: str,
    dry_run: bool,
    strict: bool,
    resolve: str | None,
    delete_branch: bool,
    message: str | None,
    as_json: bool,
) -> None:
    """Merge a branch into another."""
    graph = open_addressed(uri, store, mode="rw", actor=actor)
    with showing("merging"):
        result = graph.merge(
            source,
            into,
            dry_run=dry_run,
            strict=strict,
            resolve=read_resolution(resolve),
            delete_branch=delete_branch,
            message=message,
        )
    show_result(result, "merged", dry_run=dry_run, as_json=as_json)
