"""Options for queries and their parameters, and access to stored queries."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph.cli.files import read_bytes
from omnigraph.cli.open_graph import load_user_config
from omnigraph.cli.options import InvalidUsage
from omnigraph.cli.results import TableStyle
from omnigraph.errors import InvalidInput
from omnigraph.graph import Graph

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path)


def query_options(command: _CommandT) -> _CommandT:
    """Add the options for a query and its parameters, each as text or as a file."""
    for option in (
        click.option(
            "--params-file", type=_FILE, help="File with the parameters as a JSON object."
        ),
        click.option("--params", help="Parameters as a JSON object."),
        click.option("-e", "--query-string", "query_text", help="Query as text."),
        click.option("--query", "query_path", type=_FILE, help="Query file (.gq)."),
    ):
        command = option(command)
    return command


def is_stored(name: str | None, path: Path | None, text: str | None) -> bool:
    """Return whether only a name was given, which is that of a stored query."""
    return name is not None and path is None and text is None


def read_query(path: Path | None, text: str | None) -> str:
    """Return the text of the query, from a file or an option."""
    if (path is None) == (text is None):
        raise click.UsageError("no query given: pass either --query FILE or -e TEXT")
    if text is not None:
        return text
    assert path is not None, "one of both was given"
    return _text(path)


def read_params(text: str | None, path: Path | None) -> dict[str, Any] | None:
    """Return the parameters, if any were given."""
    if text is not None and path is not None:
        raise click.UsageError("--params and --params-file are mutually exclusive")
    source = _text(path) if path is not None else text
    if source is None:
        return None
    try:
        values = json.loads(source)
    except ValueError as error:
        message = f"invalid parameters: not valid JSON: {error}"
        raise InvalidInput(message, code="params_invalid") from error
    if not isinstance(values, dict):
        message = 'invalid parameters: expected a JSON object, e.g. \'{"name": "Ada"}\''
        raise InvalidInput(message, code="params_invalid")
    return values


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text: {error.reason} at byte {error.start}"
        raise InvalidInput(message, code="file_unreadable") from error


# ----------------------------------------------------------------------
# Stored queries, which only servers have.


def require_stored_queries(graph: Graph) -> Any:  # noqa: ANN401 - a remote graph
    """Return a graph that has stored queries; raise InvalidUsage for one that has none."""
    if not hasattr(graph, "invoke"):
        message = "a stored query needs --server; for this graph pass --query FILE or -e TEXT"
        raise InvalidUsage(message)
    return graph


def run_stored_mutation(
    graph: Graph,
    name: str,
    params: Any,  # noqa: ANN401
    branch: str,
    if_commit: str | None,
) -> Any:  # noqa: ANN401
    """Run a stored mutation."""
    served = import_module("omnigraph.cli.remote")
    return served.invoke_mutation(require_stored_queries(graph), name, params, branch, if_commit)


def output_style(format_: str | None) -> tuple[str, TableStyle]:
    """Return the format and table style of rows, from options and configuration."""
    defaults = load_user_config().defaults
    wraps = defaults.table_cell_layout == "wrap"
    return format_ or defaults.output or "table", TableStyle(defaults.table_max_column_width, wraps)
