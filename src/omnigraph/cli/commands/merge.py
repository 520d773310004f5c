"""`omnigraph merge` (also `branch merge`), `omnigraph revert` and `omnigraph cherry-pick`."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli.changes import (
    apply_options,
    dry_run_option,
    print_merge_result,
    resolve_option,
)
from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.progress import show_progress
from omnigraph.graph import Graph


@click.command()
@graph_command(actor=True, mode="rw")
@click.argument("source")
@click.option("--into", default="main", help="Branch to merge into.")
@dry_run_option
@click.option(
    "--strict",
    is_flag=True,
    help="Report a conflict when both sides changed one entity, even if in different properties.",
)
@resolve_option
@click.option("--delete-branch", is_flag=True, help="Delete the source branch after the merge.")
@click.option("--message", "-m", help="Message of the commit.")
def merge(
    graph: Graph,
    source: str,
    into: str,
    dry_run: bool,
    strict: bool,
    resolve: str | None,
    delete_branch: bool,
    message: str | None,
) -> None:
    """Merge a branch into another."""
    with show_progress("merging"):
        result = graph.merge(
            source,
            into,
            dry_run=dry_run,
            strict=strict,
            resolve=resolve,
            delete_branch=delete_branch,
            message=message,
        )
    print_merge_result(result, "merged", dry_run=dry_run)


@click.command("revert")
@apply_options
def revert(graph: Graph, commit_id: str, options: dict[str, Any]) -> None:
    """Undo the changes of a commit, as a new commit."""
    with show_progress("reverting"):
        result = graph.revert(commit_id, **options)
    print_merge_result(result, "reverted", dry_run=options["dry_run"])


@click.command("cherry-pick")
@apply_options
def cherry_pick(graph: Graph, commit_id: str, options: dict[str, Any]) -> None:
    """Apply the changes of a commit to a branch, as a new commit."""
    with show_progress("applying the commit"):
        result = graph.cherry_pick(commit_id, **options)
    print_merge_result(result, "picked", dry_run=options["dry_run"])
