"""This module is `omnigraph explain`."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.addresses import graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import print_json
from omnigraph.cli.queries import query_options, read_params, read_query


@click.command()
@click.argument("name", required=False)
@graph_options(positional=False)
@query_options
@click.option("--branch", "at", default="main", help="Branch, tag, commit id or time.")
@click.option("--analyze", is_flag=True, help="Run the query and show what happened.")
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
    """Show how a query is answered: its operators, with estimates."""
    source = read_query(query_path, query_text)
    values = read_params(params, params_file)
    graph = open_addressed(uri, store)
    found = graph.explain(source, values, name=name, at=at, analyze=analyze)
    if as_json:
        print_json(found.to_json())
        return
    click.echo(found)
