"""`omnigraph merge` (also `branch merge`), `omnigraph revert` and `omnigraph cherry-pick`."""

from __future__ import annotations

import click

from omnigraph.cli.changes import (
    commit_options,
    print_merge_result,
    read_resolution,
    resolve_option,
)
from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, graph_options
from omnigraph.cli.progress import show_progress


@click.command()
@graph_options(positional=False)
@actor_option
@click.argument("source")
@click.option("--into", default="main", help="Branch to merge into.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the result, including conflicts, without changing anything.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Report a conflict when both sides changed one entity, even if in different properties.",
)
@resolve_option
@click.option("--delete-branch", is_flag=True, help="Delete the source branch after the merge.")
@click.option("--message", "-m", help="Message of the commit.")
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
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    with show_progress("merging"):
        result = graph.merge(
            source,
            into,
            dry_run=dry_run,
            strict=strict,
            resolve=read_resolution(resolve),
            delete_branch=delete_branch,
            message=message,
        )
    print_merge_result(result, "merged", dry_run=dry_run, as_json=as_json)


# ----------------------------------------------------------------------
# Revert.


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
    """Undo the changes of a commit, as a new commit."""
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    decisions = read_resolution(resolve)
    with show_progress("reverting"):
        result = graph.revert(
            commit_id, branch=branch, dry_run=dry_run, resolve=decisions, message=message
        )
    print_merge_result(result, "reverted", dry_run=dry_run, as_json=as_json)


# ----------------------------------------------------------------------
# Cherry-pick.


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
    """Apply the changes of a commit to a branch, as a new commit."""
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    decisions = read_resolution(resolve)
    with show_progress("applying the commit"):
        result = graph.cherry_pick(
            commit_id, branch=branch, dry_run=dry_run, resolve=decisions, message=message
        )
    print_merge_result(result, "picked", dry_run=dry_run, as_json=as_json)
