"""This module decides which graph a command is about: the one resolver of all addresses.

What is said on the command line wins over a profile, and that over what was set up as default.
Everything here is pure: what was given goes in, a scope or WrongUse comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.cli.addresses import WrongUse
from omnigraph.service.config import Operator, Profile

DIRECT = (
    "init",
    "optimize",
    "repair",
    "cleanup",
    "verify",
    "recover",
    "index",
    "import",
    "embed",
    "lint",
)
"""Commands that need the graph itself; a server does not do this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line says about where a graph is."""

    uri: str | None = None
    store: str | None = None
    server: str | None = None
    cluster: str | None = None
    graph: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a graph is: in storage (`store`), behind a server, or in a cluster."""

    kind: str
    address: str
    graph: str | None = None


def is_local(address: str) -> bool:
    """Tell whether an address is a folder of this machine."""
    return "://" not in address or address.startswith("file://")


def resolve(given: Given, verb: str, operator: Operator) -> Scope:
    """Return where the graph is that a command is about; raise WrongUse when that is unclear."""
    found = _explicit(given, operator) or _by_profile(given, operator) or _default(given, operator)
    if found is None:
        raise WrongUse(
            "no graph addressed: give its address, e.g. ./my-graph, or --server, or --profile"
        )
    if found.kind == "server" and is_direct(verb):
        what = "a server" if given.server is None else "--server"
        raise WrongUse(
            f"`{verb}` is a direct command: {what} does not apply; give the graph itself"
        )
    if found.kind == "cluster" and not (is_direct(verb) or verb.startswith("pipeline ")):
        raise WrongUse(f"`{verb}` works on a graph or through a server: --cluster does not apply")
    if found.kind == "store" and given.graph is not None:
        raise WrongUse("--graph does not apply: the address is a single graph already")
    return found


def is_direct(verb: str) -> bool:
    """Tell whether a command needs the graph itself."""
    return verb.split(" ")[0] in DIRECT


def _explicit(given: Given, operator: Operator) -> Scope | None:
    named = (
        ("a graph address", given.uri),
        ("--store", given.store),
        ("--server", given.server),
        ("--cluster", given.cluster),
    )
    said = [(name, value) for name, value in named if value is not None]
    if len(said) > 1:
        names = " and ".join(name for name, _ in said)
        raise WrongUse(f"{names} are mutually exclusive")
    if not said:
        return None
    name, value = said[0]
    if name == "--server":
        return Scope("server", server_url(value, operator.servers), given.graph)
    if name == "--cluster":
        return Scope("cluster", operator.clusters.get(value, value), given.graph)
    if value.startswith(("http://", "https://")):
        raise WrongUse(f"{value} is a server: say --server {value}")
    return Scope("store", value)


def server_url(name: str, servers: Mapping[str, str]) -> str:
    """Return the address of a server that is given by name, or as one."""
    if "://" in name:
        return name.rstrip("/")
    if name not in servers:
        known = ", ".join(sorted(servers)) or "none"
        raise WrongUse(f"unknown server '{name}'; set up are: {known}")
    return servers[name]


def _by_profile(given: Given, operator: Operator) -> Scope | None:
    if given.profile is None:
        return None
    profile = operator.profiles.get(given.profile)
    if profile is None:
        known = ", ".join(sorted(operator.profiles)) or "none"
        raise WrongUse(f"unknown profile '{given.profile}'; set up are: {known}")
    return profile_scope(profile, given.graph, operator)


def profile_scope(profile: Profile, graph: str | None, operator: Operator) -> Scope:
    """Return what a profile stands for."""
    target, wanted = profile.target, graph or profile.default_graph
    if target is None:
        raise WrongUse(f"profile '{profile.name}' must have exactly one of server, cluster, store")
    if profile.kind == "server":
        return Scope("server", server_url(target, operator.servers), wanted)
    if profile.kind == "cluster":
        return Scope("cluster", operator.clusters.get(target, target), wanted)
    return Scope("store", target)


def cluster_scope(given: Given, operator: Operator) -> Scope | None:
    """Return the cluster that an option or a profile names, if one does."""
    if given.cluster is not None:
        address = operator.clusters.get(given.cluster, given.cluster)
        return Scope("cluster", address, given.graph)
    found = _by_profile(given, operator)
    return found if found is not None and found.kind == "cluster" else None


def _default(given: Given, operator: Operator) -> Scope | None:
    defaults = operator.defaults
    if defaults.server is not None:
        url = server_url(defaults.server, operator.servers)
        return Scope("server", url, given.graph or defaults.default_graph)
    return None if defaults.store is None else Scope("store", defaults.store)
