"""`omnigraph serve`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph.cli.command_line import STORE_VARIABLE
from omnigraph.cli.open_graph import stored_address
from omnigraph.cli.options import durability_option, option_value, store_option
from omnigraph.errors import InvalidInput, install_command

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])
_FALSE = ("", "0", "false")
_NO_NAME = re.compile(r"[^a-zA-Z0-9-]")
_MAX_NAME = 64
_BIND = "127.0.0.1:8080"
_OPTION_BY_FIELD = {
    "graphs": "graph",
    "queries": "queries",
    "policies": "policy",
    "server_policy": "server-policy",
    "external_blobs": "external-blobs",
}


def served_graph_option(command: _CommandT) -> _CommandT:
    """Add `--graph`."""
    about = "Graph to serve; repeatable."
    return click.option("--graph", "graphs", multiple=True, metavar="NAME=URI", help=about)(command)


def served_content_options(command: _CommandT) -> _CommandT:
    """Add the options of stored queries and policies."""
    about = "Policy file of the server, e.g. for listing graphs."
    command = click.option("--server-policy", metavar="FILE", help=about)(command)
    for name, field, metavar, about in (
        ("policy", "policies", "[NAME=]FILE", "Policy file of a graph, or of all graphs."),
        ("queries", "queries", "[NAME=]DIR", "Folder of stored queries; repeatable."),
    ):
        option = click.option(f"--{name}", field, multiple=True, metavar=metavar, help=about)
        command = option(command)
    return command


_SECONDS = click.FloatRange(min=0.001)
_COUNT = click.IntRange(1)
_LIMITS: tuple[tuple[str, click.ParamType[Any], float, str], ...] = (
    ("query-timeout", _SECONDS, 60.0, "Maximum seconds of a query."),
    ("query-memory", _COUNT, 2**29, "Maximum bytes of memory for the rows of a query."),
    (
        "query-memory-total",
        _COUNT,
        2**31,
        "Maximum bytes of memory for the rows of all queries of a process.",
    ),
    ("deadline", _SECONDS, 300.0, "Maximum seconds of a request."),
    ("body-timeout", _SECONDS, 60.0, "Maximum seconds to receive a request body."),
    ("idle-timeout", _SECONDS, 30.0, "Seconds after which an idle connection is closed."),
    (
        "connection-age",
        _SECONDS,
        300.0,
        "Seconds after which a connection is closed with its next response.",
    ),
    ("threads", click.IntRange(1, 256), 8, "Number of concurrent reads per process."),
    ("connections", _COUNT, 1_000, "Maximum number of connections per process."),
    ("maintenance-interval", _SECONDS, 60.0, "Seconds between two passes of maintenance."),
    (
        "maintenance-cpu-share",
        click.FloatRange(min=0.01, max=1),
        0.25,
        "Share of one core that maintenance may use.",
    ),
)


def _limit_options(command: _CommandT) -> _CommandT:
    for name, kind, default, about in reversed(_LIMITS):
        command = click.option(f"--{name}", type=kind, default=default, help=about)(command)
    return command


@click.command()
@click.argument("addresses", nargs=-1, metavar="[GRAPH]...")
@served_graph_option
@store_option
@click.option("--cluster", metavar="DIR|URI", help="Cluster to serve, instead of --graph.")
@served_content_options
@click.option(
    "--external-blobs",
    multiple=True,
    metavar="URI",
    help="Location that external blobs may reference; repeatable.",
)
@durability_option
@click.option("--bind", metavar="HOST:PORT", help=f"Address to listen on.  [default: {_BIND}]")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, help="Number of worker processes."
)
@click.option(
    "--maintenance/--no-maintenance",
    default=True,
    help="Compact, index and clean up the graphs in the background, or not.",
)
@click.option(
    "--slow-query",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Log queries that take this long or longer, with their plan.",
)
@click.option("--unauthenticated", is_flag=True, help="Serve without authentication.")
@click.option("--require-all-graphs", is_flag=True, help="Exit if any graph cannot be served.")
@click.option(
    "--metrics-address",
    metavar="HOST:PORT",
    help="Address of /metrics alone; then the server itself has no /metrics.",
)
@click.option(
    "--audit-log",
    metavar="FILE",
    help="File for changes and policy decisions; - is standard output.",
)
@click.option("--tls-cert", type=click.Path(), help="TLS certificate (PEM).")
@click.option("--tls-key", type=click.Path(), help="Private key of the TLS certificate (PEM).")
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="IP|CIDR",
    help="Proxy whose X-Forwarded-For is logged as the client address.",
)
@_limit_options
def serve(**options: Any) -> None:  # noqa: ANN401 - one of each option
    """Start the HTTP server.

    A GRAPH is served under the name of its folder; --graph gives it another.
    """
    serving = import_server_module()
    environment = dict(os.environ)
    if options["audit_log"]:
        environment["OMNIGRAPH_AUDIT_LOG"] = options["audit_log"]
    host, port = bind_address(options["bind"] or environment.get("OMNIGRAPH_BIND") or _BIND)
    store = options["store"] or option_value("store")
    named = options["addresses"] or ((None,) if store is not None else ())
    options["graphs"] += tuple(map(_named_graph, named, repeat(options["store"])))
    apart = [name for name in _OPTION_BY_FIELD if options[name]]
    cluster = options["cluster"]
    if cluster is None and not options["graphs"]:
        cluster = environment.get("OMNIGRAPH_CLUSTER") or None
        if cluster is None and environment.get(STORE_VARIABLE, "").strip():
            options["graphs"] = (_named_graph(None, None),)
    if cluster is not None and apart:
        others = ", ".join(f"--{_OPTION_BY_FIELD[name]}" for name in apart)
        raise click.UsageError(
            f"--cluster and {others} are mutually exclusive: cluster.yaml declares them"
        )
    settings = serving.ServerSettings(
        cluster=cluster,
        graphs=parse_named_values(options["graphs"], "--graph"),
        queries=parse_named_values(options["queries"], "--queries", all_=serving.ALL_GRAPHS),
        policies=parse_named_values(options["policies"], "--policy", all_=serving.ALL_GRAPHS),
        server_policy=options["server_policy"],
        external_blobs=list(options["external_blobs"]),
        durability=options["durability"],
        unauthenticated=options["unauthenticated"]
        or _is_set(environment.get("OMNIGRAPH_UNAUTHENTICATED")),
        require_all=options["require_all_graphs"]
        or _is_set(environment.get("OMNIGRAPH_REQUIRE_ALL_GRAPHS")),
        host=host,
        port=port,
        workers=options["workers"],
        metrics_address=options["metrics_address"]
        or environment.get("OMNIGRAPH_METRICS_ADDRESS")
        or None,
        certificate=options["tls_cert"],
        key=options["tls_key"],
        trusted_proxies=list(options["trusted_proxies"])
        or _listed(environment.get("OMNIGRAPH_TRUSTED_PROXIES")),
        query_seconds=options["query_timeout"],
        slow_query_seconds=options["slow_query"],
        query_memory=options["query_memory"],
        query_memory_total=options["query_memory_total"],
        maintenance=serving.MaintenanceOptions(
            interval=options["maintenance_interval"], cpu_share=options["maintenance_cpu_share"]
        )
        if options["maintenance"]
        else None,
        limits=serving.ServerLimits(
            deadline=options["deadline"],
            body=options["body_timeout"],
            idle=options["idle_timeout"],
            age=options["connection_age"],
            threads=options["threads"],
            connections=options["connections"],
        ),
    )
    serving.serve(settings, environment, print_listen_address)


def _named_graph(uri: str | None, store: str | None) -> str:
    """Return the value of `--graph` for a graph that is given without a name."""
    address = stored_address(uri, store)
    return f"{graph_name(address)}={address}"


def graph_name(address: str) -> str:
    """Return the ID under which a graph is served: the name of its folder, without suffix."""
    folder = address.rstrip("/").rpartition("/")[2]
    if folder in ("", ".", ".."):
        folder = Path(address).resolve().name
    return _NO_NAME.sub("-", folder.partition(".")[0] or folder)[:_MAX_NAME]


def import_server_module(name: str = "omnigraph.server.serve") -> Any:  # noqa: ANN401 - a module
    """Import a module that needs an optional dependency."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        extra = "mcp" if name.startswith("omnigraph.mcp") else "server"
        message = f"the server needs the package {error.name}: {install_command(extra)}"
        raise InvalidInput(message, code="server_missing") from error


def bind_address(text: str) -> tuple[str, int]:
    """Return the host and port of `HOST:PORT`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise click.UsageError("invalid --bind: expected HOST:PORT, e.g. 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def print_listen_address(address: str) -> None:
    """Print the listen address, for programs that wait for it."""
    click.echo(f"OMNIGRAPH_LISTEN_ADDR={address}")


def parse_named_values(
    texts: Iterable[str], option: str, all_: str | None = None
) -> dict[str, str]:
    """Parse `NAME=VALUE` pairs; a value without a name, where allowed, applies to all."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals and all_ is not None:
            name, value = all_, text
        if not value or (not name and all_ is None):
            raise click.UsageError(f"invalid {option} '{text}': expected NAME=VALUE")
        if name in values:
            raise click.UsageError(f"{option} is given twice for '{name}'")
        values[name] = value
    return values


def _is_set(text: str | None) -> bool:
    return text is not None and text.strip().lower() not in _FALSE


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
