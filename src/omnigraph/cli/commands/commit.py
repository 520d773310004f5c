"""`omnigraph commit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from omnigraph.cli.commands.changes import commit_changes
from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import json_requested, print_json, print_result
from omnigraph.commit.model import Commit
from omnigraph.graph import Graph

# ----------------------------------------------------------------------
# Drawing of the commit graph.


def draw_history(commits: Sequence[Commit]) -> Iterator[tuple[str, Commit | None]]:
    """Yield lines of a drawing, each with its commit, or None for a line between commits.

    Children must precede their parents. Lines to unlisted parents continue to the end.
    """
    lanes: list[str] = []
    for commit in commits:
        if commit.id not in lanes:
            lanes.append(commit.id)
        place = lanes.index(commit.id)
        for other in reversed(range(place + 1, len(lanes))):
            if lanes[other] == commit.id:
                yield _join_lane(len(lanes), place, other), None
                del lanes[other]
        marks = ("*" if number == place else "|" for number in range(len(lanes)))
        yield " ".join(marks), commit
        first, *others = commit.parents or ("",)
        lanes[place] = first
        for extra in others:
            if lanes[place + 1 : place + 2] == [extra]:
                yield _connect_lane(len(lanes), place), None
            else:
                yield _branch_lane(len(lanes), place), None
                lanes.insert(place + 1, extra)
        if not first:
            del lanes[place]


def _join_lane(lanes: int, place: int, other: int) -> str:
    """Draw a lane that ends in one further left."""
    text = ""
    for number in range(other):
        text += "|" + ("_" if place <= number < other - 1 else " ")
    rest = " ".join("|" for _ in range(other + 1, lanes))
    return f"{text[:-1]}/ {rest}".rstrip()


def _branch_lane(lanes: int, place: int) -> str:
    """Draw a lane that begins to the right of another."""
    left = " ".join("|" for _ in range(place + 1))
    rest = " ".join("\\" for _ in range(place + 1, lanes))
    return f"{left}\\ {rest}".rstrip()


def _connect_lane(lanes: int, place: int) -> str:
    """Draw a line to the lane on the right."""
    left = " ".join("|" for _ in range(place + 1))
    right = " ".join("|" for _ in range(place + 1, lanes))
    return f"{left}\\{right}"


@click.group()
def commit() -> None:
    """Show the commit history of a graph."""


commit.add_command(commit_changes, "changes")


_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


def _filters(command: _CommandT) -> _CommandT:
    """Add the options that filter commits."""
    for option in (
        click.option("--limit", type=click.IntRange(min=0), help="Maximum number of commits."),
        click.option("--actor", help="Include only commits of this actor."),
        click.option("--branch", default="main", help="Branch to list."),
    ):
        command = option(command)
    return command


@commit.command("list")
@graph_command()
@_filters
def list_commits(graph: Graph, branch: str, actor: str | None, limit: int | None) -> None:
    """List commits, newest first."""
    commits = graph.commits.list(branch, limit=limit, actor=actor)
    lines = (
        f"{entry.id} graph_branch={entry.branch} graph_manifest_version={entry.manifest_version}"
        + (f" actor={entry.actor}" if entry.actor else "")
        for entry in commits
    )
    print_result({"commits": [entry.to_json() for entry in commits]}, *lines)


@commit.command("log")
@graph_command()
@_filters
@click.option("--draw", is_flag=True, help="Draw lines from each commit to its parents.")
def log(graph: Graph, branch: str, actor: str | None, limit: int | None, draw: bool) -> None:
    """Show the history of a branch with refs, actors and counts, newest first."""
    commits = graph.commits.list(branch, limit=limit, actor=actor)
    names = _refs_by_commit(graph)
    if json_requested():
        print_json({"commits": [{**c.to_json(), "names": names.get(c.id, [])} for c in commits]})
        return
    for line, entry in draw_history(commits) if draw else (("", entry) for entry in commits):
        text = "" if entry is None else _commit_line(entry, names.get(entry.id, ()))
        click.echo(f"{line} {text}".strip() if draw else text)


def _refs_by_commit(graph: Graph) -> dict[str, list[str]]:
    """Return the branches and tags of each commit."""
    refs: dict[str, list[str]] = {}
    for name in graph.branches.list():
        refs.setdefault(graph.snapshot(name).commit_id, []).append(name)
    for tag in graph.tags.list():
        refs.setdefault(tag.commit_id, []).append(f"tag {tag.name}")
    return refs


def _commit_line(entry: Commit, names: Sequence[str]) -> str:
    """Return a commit as a line: ID, refs, time, actor, operation, counts."""
    here = click.style(f" ({', '.join(names)})", fg="green") if names else ""
    when = f"{entry.created_at:%Y-%m-%d %H:%M:%S}"
    counts = entry.counts.values()
    sums = [sum(getattr(c, what) for c in counts) for what in ("inserted", "updated", "deleted")]
    changed = " +{} ~{} -{}".format(*sums) if any(sums) else ""
    who = f" {entry.actor}" if entry.actor else ""
    what = entry.operation + (f": {entry.message}" if entry.message else "")
    return f"{click.style(entry.id, fg='yellow')}{here} {when}{who} {what}{changed}"


@commit.command()
@graph_command()
@click.argument("commit_id", metavar="ID")
def show(graph: Graph, commit_id: str) -> None:
    """Show one commit."""
    entry = graph.commits.get(commit_id)
    facts = entry.to_json()
    lines = [
        f"{name}: {'' if value is None else value}".rstrip()
        for name, value in facts.items()
        if name != "counts"
    ]
    lines += [f"{key}: +{c.inserted} ~{c.updated} -{c.deleted}" for key, c in entry.counts.items()]
    print_result(facts, *lines)
