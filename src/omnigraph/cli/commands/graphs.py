"""`omnigraph graphs`."""

from __future__ import annotations

import os
from dataclasses import replace

import click

from omnigraph.cli.graph_address import resolve_address
from omnigraph.cli.open_graph import address_options, load_user_config
from omnigraph.cli.options import (
    InvalidUsage,
    command_words,
    json_option,
    location_options,
    refuse_unused_options,
)
from omnigraph.cli.output import print_result
from omnigraph.service.client import list_graphs
from omnigraph.service.user_config import token_for


@click.group()
def graphs() -> None:
    """List the graphs of a server."""


@graphs.command("list")
@location_options
@json_option
def list_served() -> None:
    """List the graphs of a server."""
    refuse_unused_options(command_words())
    operator = load_user_config()
    options = replace(address_options(None, None), environment_store=None)
    scope = resolve_address(options, command_words(), operator)
    if scope.kind != "server":
        message = f"`{command_words()}` needs a server: pass --server NAME|URL"
        raise InvalidUsage(message)
    listed = list_graphs(scope.address, token=token_for(scope.address, operator, os.environ))
    print_result({"graphs": listed}, *(f"{graph['graph_id']}\t{graph['uri']}" for graph in listed))
