"""Complete names in a shell: branches, types and queries of a graph, and what is configured.

Nothing is completed where the graph cannot be opened: a shell shows no errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, split_arg_string

from omnigraph.cli.command_line import ADDRESS_OPTIONS, STORE_VARIABLE, is_address
from omnigraph.errors import OmniError

_REFS = ("--branch", "--at", "--snapshot")
_OPTIONS = {
    **dict.fromkeys(_REFS, "refs"),
    "--type": "types",
    "--edges": "types",
    "--server": "servers",
    "--cluster": "clusters",
    "--profile": "profiles",
}
"""What the values of an option are, in every command that has it."""
_PARAMETERS = {
    "load --from": "refs",
    "ingest --from": "refs",
    "branch create --from": "refs",
    "branch merge --into": "refs",
    "branch merge source": "refs",
    "branch delete name": "refs",
    "merge --into": "refs",
    "merge source": "refs",
    "proposal create --into": "refs",
    "proposal create source": "refs",
    "tag delete name": "tags",
    "diff old_state": "refs",
    "diff new_state": "refs",
    "history type_name": "types",
    "blame type_name": "types",
    **{f"blob {name} type_name": "types" for name in ("get", "stat", "put", "clear")},
    "query arguments": "queries",
    "mutate arguments": "queries",
    "explain arguments": "queries",
    "alias name": "aliases",
    "login name": "servers",
    "logout name": "servers",
    "profile show name": "profiles",
}
"""What the values of other parameters are, by the words of the command and the parameter."""
_LOCATIONS = ("store", "server", "cluster", "profile")
_QUERY = re.compile(r"^\s*query\s+([a-z_]\w*)", re.MULTILINE)


def completed_type(words: str, name: str) -> click.ParamType[Any] | None:
    """Return the type of a parameter whose values can be completed."""
    if name == "uri":
        return _GraphThenNames()
    kind = _PARAMETERS.get(f"{words} {name}") or _OPTIONS.get(name)
    return None if kind is None else _Name(kind)


class _Name(click.ParamType[Any]):
    """The name of something that a graph or the configuration has."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin like this."""
        try:
            names = sorted(_NAMES[self.name](ctx))
        except (OmniError, click.ClickException, OSError, UnicodeDecodeError):
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class _GraphThenNames(click.ParamType[Any]):
    """The optional argument GRAPH, and the arguments behind it."""

    name = "graph"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return names for the next argument, if the graph is known, else folders."""
        words = _arguments(ctx)
        has_graph = bool(words) and is_address(words[0])
        if not has_graph and not _is_located(ctx):
            return [CompletionItem(incomplete, type="dir")]
        own = [one for one in ctx.command.params if isinstance(one, click.Argument)][1:]
        place = len(words) - has_graph
        return own[place].shell_complete(ctx, incomplete) if place < len(own) else []


def _arguments(ctx: click.Context) -> list[str]:
    """Return the words of a command that are not options, in order."""
    words: list[str] = []
    for parameter in ctx.command.params:
        if isinstance(parameter, click.Argument):
            value = ctx.params.get(parameter.name or "") or ()
            words += [value] if isinstance(value, str) else list(value)
    return words


def _line() -> list[tuple[str, str]]:
    """Return the words of the line, each with the one before it.

    Click parses nothing of a line that ends with an option whose value is missing.
    """
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))
    return list(pairwise(words))


def _graph_argument(ctx: click.Context) -> str | None:
    """Return the argument GRAPH of the line."""
    line = [word for before, word in _line() if not before.startswith("-")]
    return next((word for word in (*_arguments(ctx), *line) if is_address(word)), None)


def _is_located(ctx: click.Context) -> bool:
    """Return whether the graph is known without the argument."""
    if any(_option(ctx, name) for name in _LOCATIONS) or os.environ.get(STORE_VARIABLE):
        return True
    user = _user_config()
    has_default = user.defaults.store or user.defaults.server
    return bool(has_default or os.environ.get("OMNIGRAPH_PROFILE"))


def _option(ctx: click.Context, name: str) -> str | None:
    """Return the value of an option of the command, or before it."""
    value: str | None = ctx.params.get(name) or ctx.find_root().params.get(name)
    options = ADDRESS_OPTIONS if name == "store" else (f"--{name}",)
    return value or next((word for before, word in _line() if before in options), None)


# ----------------------------------------------------------------------
# Names.


def _user_config() -> Any:  # noqa: ANN401 - a UserConfig
    return import_module("omnigraph.service.user_config").read_user_config(os.environ)


def _graph(ctx: click.Context) -> Any:  # noqa: ANN401 - a Graph
    """Open the graph of the line that is completed."""
    for name in (*_LOCATIONS, "graph"):
        if (value := _option(ctx, name)) is not None:
            ctx.meta[f"omnigraph.{name}"] = value
    ctx.meta["omnigraph.quiet"] = True
    uri = None if ctx.meta.get("omnigraph.store") else _graph_argument(ctx)
    with ctx:
        return import_module("omnigraph.cli.open_graph").open_addressed_graph(uri, None)


def _refs(ctx: click.Context) -> Iterable[str]:
    graph = _graph(ctx)
    return {*graph.branches.list(), *(tag.name for tag in graph.tags.list())}


def _types(ctx: click.Context) -> Iterable[str]:
    catalog = _graph(ctx).schema.catalog
    return {*catalog.nodes, *catalog.edges}


def _queries(ctx: click.Context) -> Iterable[str]:
    """Return the queries of the file that is given, else the stored ones of a server."""
    path = ctx.params.get("query")
    if path:
        return _QUERY.findall(Path(path).read_text(encoding="utf-8"))
    graph = _graph(ctx)
    return [query["name"] for query in graph.queries()] if hasattr(graph, "queries") else []


_NAMES: Mapping[str, Callable[[click.Context], Iterable[str]]] = {
    "refs": _refs,
    "tags": lambda ctx: [tag.name for tag in _graph(ctx).tags.list()],
    "types": _types,
    "queries": _queries,
    "servers": lambda _: _user_config().servers,
    "clusters": lambda _: _user_config().clusters,
    "profiles": lambda _: _user_config().profiles,
    "aliases": lambda _: _user_config().aliases,
}
