"""The command `omnigraph pipeline warmup`."""

from __future__ import annotations

import click

from omnigraph import pipeline
from omnigraph.cli.options import json_option
from omnigraph.cli.output import print_result


@click.command()
@json_option
def warmup() -> None:
    """Cache the Java classes of Spark for this user, so that sessions start faster."""
    report = pipeline.warm_up()
    lines = (f"archive {report.archive}", f"java {report.java.version}", f"bytes {report.bytes}")
    print_result(report.to_json(), *lines)
