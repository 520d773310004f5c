"""Options for queries and their parameters, and access to stored queries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from omnigraph.cli.command_line import given_line, line_text
from omnigraph.cli.files import read_bytes
from omnigraph.cli.open_graph import load_user_config
from omnigraph.cli.options import InvalidUsage
from omnigraph.cli.results import TableStyle
from omnigraph.errors import InvalidInput
from omnigraph.graph import Graph

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])
_QUERY_NAME = re.compile(r"[a-z_][A-Za-z0-9_]*")
_FILE = click.Path(path_type=Path)


class QueryText(NamedTuple):
    """A query, None for a stored one, and the values of its parameters."""

    source: str | None
    params: dict[str, Any] | None


def graph_and_name(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments `[GRAPH] [NAME]`, both optional.

    One argument is the name of a query if it is written like one, else the address of a graph:
    `ships` is a name, `./ships` an address.
    """

    @wraps(command)
    def run(arguments: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401
        if len(arguments) > 2:
            raise click.UsageError(f"unexpected argument '{arguments[2]}'")
        graph, name = (*arguments, None, None)[:2]
        if graph is not None and name is None and _QUERY_NAME.fullmatch(graph):
            graph, name = None, graph
        command(uri=graph, name=name, **options)

    return click.argument("arguments", nargs=-1, metavar="[GRAPH] [NAME]")(run)


def query_options(*, stored: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of a query; the command gets them as `query`.

    With `stored`, the argument `name` alone is the name of a stored query.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - of any command
            path, text = options.pop("query_path"), options.pop("query_text")
            is_name = stored and options["name"] is not None and path is None and text is None
            source = None if is_name else _read_query(path, text)
            values = read_params(options.pop("params"), options.pop("params_file"))
            command(*arguments, **options, query=QueryText(source, values))

        for option in (
            params_options,
            click.option("-e", "--query-string", "query_text", help="Query as text."),
            click.option("--query", "query_path", type=_FILE, help="Query file (.gq)."),
        ):
            run = option(run)
        return run

    return decorate


def params_options(command: _CommandT) -> _CommandT:
    """Add `--params` and `--params-file`."""
    about = "File with the parameters as a JSON object."
    command = click.option("--params-file", type=_FILE, help=about)(command)
    return click.option("--params", help="Parameters as a JSON object.")(command)


def _read_query(path: Path | None, text: str | None) -> str:
    """Return the text of the query, from a file or an option."""
    if (path is None) == (text is None):
        raise click.UsageError("no query given: pass either --query FILE or -e TEXT")
    return text if path is None else _text(path)  # type: ignore[return-value]


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
        text = next((word for word in given_line() if "{" in word), None)
        if text is not None:
            place = given_line().index(text)
            line = [*given_line()[:place], "-e", *given_line()[place:]]
            message = f"the text of a query is given with -e: `{line_text(line)}`"
        raise InvalidUsage(message)
    return graph


def output_style(format_: str | None) -> tuple[str, TableStyle]:
    """Return the format and table style of rows, from options and configuration."""
    defaults = load_user_config().defaults
    wraps = defaults.table_cell_layout == "wrap"
    return format_ or defaults.output or "table", TableStyle(defaults.table_max_column_width, wraps)
