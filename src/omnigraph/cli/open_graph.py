"""Open the graph that a command addresses: in storage, or through a server.

Importing storage takes half a second: a command that may not need a graph imports this
module when it needs one. Modules of remote graphs and clusters are imported only for those.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click

from omnigraph.cli.command_line import STORE_VARIABLE, given_line, is_address
from omnigraph.cli.graph_address import (
    AddressOptions,
    GraphAddress,
    is_local,
    resolve_address,
)
from omnigraph.cli.options import (
    InvalidUsage,
    actor_and_policy,
    actor_option,
    command_words,
    graph_options,
    option_value,
)
from omnigraph.cli.output import JSON_KEY, wants_json
from omnigraph.errors import InvalidInput
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.graph.modes import Durability, OpenMode
from omnigraph.policy import Policy
from omnigraph.service.user_config import PROFILE_VARIABLE, UserConfig, read_user_config

_ECHOED_COMMANDS = (
    "load",
    "ingest",
    "branch create",
    "branch delete",
    "branch merge",
    "merge",
    "proposal merge",
    "protection clear",
    "protection set",
    "schema apply",
    "optimize",
    "repair",
    "cleanup",
)


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """The address of a graph in storage, and how it is accessed."""

    address: str
    policy: Policy | Path | None
    actor: str | None


@dataclass(frozen=True, slots=True)
class GraphOpener:
    """Opens the graph that a command addresses."""

    uri: str | None
    store: str | None
    mode: OpenMode
    actor: str | None
    destroys: bool

    def __call__(
        self,
        *,
        mode: OpenMode | None = None,
        destroys: bool | None = None,
        durability: Durability | None = None,
    ) -> Graph:
        """Return the open graph; by default as the command declares."""
        return open_addressed_graph(
            self.uri,
            self.store,
            mode=self.mode if mode is None else mode,
            actor=self.actor,
            destroys=self.destroys if destroys is None else destroys,
            durability=durability,
        )

    def locate(self, *, mode: str) -> StoredGraph:
        """Return where the graph is stored without opening it: it may be damaged."""
        operator = load_user_config()
        scope = resolve_address(address_options(self.uri, self.store), command_words(), operator)
        stored = _stored_graph(scope, operator, self.actor, mode)
        _print_address(scope, stored.address)
        return stored


def open_addressed_graph(  # noqa: PLR0913 - the options of opening a graph
    uri: str | None,
    store: str | None,
    *,
    mode: OpenMode = "ro",
    actor: str | None = None,
    destroys: bool = False,
    graph_id: str | None = None,
    durability: Durability | None = None,
) -> Graph:
    """Open the addressed graph; a remote graph has the same methods.

    A command that `destroys` remote data asks for confirmation. `graph_id` is a graph
    of the addressed cluster, if no option names one.
    """
    operator = load_user_config()
    scope = resolve_address(address_options(uri, store), command_words(), operator)
    if scope.graph is None and graph_id is not None:
        scope = replace(scope, graph=graph_id)
    if scope.kind == "server":
        if mode == "rw" and actor_and_policy(actor).actor is not None:
            message = "--as does not apply to a remote graph: its token identifies the actor"
            raise InvalidUsage(message)
        if durability is not None:
            message = "--durability does not apply to a remote graph: it is an option of `serve`"
            raise InvalidUsage(message)
        graph = cast(
            Graph, import_module("omnigraph.cli.remote").open_remote_graph(scope, operator)
        )
    else:
        stored = _stored_graph(scope, operator, actor, mode)
        graph = open_graph(
            stored.address,
            mode=mode,
            policy=stored.policy,
            actor=stored.actor,
            durability=durability,
        )
    _print_address(scope, graph.uri)
    if destroys and not is_local(graph.uri):
        _confirm(graph.uri)
    return graph


def _stored_graph(
    scope: GraphAddress, operator: UserConfig, actor: str | None, mode: str
) -> StoredGraph:
    """Return where a graph of a folder, a bucket or a cluster is stored."""
    who = actor_and_policy(actor)
    address, policy = (scope.address, None) if scope.kind == "store" else _cluster_graph(scope)
    if policy is not None and who.policy is not None:
        message = "--policy does not apply: the cluster has a policy for this graph"
        raise InvalidUsage(message)
    has_default = mode == "rw" or policy is not None
    acts = who.actor or (operator.actor if has_default else None)
    return StoredGraph(address, policy or who.policy, acts)


def graph_command(
    *,
    positional: bool = True,
    optional: str | None = None,
    actor: bool = False,
    lazy: bool = False,
    mode: OpenMode = "ro",
    destroys: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command on the addressed graph, which is its first argument.

    It takes the options of addresses, `--as` if it records an `actor`, and `--json`, which
    `print_result` follows. A `lazy` command gets a function that opens the graph instead. An
    `optional` argument alone is the graph if it is written like an address.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(store: str | None, as_json: bool, uri: str | None = None, **options: Any) -> None:  # noqa: ANN401
            if optional is not None and uri is None and is_address(options[optional] or ""):
                uri, options[optional] = options[optional], None
            click.get_current_context().meta[JSON_KEY] = as_json
            recorded = options.pop("actor") if actor else None
            opens = GraphOpener(uri, store, mode, recorded, destroys)
            command(opens if lazy else opens(), **options)

        json_option = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
        run.__dict__.setdefault("__click_params__", []).insert(0, json_option)
        return graph_options(positional=positional)(actor_option(run) if actor else run)

    return decorate


def load_user_config() -> UserConfig:
    """Return the configuration of the user; warn once about unknown keys."""
    meta = click.get_current_context().meta
    cached: UserConfig | None = meta.get("omnigraph.operator")
    if cached is not None:
        return cached
    operator = read_user_config(os.environ)
    for warning in operator.warnings:
        click.echo(f"warning: {warning}", err=True)
    meta["omnigraph.operator"] = operator
    return operator


def stored_address(uri: str | None, store: str | None) -> str:
    """Return the address, in storage, of a graph that the command creates or serves."""
    address = resolve_address(address_options(uri, store), command_words(), load_user_config())
    if address.kind != "store":
        message = f"`{command_words()}` works on a graph in storage: pass its address"
        raise InvalidUsage(message)
    return address.address


def address_options(uri: str | None, store: str | None) -> AddressOptions:
    """Return the options and environment variables that locate the graph."""
    return AddressOptions(
        uri=uri,
        store=store if store is not None else option_value("store"),
        server=option_value("server"),
        cluster=option_value("cluster"),
        graph=option_value("graph"),
        profile=option_value("profile"),
        environment_store=_variable(STORE_VARIABLE),
        environment_profile=_variable(PROFILE_VARIABLE),
        line=tuple(given_line()),
    )


def _variable(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _cluster_graph(scope: GraphAddress) -> tuple[str, Policy | None]:
    """Return the address of a graph of a cluster, and the policy the cluster has for it."""
    serving = import_module("omnigraph.service.cluster.serving")
    store = serving.open_store(scope.address, None)
    state = store.read().state
    ids = state.graph_ids
    graph_id = scope.graph or (ids[0] if len(ids) == 1 else None)
    if graph_id is None:
        raise InvalidUsage(f"pass --graph ID; the cluster has: {', '.join(ids) or 'none'}")
    if graph_id not in ids:
        message = f"the cluster has no graph '{graph_id}'; it has: {', '.join(ids) or 'none'}"
        raise InvalidInput(message, code="graph_not_applied", graph=graph_id)
    return str(store.graph_uri(graph_id)), serving.graph_policy(store, state, graph_id)


def _print_address(scope: GraphAddress, uri: str) -> None:
    """Print the address of the graph before a command changes it."""
    if command_words() in _ECHOED_COMMANDS and not option_value("quiet"):
        direct = "direct, local" if is_local(uri) else "direct, remote"
        how = "served" if scope.kind == "server" else direct
        click.echo(f"omnigraph {command_words()} → {uri} ({how})", err=True)


def _confirm(uri: str) -> None:
    """Ask for confirmation before remote data is deleted; fail if there is no terminal."""
    if option_value("yes"):
        return
    message = f"`{command_words()}` deletes data at {uri}"
    if wants_json() or not sys.stdin.isatty():
        raise InvalidInput(f"{message}; add --yes to confirm", code="confirmation_required")
    click.echo(f"{message}. Continue? [yes/no] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidInput("not confirmed; nothing was changed", code="confirmation_required")
