"""This module is `omnigraph import`."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.addresses import acting, actor_option
from omnigraph.cli.output import count_text, print_json
from omnigraph.cli.progress import showing
from omnigraph.graph import import_archive


@click.command("import")
@actor_option
@click.argument("archive", type=click.Path(path_type=Path))
@click.argument("uri")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_(actor: str | None, archive: Path, uri: str, as_json: bool) -> None:
    """Make a graph of a file that `export --archive` wrote."""
    who = acting(actor)
    with showing("importing"):
        made = import_archive(archive, uri, policy=who.policy, actor=who.actor)
    if as_json:
        print_json({"uri": uri, **made.to_json()})
        return
    what = "all of its history"
    if not made.history:
        what = count_text(made.entities or 0, "entity", "entities")
    click.echo(f"imported {archive} with {what} as {uri}")
