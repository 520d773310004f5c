"""This module is `omnigraph logout`."""

from __future__ import annotations

import os

import click

from omnigraph.cli.output import print_json
from omnigraph.service.config import forget_token, read_operator


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def logout(name: str, as_json: bool) -> None:
    """Forget the token for the server NAME."""
    operator = read_operator(os.environ)
    forget_token(operator, name)
    if as_json:
        print_json({"server": name, "credentials_path": str(operator.credentials)})
        return
    click.echo(f"removed credential for '{name}' from {operator.credentials}")
