"""`omnigraph login` and `omnigraph logout`."""

from __future__ import annotations

import os
import sys

import click

from omnigraph.cli.options import json_option
from omnigraph.cli.output import print_result
from omnigraph.service.user_config import delete_token, read_user_config, store_token


@click.command()
@click.argument("name")
@click.option("--token", help="Token; read from standard input if not given.")
@json_option
def login(name: str, token: str | None) -> None:
    """Store the token for server NAME, readable only by you."""
    operator = read_user_config(os.environ)
    secret = token
    if secret is None:
        if sys.stdin.isatty():
            secret = click.prompt("token", hide_input=True, err=True)
        else:
            secret = sys.stdin.readline()
    store_token(operator, name, secret)
    declared = name in operator.servers
    if not declared:
        click.echo(f"note: {operator.folder / 'config.yaml'} has no server '{name}'", err=True)
    path = str(operator.credentials)
    facts = {"server": name, "credentials_path": path, "declared": declared}
    print_result(facts, f"stored credential for '{name}' in {path}")


# ----------------------------------------------------------------------
# Logout.


@click.command()
@click.argument("name")
@json_option
def logout(name: str) -> None:
    """Delete the token for server NAME."""
    operator = read_user_config(os.environ)
    delete_token(operator, name)
    facts = {"server": name, "credentials_path": str(operator.credentials)}
    print_result(facts, f"removed credential for '{name}' from {operator.credentials}")
