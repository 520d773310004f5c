"""This module is `omnigraph version`."""

from __future__ import annotations

import click

from omnigraph.cli.output import print_json
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def version(as_json: bool) -> None:
    """Print the versions of the program and of the storage format it writes."""
    if as_json:
        print_json({"omnigraph": __version__, "internal_schema": INTERNAL_SCHEMA_VERSION})
        return
    click.echo(f"omnigraph {__version__}")
    click.echo(f"internal-schema {INTERNAL_SCHEMA_VERSION}")
