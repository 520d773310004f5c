"""This module is `omnigraph recover`."""

from __future__ import annotations

import click

from omnigraph.cli.addresses import graph_options, read_duration
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import print_json
from omnigraph.cli.progress import showing
from omnigraph.graph import Graph


@click.command()
@graph_options(positional=True)
@click.option(
    "--stale-after", help="Treat operations without a sign of life for this long as dead."
)
@click.option("--audit", is_flag=True, help="List past recoveries instead; changes nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def recover(
    uri: str | None, store: str | None, stale_after: str | None, audit: bool, as_json: bool
) -> None:
    """Finish or undo operations that dead processes left unfinished."""
    if audit:
        if stale_after is not None:
            raise click.UsageError("--stale-after does not apply to --audit")
        _print_audit(open_addressed(uri, store), as_json)
        return
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


def _print_audit(graph: Graph, as_json: bool) -> None:
    rows = [{**row, "created_at": row["created_at"].isoformat()} for row in graph.recoveries()]
    if as_json:
        print_json({"uri": graph.uri, "recoveries": rows})
        return
    for row in rows:
        actor = f" actor={row['recovery_for_actor']}" if row["recovery_for_actor"] else ""
        click.echo(
            f"{row['created_at']} {row['recovery_kind']} {row['operation']} on {row['branch']} "
            f"commit={row['graph_commit_id']}{actor}"
        )
    if not rows:
        click.echo("no recoveries")
