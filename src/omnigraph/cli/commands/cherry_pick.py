"""This module is `omnigraph cherry-pick`."""

from __future__ import annotations

import click

from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.merging import commit_options, read_resolution, show_result
from omnigraph.cli.progress import showing


@click.command("cherry-pick")
@commit_options
def cherry_pick(
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
    """Do on a branch what a commit did elsewhere."""
    graph = open_addressed(uri, store, mode="rw", actor=actor)
    decisions = read_resolution(resolve)
    with showing("applying the commit"):
        result = graph.cherry_pick(
            commit_id, branch=branch, dry_run=dry_run, resolve=decisions, message=message
        )
    show_result(result, "picked", dry_run=dry_run, as_json=as_json)
