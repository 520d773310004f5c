"""This module is `omnigraph graphs …`."""

from __future__ import annotations

import os

import click

from omnigraph.cli.addresses import WrongUse, refuse_scope, scope_options, verb
from omnigraph.cli.graphs import given, set_up
from omnigraph.cli.output import print_json
from omnigraph.cli.scope import resolve
from omnigraph.service.client import list_graphs
from omnigraph.service.config import token_for


@click.group()
def graphs() -> None:
    """Look at the graphs of a server."""


@graphs.command("list")
@scope_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_served(as_json: bool) -> None:
    """List the graphs that a server serves."""
    refuse_scope(verb())
    operator = set_up()
    scope = resolve(given(None, None), verb(), operator)
    if scope.kind != "server":
        message = f"`{verb()}` asks a server: a graph or a cluster does not apply"
        raise WrongUse(message)
    found = list_graphs(scope.address, token=token_for(scope.address, operator, os.environ))
    if as_json:
        print_json({"graphs": found})
        return
    for graph in found:
        click.echo(f"{graph['graph_id']}\t{graph['uri']}")
