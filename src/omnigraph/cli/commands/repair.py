"""This module is `omnigraph repair`."""

from __future__ import annotations

import click

from omnigraph.cli.addresses import graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import print_json
from omnigraph.cli.progress import showing


@click.command()
@graph_options(positional=True)
@click.option("--confirm", is_flag=True, help="Really do it; without it only tell.")
@click.option("--force", is_flag=True, help="With --confirm: refuse nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def repair(uri: str | None, store: str | None, confirm: bool, force: bool, as_json: bool) -> None:
    """Bring derived state up to date: what other programs see, and leftovers."""
    if force and not confirm:
        raise click.UsageError("--force needs --confirm")
    graph = open_addressed(uri, store, mode="rw" if confirm else "ro")
    with showing("repairing"):
        found = graph.repair(confirm=confirm)
    if as_json:
        facts = [dataset.to_json() for dataset in found]
        version = graph.snapshot().manifest_version
        head = {"uri": graph.uri, "confirm": confirm, "force": force}
        print_json({**head, "graph_manifest_version": version, "datasets": facts})
    else:
        for dataset in found:
            failed = f" error={dataset.error}" if dataset.error else ""
            click.echo(f"{dataset.type_key} {dataset.action}{failed}")
    if any(dataset.error for dataset in found):
        raise SystemExit(1)
