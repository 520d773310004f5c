"""Resolve the address of the graph of a command.

The command line takes precedence over the environment, and the environment over the defaults of
the configuration. Functions here are pure: they take options and return an address or raise
InvalidUsage, with the corrected command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.cli.command_line import (
    ADDRESS_OPTIONS,
    STORE_VARIABLE,
    line_text,
    with_graph,
    with_server,
    without_option,
)
from omnigraph.cli.options import InvalidUsage
from omnigraph.service.user_config import Profile, UserConfig

DIRECT_COMMANDS = (
    "init",
    "studio",
    "mcp",
    "serve",
    "maintain",
    "optimize",
    "repair",
    "retention",
    "status",
    "cleanup",
    "verify",
    "recover",
    "index",
    "import",
    "embed",
    "lint",
)
"""Commands that open the graph itself; they do not work through a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressOptions:
    """The options of a command line and the variables of its environment that locate a graph."""

    uri: str | None = None
    store: str | None = None
    server: str | None = None
    cluster: str | None = None
    graph: str | None = None
    profile: str | None = None
    environment_store: str | None = None
    environment_profile: str | None = None
    line: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphAddress:
    """Where a graph is: in storage (`store`), behind a server, or in a cluster."""

    kind: str
    address: str
    graph: str | None = None


def is_local(address: str) -> bool:
    """Return whether an address is a local folder."""
    return "://" not in address or address.startswith("file://")


def resolve_address(options: AddressOptions, verb: str, operator: UserConfig) -> GraphAddress:
    """Return the address of the graph of a command; raise InvalidUsage when it is unclear."""
    address = (
        _explicit_address(options, operator)
        or _address_by_profile(options.profile, options, operator)
        or _environment_address(options, operator)
        or _default_address(options, operator)
    )
    if address is None:
        raise InvalidUsage(
            f"no graph given: pass its address, {_instead(with_graph(options.line, verb))}, or "
            f"--server or --profile, or set {STORE_VARIABLE}"
        )
    if address.kind == "server" and is_direct(verb):
        what = "a server" if options.server is None else "--server"
        line = with_graph(without_option(options.line, "--server", "--graph"), verb)
        raise InvalidUsage(
            f"`{verb}` is a direct command: {what} does not apply; pass the address of the graph, "
            + _instead(line)
        )
    if address.kind == "cluster" and not (is_direct(verb) or verb.startswith("pipeline ")):
        raise InvalidUsage(
            f"`{verb}` works on a graph or through a server: --cluster does not apply; pass the "
            f"address of the graph, {_instead(_named_by_address(options, verb))}, or --server"
        )
    if address.kind == "store" and options.graph is not None:
        line = without_option(options.line, "--graph")
        raise InvalidUsage(
            "--graph does not apply: the address is already that of one graph; use "
            f"`{line_text(line)}`"
        )
    return address


def _instead(line: Sequence[str]) -> str:
    return f"e.g. `{line_text(line)}`"


def _named_by_address(options: AddressOptions, verb: str) -> list[str]:
    """Return the line with an address in place of a cluster and its graph."""
    return with_graph(without_option(options.line, "--cluster", "--graph"), verb)


def is_direct(verb: str) -> bool:
    """Return whether a command opens the graph itself."""
    return verb.split(" ")[0] in DIRECT_COMMANDS


def _explicit_address(options: AddressOptions, operator: UserConfig) -> GraphAddress | None:
    named = (
        ("the argument GRAPH", options.uri),
        ("--store", options.store),
        ("--server", options.server),
        ("--cluster", options.cluster),
    )
    explicit = [(name, value) for name, value in named if value is not None]
    if len(explicit) > 1:
        raise InvalidUsage(_named_twice([name for name, _ in explicit], options))
    if not explicit:
        return None
    name, value = explicit[0]
    kind = name.removeprefix("--") if name in ("--server", "--cluster") else "store"
    if kind == "store" and value.startswith(("http://", "https://")):
        line = with_server(options.line, value)
        raise InvalidUsage(f"{value} is a server address: use `{line_text(line)}`")
    return _address(kind, value, options.graph, operator)


def _named_twice(names: Sequence[str], options: AddressOptions) -> str:
    """Return the error of a line that names several graphs; the first is kept as an example."""
    others = [
        word for name in names[1:] for word in (ADDRESS_OPTIONS if name == "--store" else (name,))
    ]
    line = without_option(options.line, *others)
    return f"{' and '.join(names)} are mutually exclusive: use one, {_instead(line)}"


def _address(kind: str, target: str, graph: str | None, operator: UserConfig) -> GraphAddress:
    """Return the address of a target: a server or cluster by name or address, or a graph."""
    if kind == "server":
        return GraphAddress("server", server_url(target, operator.servers), graph)
    if kind == "cluster":
        return GraphAddress("cluster", operator.clusters.get(target, target), graph)
    return GraphAddress("store", target)


def server_url(name: str, servers: Mapping[str, str]) -> str:
    """Return the address of a server, given its name or address."""
    if "://" in name:
        return name.rstrip("/")
    if name not in servers:
        names = ", ".join(sorted(servers)) or "none"
        raise InvalidUsage(f"unknown server '{name}'; configured servers: {names}")
    return servers[name]


def _address_by_profile(
    name: str | None, options: AddressOptions, operator: UserConfig
) -> GraphAddress | None:
    if name is None:
        return None
    profile = operator.profiles.get(name)
    if profile is None:
        names = ", ".join(sorted(operator.profiles)) or "none"
        raise InvalidUsage(f"unknown profile '{name}'; configured profiles: {names}")
    return profile_address(profile, options.graph, operator)


def _environment_address(options: AddressOptions, operator: UserConfig) -> GraphAddress | None:
    store = options.environment_store
    if store is None:
        return _address_by_profile(options.environment_profile, options, operator)
    if store.startswith(("http://", "https://")):
        message = f"{STORE_VARIABLE} is a server address: declare a profile and name it with"
        raise InvalidUsage(f"{message} OMNIGRAPH_PROFILE")
    return _address("store", store, options.graph, operator)


def profile_address(profile: Profile, graph: str | None, operator: UserConfig) -> GraphAddress:
    """Return the address that a profile names."""
    if profile.target is None:
        raise InvalidUsage(
            f"profile '{profile.name}' must have exactly one of server, cluster, store"
        )
    return _address(profile.kind, profile.target, graph or profile.default_graph, operator)


def cluster_address(options: AddressOptions, operator: UserConfig) -> GraphAddress | None:
    """Return the cluster that an option or a profile names, if any."""
    if options.cluster is not None:
        return _address("cluster", options.cluster, options.graph, operator)
    name = options.profile
    if name is None and options.environment_store is None:
        name = options.environment_profile
    profile = _address_by_profile(name, options, operator)
    return profile if profile is not None and profile.kind == "cluster" else None


def _default_address(options: AddressOptions, operator: UserConfig) -> GraphAddress | None:
    defaults = operator.defaults
    if defaults.server is not None:
        graph = options.graph or defaults.default_graph
        return _address("server", defaults.server, graph, operator)
    return None if defaults.store is None else GraphAddress("store", defaults.store)
