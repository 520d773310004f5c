"""`omnigraph login` and `omnigraph logout`."""

from __future__ import annotations

import os
import sys

import click

from omnigraph.cli.output import print_json
from omnigraph.service.user_config import delete_token, read_user_config, store_token


@click.command()
@click.argument("name")
@click.option("--token", help="Token; read from standard input if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def login(name: str, token: str | None, as_json: bool) -> None:
    """Store the token for server NAME, readable only by you."""
    operator = read_user_config(os.environ)
    given = token
    if given is None:
        if sys.stdin.isatty():
            given = click.prompt("token", hide_input=True, err=True)
        else:
            given = sys.stdin.readline()
    store_token(operator, name, given)
    declared = name in operator.servers
    if not declared:
        click.echo(f"note: {operator.folder / 'config.yaml'} has no server '{name}'", err=True)
    if as_json:
        path = str(operator.credentials)
        print_json({"server": name, "credentials_path": path, "declared": declared})
        return
    click.echo(f"stored credential for '{name}' in {operator.credentials}")


# ----------------------------------------------------------------------
# Logout.


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def logout(name: str, as_json: bool) -> None:
    """Delete the token for server NAME."""
    operator = read_user_config(os.environ)
    delete_token(operator, name)
    if as_json:
        print_json({"server": name, "credentials_path": str(operator.credentials)})
        return
    click.echo(f"removed credential for '{name}' from {operator.credentials}")
