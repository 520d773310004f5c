"""The command `omnigraph pipeline warmup`."""

from __future__ import annotations

import click

from omnigraph import pipeline
from omnigraph.cli.output import print_json


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def warmup(as_json: bool) -> None:
    """Cache the Java classes of Spark for this user, so that sessions start faster."""
    report = pipeline.warm_up()
    if as_json:
        print_json(report.to_json())
        return
    click.echo(f"archive {report.archive}")
    click.echo(f"java {report.java.version}")
    click.echo(f"bytes {report.bytes}")
