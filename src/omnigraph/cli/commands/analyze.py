"""`omnigraph analyze`: graph algorithms on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from omnigraph import pipeline
from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, graph_options, json_option
from omnigraph.cli.output import count_text, print_result
from omnigraph.cli.progress import show_progress

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])
_EDGES = "Edge type to follow; repeatable."


@click.group()
def analyze() -> None:
    """Run a graph algorithm on Spark and store its values as a property."""


def _options(command: _CommandT) -> _CommandT:
    for option in (
        json_option,
        click.option("--message", "-m", help="Message of the commit."),
        click.option(
            "--from",
            "from_",
            help="Create the branch from this branch, tag or commit if it does not exist.",
        ),
        click.option("--branch", default="main", help="Branch to read and write."),
        click.option(
            "--into", required=True, metavar="T.P", help="Property that stores the values."
        ),
        click.option("--edges", multiple=True, required=True, metavar="E", help=_EDGES),
        actor_option,
        graph_options(positional=True),
    ):
        command = option(command)
    return command


def _run(algorithm: str, common: dict[str, Any], **options: Any) -> None:  # noqa: ANN401 - as click has them
    graph = open_addressed_graph(common["uri"], common["store"], mode="rw", actor=common["actor"])
    names = ("into", "branch", "from_", "message")
    analysis = pipeline.Analysis(
        algorithm=algorithm,
        edges=common["edges"],
        options={name: value for name, value in options.items() if value is not None},
        **{name: common[name] for name in names},
    )
    with show_progress(algorithm, pipeline.running_tasks):
        done = pipeline.analyze(graph, analysis)
    rounds = count_text(done.rounds, "round")
    commit = done.loaded.commit
    stored = "no value changed" if commit is None else f"stored as {commit.id}"
    print_result(
        {"uri": graph.uri, **done.to_json()},
        f"{algorithm}: {count_text(done.nodes, 'node')} after {rounds}, in {done.into} "
        f"on branch {done.loaded.branch}: {stored}",
    )


@analyze.command()
@_options
@click.option("--damping", type=float, help="Damping factor.  [default: 0.85]")
@click.option("--iterations", type=int, help="Maximum number of iterations.  [default: 50]")
@click.option(
    "--tolerance", type=float, help="Change between iterations at which to stop.  [default: 1e-6]"
)
def pagerank(
    damping: float | None,
    iterations: int | None,
    tolerance: float | None,
    **common: Any,  # noqa: ANN401 - what all commands take
) -> None:
    """Compute PageRank; the ranks of all nodes sum to 1."""
    _run("pagerank", common, damping=damping, iterations=iterations, tolerance=tolerance)


@analyze.command()
@_options
def components(**common: Any) -> None:  # noqa: ANN401 - what all commands take
    """Compute connected components; the value is the smallest node ID of the component."""
    _run("components", common)


@analyze.command()
@_options
@click.option("--iterations", type=int, help="Maximum number of iterations.  [default: 20]")
def labels(iterations: int | None, **common: Any) -> None:  # noqa: ANN401 - what all commands take
    """Find communities by label propagation."""
    _run("labels", common, iterations=iterations)


@analyze.command()
@_options
@click.option(
    "--direction", type=click.Choice(("out", "in", "both")), help="Edges to count.  [default: both]"
)
def degrees(direction: str | None, **common: Any) -> None:  # noqa: ANN401 - what all commands take
    """Compute the degree of each node."""
    _run("degrees", common, direction=direction)
