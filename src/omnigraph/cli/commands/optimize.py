"""This module is `omnigraph optimize`."""

from __future__ import annotations

import click

from omnigraph.cli.addresses import actor_option, engine_option, graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import print_json
from omnigraph.cli.progress import showing, spark_details


@click.command()
@graph_options(positional=True)
@actor_option
@click.option("--branch", default="main", help="Branch to optimize.")
@engine_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def optimize(
    uri: str | None, store: str | None, actor: str | None, branch: str, engine: str, as_json: bool
) -> None:
    """Compact datasets and complete indexes, as one commit that changes no entity."""
    graph = open_addressed(uri, store, mode="rw", actor=actor)
    with showing("optimizing", spark_details(engine)):
        done = graph.optimize(branch=branch, engine=engine)
    if as_json:
        print_json({"uri": graph.uri, **done.to_json()})
        return
    click.echo(f"optimize {graph.uri} — {len(done.datasets)} datasets")
    for dataset in done.datasets:
        if dataset.staged is None:
            continue
        parts = []
        if dataset.fragments_removed:
            parts.append(f"fragments {dataset.fragments_removed} -> {dataset.fragments_added}")
        if dataset.indexes_built:
            parts.append(f"indexes {', '.join(dataset.indexes_built)}")
        click.echo(f"  {dataset.type_key}: {'; '.join(parts)}")
    if done.commit is None:
        click.echo("  nothing to do")
