"""`omnigraph query` and `omnigraph explain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.open_graph import GraphOpener, graph_command
from omnigraph.cli.options import engine_option
from omnigraph.cli.output import json_requested, print_result
from omnigraph.cli.queries import (
    QueryText,
    graph_and_name,
    output_style,
    query_options,
    require_stored_queries,
)
from omnigraph.cli.results import RESULT_FORMATS, write_result
from omnigraph.errors import translate_disk_errors
from omnigraph.query.result import Result, ResultStream


@click.command()
@graph_and_name
@graph_command(positional=False, lazy=True)
@query_options(stored=True)
@click.option("--branch", help="Branch to read.  [default: main]")
@click.option("--snapshot", help="Commit ID, tag or timestamp to read instead of a branch.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Timeout in seconds.")
@click.option(
    "--format", "format_", type=click.Choice(RESULT_FORMATS), help="Output format of the rows."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write instead of standard output."
)
@engine_option
def query(
    open_graph: GraphOpener,
    name: str | None,
    query: QueryText,
    branch: str | None,
    snapshot: str | None,
    timeout: float | None,
    format_: str | None,
    out: Path | None,
    engine: str,
) -> None:
    """Run a query and print its rows.

    A text that begins with `match` needs no name and no parameters.

    NAME selects one of several queries in the file; without a file, it is a stored query of a
    server.
    """
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot are mutually exclusive")
    graph = open_graph()
    at = branch or snapshot or "main"
    result: ResultStream | Result
    if query.source is None:
        stored = require_stored_queries(graph)
        result = stored.invoke(name or "", query.params, at=at, expect_mutation=False)
    else:
        limits: Any = {"timeout": timeout, "engine": engine}
        result = graph.stream(query.source, query.params, name=name, at=at, **limits)
    target = {"branch": None if snapshot is not None else at, "snapshot": snapshot}
    chosen, style = output_style("json" if json_requested() else format_)
    if out is None:
        write_result(result, target, chosen, sys.stdout.buffer, style)
        return
    with translate_disk_errors(out), out.open("wb") as file:
        write_result(result, target, chosen, file, style)


@click.command()
@graph_and_name
@graph_command(positional=False, lazy=True)
@query_options(stored=False)
@click.option("--branch", "at", default="main", help="Branch, tag, commit ID or timestamp.")
@click.option("--analyze", is_flag=True, help="Run the query and show actual rows and times.")
def explain(
    open_graph: GraphOpener, name: str | None, query: QueryText, at: str, analyze: bool
) -> None:
    """Show the plan of a query: its operators, with estimates."""
    plan = open_graph().explain(query.source or "", query.params, name=name, at=at, analyze=analyze)
    print_result(plan.to_json(), str(plan))
