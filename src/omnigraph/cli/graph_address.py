"""Resolve the address of the graph of a command.

Options of the command line take precedence over a profile, and a profile over the defaults.
Functions here are pure: they take options and return an address or raise InvalidUsage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.cli.options import InvalidUsage
from omnigraph.service.user_config import Profile, UserConfig

DIRECT_COMMANDS = (
    "init",
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
    """The options of a command line that locate a graph."""

    uri: str | None = None
    store: str | None = None
    server: str | None = None
    cluster: str | None = None
    graph: str | None = None
    profile: str | None = None


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
        or _address_by_profile(options, operator)
        or _default_address(options, operator)
    )
    if address is None:
        raise InvalidUsage(
            "no graph given: pass its address, e.g. ./my-graph, or --server, or --profile"
        )
    if address.kind == "server" and is_direct(verb):
        what = "a server" if options.server is None else "--server"
        raise InvalidUsage(
            f"`{verb}` is a direct command: {what} does not apply; pass the address of the graph"
        )
    if address.kind == "cluster" and not (is_direct(verb) or verb.startswith("pipeline ")):
        raise InvalidUsage(
            f"`{verb}` works on a graph or through a server: --cluster does not apply"
        )
    if address.kind == "store" and options.graph is not None:
        raise InvalidUsage("--graph does not apply: the address is already that of one graph")
    return address


def is_direct(verb: str) -> bool:
    """Return whether a command opens the graph itself."""
    return verb.split(" ")[0] in DIRECT_COMMANDS


def _explicit_address(options: AddressOptions, operator: UserConfig) -> GraphAddress | None:
    named = (
        ("a graph address", options.uri),
        ("--store", options.store),
        ("--server", options.server),
        ("--cluster", options.cluster),
    )
    explicit = [(name, value) for name, value in named if value is not None]
    if len(explicit) > 1:
        names = " and ".join(name for name, _ in explicit)
        raise InvalidUsage(f"{names} are mutually exclusive")
    if not explicit:
        return None
    name, value = explicit[0]
    kind = name.removeprefix("--") if name in ("--server", "--cluster") else "store"
    if kind == "store" and value.startswith(("http://", "https://")):
        raise InvalidUsage(f"{value} is a server address: pass --server {value}")
    return _address(kind, value, options.graph, operator)


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


def _address_by_profile(options: AddressOptions, operator: UserConfig) -> GraphAddress | None:
    if options.profile is None:
        return None
    profile = operator.profiles.get(options.profile)
    if profile is None:
        names = ", ".join(sorted(operator.profiles)) or "none"
        raise InvalidUsage(f"unknown profile '{options.profile}'; configured profiles: {names}")
    return profile_address(profile, options.graph, operator)


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
    profile = _address_by_profile(options, operator)
    return profile if profile is not None and profile.kind == "cluster" else None


def _default_address(options: AddressOptions, operator: UserConfig) -> GraphAddress | None:
    defaults = operator.defaults
    if defaults.server is not None:
        graph = options.graph or defaults.default_graph
        return _address("server", defaults.server, graph, operator)
    return None if defaults.store is None else GraphAddress("store", defaults.store)
