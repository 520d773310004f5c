"""`omnigraph graphs`."""

from __future__ import annotations

import os

import click

from omnigraph.cli.graph_address import resolve_address
from omnigraph.cli.open_graph import address_options, load_user_config
from omnigraph.cli.options import (
    InvalidUsage,
    command_words,
    location_options,
    refuse_unused_options,
)
from omnigraph.cli.output import print_json
from omnigraph.service.client import list_graphs
from omnigraph.service.user_config import token_for


@click.group()
def graphs() -> None:
    """List the graphs of a server."""


@graphs.command("list")
@location_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_served(as_json: bool) -> None:
    """List the graphs of a server."""
    refuse_unused_options(command_words())
    operator = load_user_config()
    scope = resolve_address(address_options(None, None), command_words(), operator)
    if scope.kind != "server":
        message = f"`{command_words()}` needs a server: pass --server NAME|URL"
        raise InvalidUsage(message)
    listed = list_graphs(scope.address, token=token_for(scope.address, operator, os.environ))
    if as_json:
        print_json({"graphs": listed})
        return
    for graph in listed:
        click.echo(f"{graph['graph_id']}\t{graph['uri']}")
