"""Read checks from folders with stored queries, for graphs that no server serves."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph.errors import InvalidInput
from omnigraph.graph import Graph

NO_CHECKS = "nothing was checked: pass --checks FOLDER with queries that have `@check`"
"""What to do where there are no checks."""

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


def checks_option(command: _CommandT) -> _CommandT:
    """Add the option that names a folder with checks."""
    return click.option(
        "--checks",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Folder or file of queries with `@check`; a served graph has its own.",
    )(command)


def with_checks(graph: Graph, folder: Path | None) -> Graph:
    """Return a graph with the checks of a folder."""
    if folder is None:
        return graph
    opened: object = graph  # a remote graph has the same methods
    if not isinstance(opened, Graph):
        message = "--checks does not apply to a remote graph: the server has its own checks"
        raise InvalidInput(message, code="remote_unsupported")
    checks = import_module("omnigraph.service.stored_checks").read_checks(folder)
    return graph.with_checks(checks)
