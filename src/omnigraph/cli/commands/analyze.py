"""`omnigraph analyze`: graph algorithms, in this process or on Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph import pipeline
from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import InvalidUsage, actor_option, graph_options
from omnigraph.cli.output import JSON_KEY, count_text, json_requested, print_result
from omnigraph.cli.progress import show_progress, spark_details
from omnigraph.cli.queries import output_style
from omnigraph.cli.results import RESULT_FORMATS, write_result
from omnigraph.errors import translate_disk_errors
from omnigraph.graph import Graph
from omnigraph.graph.modes import OpenMode
from omnigraph.query.engine_names import ENGINES, LOCAL_ENGINE, SPARK_ENGINE
from omnigraph.query.result import Result

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])
_STORE_OPTIONS = {"from_": "--from", "message": "--message"}
_PRINT_OPTIONS = {"format_": "--format", "out": "--out"}


@click.group()
def analyze() -> None:
    """Run a graph algorithm; print a value for every node, or store it as a property."""


def _options(command: _CommandT) -> _CommandT:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--out", type=click.Path(path_type=Path), help="File to write the rows to."),
        click.option(
            "--format", "format_", type=click.Choice(RESULT_FORMATS), help="Format of the rows."
        ),
        click.option("--memory", type=click.IntRange(min=0), help="Memory limit in bytes."),
        click.option("--timeout", type=click.FloatRange(min=0), help="Timeout in seconds."),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            help="Execute in this process (local) or on Spark.  [default: local; with --into, "
            "Spark if it does not fit]",
        ),
        click.option("--message", "-m", help="Message of the commit."),
        click.option(
            "--from",
            "from_",
            help="Create the branch from this branch, tag or commit if it does not exist.",
        ),
        click.option("--snapshot", help="Commit ID, tag or timestamp to read instead of a branch."),
        click.option("--branch", help="Branch to read and write.  [default: main]"),
        click.option(
            "--into", metavar="T.P", help="Property to store the values in, instead of printing."
        ),
        click.option(
            "--edges",
            multiple=True,
            required=True,
            metavar="E",
            help="Edge type to follow; repeatable.",
        ),
        actor_option,
        graph_options(),
    ):
        command = option(command)
    return command


def _run(algorithm: str, common: dict[str, Any], **options: Any) -> None:  # noqa: ANN401 - as click has them
    click.get_current_context().meta[JSON_KEY] = common["as_json"]
    chosen = {name: value for name, value in options.items() if value is not None}
    into = common["into"]
    unused = _STORE_OPTIONS if into is None else _PRINT_OPTIONS
    given = [option for name, option in unused.items() if common[name] is not None]
    if given:
        needs = "needs" if into is None else "does not apply with"
        raise InvalidUsage(f"{given[0]} {needs} --into")
    if into is None and common["engine"] == SPARK_ENGINE:
        raise InvalidUsage("--engine spark needs --into: values on Spark are stored, not printed")
    mode: OpenMode = "ro" if into is None else "rw"
    graph = open_addressed_graph(common["uri"], common["store"], mode=mode, actor=common["actor"])
    if not isinstance(graph, Graph):
        raise InvalidUsage("analyze does not run on a server: pass the address of the graph")
    run = _print_values if into is None else _store_values
    with show_progress(algorithm, spark_details(common["engine"] or LOCAL_ENGINE)):
        show = run(graph, algorithm, common, chosen)
    show()


def _print_values(
    graph: Graph, algorithm: str, common: dict[str, Any], options: dict[str, Any]
) -> Callable[[], None]:
    """Compute the values; return what prints them."""
    if common["branch"] is not None and common["snapshot"] is not None:
        raise click.UsageError("--branch and --snapshot are mutually exclusive")
    at = common["branch"] or common["snapshot"] or "main"
    limits = {name: common[name] for name in ("timeout", "memory")}
    result: Result = graph.analyze(algorithm, common["edges"], at=at, **limits, **options)
    target = {"branch": None if common["snapshot"] else at, "snapshot": common["snapshot"]}
    chosen, style = output_style("json" if json_requested() else common["format_"])

    def show() -> None:
        out: Path | None = common["out"]
        if out is None:
            write_result(result, target, chosen, sys.stdout.buffer, style)
            return
        with translate_disk_errors(out), out.open("wb") as file:
            write_result(result, target, chosen, file, style)

    return show


def _store_values(
    graph: Graph, algorithm: str, common: dict[str, Any], options: dict[str, Any]
) -> Callable[[], None]:
    """Compute and store the values; return what prints the commit."""
    names = ("into", "from_", "message", "engine", "timeout", "memory")
    analysis = pipeline.Analysis(
        algorithm=algorithm,
        edges=common["edges"],
        options=options,
        at=common["snapshot"],
        branch=common["branch"] or "main",
        **{name: common[name] for name in names},
    )
    done = pipeline.analyze(graph, analysis)
    rounds = count_text(done.rounds, "round")
    commit = done.loaded.commit
    stored = "no value changed" if commit is None else f"stored as {commit.id}"
    return lambda: print_result(
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


@analyze.command("shortest-paths")
@_options
@click.option("--source", required=True, metavar="ID", help="Node to start from: ID or Type/ID.")
@click.option("--weight", metavar="P", help="Edge property with the length of an edge.")
@click.option(
    "--direction", type=click.Choice(("out", "in", "both")), help="Edges to follow.  [default: out]"
)
def shortest_paths(
    source: str,
    weight: str | None,
    direction: str | None,
    **common: Any,  # noqa: ANN401 - what all commands take
) -> None:
    """Compute the length of the shortest path from one node to each node."""
    _run("shortest_paths", common, source=source, weight=weight, direction=direction)


@analyze.command()
@_options
def kcore(**common: Any) -> None:  # noqa: ANN401 - what all commands take
    """Compute the core number of each node."""
    _run("kcore", common)


@analyze.command()
@_options
def triangles(**common: Any) -> None:  # noqa: ANN401 - what all commands take
    """Count the triangles of each node."""
    _run("triangles", common)
