"""This module is `omnigraph revert`."""

from __future__ import annotations

import click

from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.merging import commit_options, read_resolution, show_result
from omnigraph.cli.progress import showing


@click.command("revert")
@commit_options
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
    with showing("reverting"):
        result = graph.revert(
            commit_id, branch=branch, dry_run=dry_run, resolve=decisions, message=message
        )
    show_result(result, "reverted", dry_run=dry_run, as_json=as_json)
