"""This module runs stored queries from the command line; only a server has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from omnigraph.cli.graphs import set_up
from omnigraph.cli.results import Style
from omnigraph.graph import Graph
from omnigraph.service.client import RemoteGraph
from omnigraph.service.client.values import read_mutation
from omnigraph.write.run import MutationResult


def stored(graph: Graph | RemoteGraph) -> RemoteGraph:
    """Return a graph that has stored queries; raise UsageError for one that has none."""
    if not isinstance(graph, RemoteGraph):
        message = "a stored query needs --server; here give the query with --query FILE or -e TEXT"
        raise click.UsageError(message)
    return graph


def run_stored(
    graph: Graph,
    name: str,
    params: Mapping[str, Any] | None,
    branch: str,
    if_commit: str | None,
) -> MutationResult:
    """Run a stored mutation."""
    served = stored(graph).branch(branch)
    return read_mutation(served.invoke(name, params, expect_mutation=True, if_commit=if_commit))


def output_style(format_: str | None) -> tuple[str, Style]:
    """Return how rows are printed, by what was asked for and what was set up."""
    defaults = set_up().defaults
    wraps = defaults.table_cell_layout == "wrap"
    return format_ or defaults.output or "table", Style(defaults.table_max_column_width, wraps)
