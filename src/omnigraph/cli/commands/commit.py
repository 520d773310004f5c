"""This module is `omnigraph commit …`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from omnigraph.cli.addresses import graph_options
from omnigraph.cli.commands.changes import commit_changes
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.history import draw as drawing
from omnigraph.cli.output import print_json
from omnigraph.commit.model import Commit
from omnigraph.graph import Graph


@click.group()
def commit() -> None:
    """Look at the history of a graph."""


commit.add_command(commit_changes, "changes")


_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


def _filters(command: _CommandT) -> _CommandT:
    """Let a command select commits of a branch."""
    for option in (
        click.option("--limit", type=click.IntRange(min=0), help="Maximum number of commits."),
        click.option("--actor", help="Only commits of this actor."),
        click.option("--branch", default="main", help="Branch whose history is listed."),
    ):
        command = option(command)
    return command


@commit.command("list")
@graph_options(positional=True)
@_filters
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_commits(
    uri: str | None,
    store: str | None,
    branch: str,
    actor: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """List commits, newest first."""
    commits = open_addressed(uri, store).commits.list(branch, limit=limit, actor=actor)
    if as_json:
        print_json({"commits": [found.to_json() for found in commits]})
        return
    for found in commits:
        actor = f" actor={found.actor}" if found.actor else ""
        click.echo(
            f"{found.id} graph_branch={found.branch} "
            f"graph_manifest_version={found.manifest_version}{actor}"
        )


@commit.command("log")
@graph_options(positional=True)
@_filters
@click.option("--draw", is_flag=True, help="Draw lines from each commit to its parents.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def log(
    uri: str | None,
    store: str | None,
    branch: str,
    actor: str | None,
    limit: int | None,
    draw: bool,
    as_json: bool,
) -> None:
    """Show the history of a branch with names, authors and counts, newest first."""
    graph = open_addressed(uri, store)
    commits = graph.commits.list(branch, limit=limit, actor=actor)
    names = _names(graph)
    if as_json:
        print_json({"commits": [{**c.to_json(), "names": names.get(c.id, [])} for c in commits]})
        return
    for line, found in drawing(commits) if draw else (("", found) for found in commits):
        text = "" if found is None else _described(found, names.get(found.id, ()))
        click.echo(f"{line} {text}".strip() if draw else text)


def _names(graph: Graph) -> dict[str, list[str]]:
    """Return the branches and tags that stand at each commit."""
    found: dict[str, list[str]] = {}
    for name in graph.branches.list():
        found.setdefault(graph.snapshot(name).commit_id, []).append(name)
    for tag in graph.tags.list():
        found.setdefault(tag.commit_id, []).append(f"tag {tag.name}")
    return found


def _described(found: Commit, names: Sequence[str]) -> str:
    """Return a commit in a line: its id, who stands there, when, who, what."""
    here = click.style(f" ({', '.join(names)})", fg="green") if names else ""
    when = f"{found.created_at:%Y-%m-%d %H:%M:%S}"
    counts = found.counts.values()
    sums = [sum(getattr(c, what) for c in counts) for what in ("inserted", "updated", "deleted")]
    changed = " +{} ~{} -{}".format(*sums) if any(sums) else ""
    who = f" {found.actor}" if found.actor else ""
    what = found.operation + (f": {found.message}" if found.message else "")
    return f"{click.style(found.id, fg='yellow')}{here} {when}{who} {what}{changed}"


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
    facts = found.to_json()
    del facts["counts"]
    for name, value in facts.items():
        click.echo(f"{name}: {'' if value is None else value}".rstrip())
    for key, counts in found.counts.items():
        changes = f"+{counts.inserted} ~{counts.updated} -{counts.deleted}"
        click.echo(f"{key}: {changes}")
