"""This module is `omnigraph analyze`: algorithms over a whole graph, on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from omnigraph import pipeline
from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, graph_options
from omnigraph.cli.output import count_text, print_json
from omnigraph.cli.progress import show_progress

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])
_EDGES = "Edge type to follow; repeatable."


@click.group()
def analyze() -> None:
    """Compute something about every node, on Spark, and store it as a property."""


def _options(command: _CommandT) -> _CommandT:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--message", "-m", help="What the commit says."),
        click.option("--from", "from_", help="Where to fork a branch from that does not exist."),
        click.option("--branch", default="main", help="Branch to write; it is read, too."),
        click.option("--into", required=True, metavar="T.P", help="Property to store values in."),
        click.option(
            "--edges", multiple=True, required=True, metavar="E", help="Edge type; repeatable."
        ),
        actor_option,
        graph_options(positional=True),
    ):
        command = option(command)
    return command


def _run(algorithm: str, asked: dict[str, Any], **options: Any) -> None:  # noqa: ANN401 - as click has them
    graph = open_addressed_graph(asked["uri"], asked["store"], mode="rw", actor=asked["actor"])
    names = ("into", "branch", "from_", "message")
    analysis = pipeline.Analysis(
        algorithm=algorithm,
        edges=asked["edges"],
        options={name: value for name, value in options.items() if value is not None},
        **{name: asked[name] for name in names},
    )
    with show_progress(algorithm, pipeline.running_tasks):
        done = pipeline.analyze(graph, analysis)
    if asked["as_json"]:
        print_json({"uri": graph.uri, **done.to_json()})
        return
    rounds = count_text(done.rounds, "round")
    commit = done.loaded.commit
    stored = "no value changed" if commit is None else f"stored as {commit.id}"
    click.echo(
        f"{algorithm}: {count_text(done.nodes, 'node')} after {rounds}, in {done.into} "
        f"on branch {done.loaded.branch}: {stored}"
    )


@analyze.command()
@_options
@click.option("--damping", type=float, help="Share that follows edges; 0.85 by default.")
@click.option("--iterations", type=int, help="Rounds at most; 50 by default.")
@click.option("--tolerance", type=float, help="Change below which to end; 1e-6 by default.")
def pagerank(
    damping: float | None,
    iterations: int | None,
    tolerance: float | None,
    **asked: Any,  # noqa: ANN401 - what all commands take
) -> None:
    """Rank nodes by who leads to them; all ranks together are 1."""
    _run("pagerank", asked, damping=damping, iterations=iterations, tolerance=tolerance)


@analyze.command()
@_options
def components(**asked: Any) -> None:  # noqa: ANN401 - what all commands take
    """Tell which nodes hang together: each gets the id of the first of its component."""
    _run("components", asked)


@analyze.command()
@_options
@click.option("--iterations", type=int, help="Rounds at most; 20 by default.")
def labels(iterations: int | None, **asked: Any) -> None:  # noqa: ANN401 - what all commands take
    """Find communities: each node takes the label most of its neighbours have."""
    _run("labels", asked, iterations=iterations)


@analyze.command()
@_options
@click.option("--direction", type=click.Choice(("out", "in", "both")), help="Both by default.")
def degrees(direction: str | None, **asked: Any) -> None:  # noqa: ANN401 - what all commands take
    """Count the edges at each node."""
    _run("degrees", asked, direction=direction)
