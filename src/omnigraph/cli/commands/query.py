"""`omnigraph query` and `omnigraph explain`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import engine_option, graph_options
from omnigraph.cli.output import print_json
from omnigraph.cli.queries import (
    is_stored,
    output_style,
    query_options,
    read_params,
    read_query,
    require_stored_queries,
)
from omnigraph.cli.results import RESULT_FORMATS, write_result
from omnigraph.errors import translate_disk_errors
from omnigraph.query.result import Result, ResultStream


@click.command()
@click.argument("name", required=False)
@graph_options(positional=False)
@query_options
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
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def query(
    name: str | None,
    uri: str | None,
    store: str | None,
    query_path: Path | None,
    query_text: str | None,
    params: str | None,
    params_file: Path | None,
    branch: str | None,
    snapshot: str | None,
    timeout: float | None,
    format_: str | None,
    out: Path | None,
    engine: str,
    as_json: bool,
) -> None:
    """Run a query and print its rows.

    NAME selects one of several queries in the file; without a file, it is a stored query of a
    server.
    """
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot are mutually exclusive")
    source = None if is_stored(name, query_path, query_text) else read_query(query_path, query_text)
    values = read_params(params, params_file)
    graph = open_addressed_graph(uri, store)
    at = branch or snapshot or "main"
    result: ResultStream | Result
    if source is None:
        result = require_stored_queries(graph).invoke(
            name or "", values, at=at, expect_mutation=False
        )
    else:
        result = graph.stream(source, values, name=name, at=at, timeout=timeout, engine=engine)
    target = {"branch": None if snapshot is not None else at, "snapshot": snapshot}
    chosen, style = output_style("json" if as_json else format_)
    if out is None:
        write_result(result, target, chosen, sys.stdout.buffer, style)
        return
    with translate_disk_errors(out), out.open("wb") as file:
        write_result(result, target, chosen, file, style)


# ----------------------------------------------------------------------
# Explain.


@click.command()
@click.argument("name", required=False)
@graph_options(positional=False)
@query_options
@click.option("--branch", "at", default="main", help="Branch, tag, commit ID or timestamp.")
@click.option("--analyze", is_flag=True, help="Run the query and show actual rows and times.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    name: str | None,
    uri: str | None,
    store: str | None,
    query_path: Path | None,
    query_text: str | None,
    params: str | None,
    params_file: Path | None,
    at: str,
    analyze: bool,
    as_json: bool,
) -> None:
    """Show the plan of a query: its operators, with estimates."""
    source = read_query(query_path, query_text)
    values = read_params(params, params_file)
    graph = open_addressed_graph(uri, store)
    plan = graph.explain(source, values, name=name, at=at, analyze=analyze)
    if as_json:
        print_json(plan.to_json())
        return
    click.echo(plan)
