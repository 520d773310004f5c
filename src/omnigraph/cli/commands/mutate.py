"""`omnigraph mutate`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click
from msgspec import to_builtins

from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, graph_options
from omnigraph.cli.output import print_json
from omnigraph.cli.queries import (
    is_stored,
    query_options,
    read_params,
    read_query,
    run_stored_mutation,
)
from omnigraph.errors import PreconditionFailed

PRECONDITION_EXIT_CODE = 4
"""Exit code of a mutation whose `--if-commit` did not match."""


@click.command()
@click.argument("name", required=False)
@graph_options(positional=False)
@actor_option
@query_options
@click.option("--branch", default="main", help="Branch to change.")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit.")
@click.option("--message", help="Message of the commit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def mutate(
    name: str | None,
    uri: str | None,
    store: str | None,
    actor: str | None,
    query_path: Path | None,
    query_text: str | None,
    params: str | None,
    params_file: Path | None,
    branch: str,
    if_commit: str | None,
    message: str | None,
    as_json: bool,
) -> None:
    """Run a mutation as one commit.

    NAME selects one of several mutations in the file; without a file, it is a stored mutation
    of a server.
    """
    source = None if is_stored(name, query_path, query_text) else read_query(query_path, query_text)
    values = read_params(params, params_file)
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    try:
        if source is None:
            done = run_stored_mutation(graph, name or "", values, branch, if_commit)
        else:
            done = graph.mutate(
                source, values, name=name, branch=branch, if_commit=if_commit, message=message
            )
    except PreconditionFailed as error:
        _print_precondition_failed(error, as_json)
        sys.exit(PRECONDITION_EXIT_CODE)
    if as_json:
        print_json(done.to_json())
        return
    changed = f"{done.affected_nodes} nodes, {done.affected_edges} edges"
    click.echo(f"changed {branch} via {done.name}: {changed}")
    if done.actor is not None:
        click.echo(f"actor_id: {done.actor}")


def _print_precondition_failed(error: PreconditionFailed, as_json: bool) -> None:
    """Print that the branch is at another commit; with `--json`, as a server reports it."""
    if as_json:
        description = import_module("omnigraph.service.errors").describe_error(error)
        print_json(to_builtins(description.body))
    click.echo(f"error[{error.code}]: {error.message}", err=True)
