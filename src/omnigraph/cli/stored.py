"""This module runs stored queries from the command line; only a server has them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from omnigraph.cli.addresses import WrongUse
from omnigraph.cli.graphs import set_up
from omnigraph.cli.results import Style
from omnigraph.graph import Graph


def stored(graph: Graph) -> Any:  # noqa: ANN401 - a remote graph, whose room only servers need
    """Return a graph that has stored queries; raise WrongUse for one that has none."""
    if not hasattr(graph, "invoke"):
        message = "a stored query needs --server; here give the query with --query FILE or -e TEXT"
        raise WrongUse(message)
    return graph


def run_stored(graph: Graph, name: str, params: Any, branch: str, if_commit: str | None) -> Any:  # noqa: ANN401
    """Run a stored mutation."""
    served = import_module("omnigraph.cli.served")
    return served.run_stored(stored(graph), name, params, branch, if_commit)


def output_style(format_: str | None) -> tuple[str, Style]:
    """Return how rows are printed, by what was asked for and what was set up."""
    defaults = set_up().defaults
    wraps = defaults.table_cell_layout == "wrap"
    return format_ or defaults.output or "table", Style(defaults.table_max_column_width, wraps)
