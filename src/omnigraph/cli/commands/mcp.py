"""`omnigraph mcp`."""

from __future__ import annotations

import os
from typing import Any

import click

from omnigraph.cli.commands.serve import (
    bind_address,
    import_server_module,
    parse_named_values,
    print_listen_address,
    served_content_options,
    served_graph_option,
)
from omnigraph.cli.open_graph import stored_address
from omnigraph.cli.options import actor_option, graph_argument, store_option

DEFAULT_GRAPH_ID = "graph"
"""The ID of the graph that `--store` addresses."""


@click.command()
@graph_argument
@served_graph_option
@store_option
@served_content_options
@actor_option
@click.option("--http", is_flag=True, help="Serve over HTTP, with bearer tokens.")
@click.option("--bind", metavar="HOST:PORT", help="With --http: address to listen on.")
@click.option("--unauthenticated", is_flag=True, help="With --http: do not require tokens.")
def mcp(**options: Any) -> None:  # noqa: ANN401 - one of each option
    """Start an MCP server on standard input and output, or over HTTP."""
    if options["http"]:
        _serve_http(options)
        return
    if options["bind"] is not None or options["unauthenticated"]:
        raise click.UsageError("--bind and --unauthenticated need --http")
    module = import_server_module("omnigraph.mcp.stdio")
    local = module.StdioOptions(
        **_graph_settings(options, module.ALL_GRAPHS), actor=options["actor"]
    )
    module.serve(local)


def _serve_http(options: dict[str, Any]) -> None:
    if options["actor"] is not None:
        raise click.UsageError(
            "--as and --http are mutually exclusive: over HTTP the token identifies the actor"
        )
    module = import_server_module()
    host, port = bind_address(options["bind"] or "127.0.0.1:8080")
    settings = module.ServerSettings(
        **_graph_settings(options, module.ALL_GRAPHS),
        host=host,
        port=port,
        unauthenticated=options["unauthenticated"],
        agents_only=True,
    )
    module.serve(settings, os.environ, print_listen_address)


def _graph_settings(options: dict[str, Any], all_: str) -> dict[str, Any]:
    graphs = parse_named_values(options["graphs"], "--graph")
    named = [name for name in ("uri", "store") if options[name] is not None]
    if graphs and named:
        name = "the argument GRAPH" if named[0] == "uri" else "--store"
        raise click.UsageError(f"--graph and {name} are mutually exclusive")
    if not graphs:
        graphs = {DEFAULT_GRAPH_ID: stored_address(options["uri"], options["store"])}
    return {
        "graphs": graphs,
        "queries": parse_named_values(options["queries"], "--queries", all_=all_),
        "policies": parse_named_values(options["policies"], "--policy", all_=all_),
        "server_policy": options["server_policy"],
    }
