"""This module is `omnigraph recover`."""

from __future__ import annotations

import click

from omnigraph.cli.addresses import graph_options, read_duration
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import print_json
from omnigraph.cli.progress import showing


@click.command()
@graph_options(positional=True)
@click.option(
    "--stale-after", help="Treat operations without a sign of life for this long as dead."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def recover(uri: str | None, store: str | None, stale_after: str | None, as_json: bool) -> None:
    """Finish or undo what dead processes left in flight."""
    graph = open_addressed(uri, store, mode="rw")
    with showing("recovering"):
        done = graph.recover(stale_after=read_duration(stale_after))
    if as_json:
        facts = [
            {
                "operation_id": recovery.intent.id,
                "graph_commit_id": recovery.intent.staged.id,
                "recovery_kind": str(recovery.kind),
            }
            for recovery in done
        ]
        print_json({"uri": graph.uri, "recovered": facts})
        return
    for recovery in done:
        click.echo(f"{recovery.kind} {recovery.intent.staged.operation} {recovery.intent.id}")
    if not done:
        click.echo("nothing to recover")
