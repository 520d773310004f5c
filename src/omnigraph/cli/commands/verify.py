"""This module is `omnigraph verify`."""

from __future__ import annotations

import sys

import click

from omnigraph.cli.addresses import engine_option, graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import count_text, print_json
from omnigraph.cli.progress import showing, spark_details


@click.command()
@graph_options(positional=True)
@engine_option
@click.option("--deep", is_flag=True, help="Compare every file with its checksum.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(uri: str | None, store: str | None, engine: str, deep: bool, as_json: bool) -> None:
    """Prove that a graph is whole; exit 1 when it is not."""
    graph = open_addressed(uri, store)
    with showing("verifying", spark_details(engine)):
        found = graph.verify(deep=deep, engine=engine)
    if as_json:
        print_json(found.to_json())
    else:
        for problem in found.problems:
            label = "note" if problem.harmless else "PROBLEM"
            click.echo(f"{label}: {problem.where}: {problem.message}")
        counts = [
            count_text(found.branches, "branch", "branches"),
            count_text(found.commits, "commit"),
            count_text(found.versions, "dataset version"),
        ]
        if found.files is not None:
            counts.append(count_text(found.files, "file"))
        if found.unsummed:
            click.echo(f"note: {count_text(found.unsummed, 'file')} without checksum, only decoded")
        click.echo(f"{'ok' if found.ok else 'damaged'}: {', '.join(counts)} checked")
    sys.exit(0 if found.ok else 1)
