"""`omnigraph mutate`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click
from msgspec import to_builtins

from omnigraph.cli.open_graph import GraphOpener, graph_command
from omnigraph.cli.output import json_requested, print_json, print_result
from omnigraph.cli.queries import (
    QueryText,
    graph_and_name,
    query_options,
    require_stored_queries,
)
from omnigraph.errors import PreconditionFailed

PRECONDITION_EXIT_CODE = 4
"""Exit code of a mutation whose `--if-commit` did not match."""


@click.command()
@graph_and_name
@graph_command(positional=False, actor=True, lazy=True, mode="rw")
@query_options(stored=True)
@click.option("--branch", default="main", help="Branch to change.")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit.")
@click.option("--message", help="Message of the commit.")
def mutate(
    open_graph: GraphOpener,
    name: str | None,
    query: QueryText,
    branch: str,
    if_commit: str | None,
    message: str | None,
) -> None:
    """Run a mutation as one commit.

    A text that begins with `insert`, `update` or `delete` needs no name and no parameters.

    NAME selects one of several mutations in the file; without a file, it is a stored mutation
    of a server.
    """
    graph, source, params = open_graph(), query.source, query.params
    try:
        if source is None:
            stored: Any = require_stored_queries(graph)
            options = {"branch": branch, "if_commit": if_commit, "expect_mutation": True}
            result = stored.invoke(name or "", params, **options)
        else:
            result = graph.mutate(
                source, params, name=name, branch=branch, if_commit=if_commit, message=message
            )
    except PreconditionFailed as error:
        _print_precondition_failed(error)
        sys.exit(PRECONDITION_EXIT_CODE)
    changed = f"{result.affected_nodes} nodes, {result.affected_edges} edges"
    actor = [] if result.actor is None else [f"actor_id: {result.actor}"]
    print_result(result.to_json(), f"changed {branch} via {result.name}: {changed}", *actor)


def _print_precondition_failed(error: PreconditionFailed) -> None:
    """Print that the branch is at another commit; with `--json`, as a server reports it."""
    if json_requested():
        description = import_module("omnigraph.service.errors").describe_error(error)
        print_json(to_builtins(description.body))
    click.echo(f"error[{error.code}]: {error.message}", err=True)
