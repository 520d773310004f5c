"""The command `omnigraph pipeline warmup`."""

from __future__ import annotations

import os

import click

from omnigraph import pipeline
from omnigraph.cli.options import json_option
from omnigraph.cli.output import print_result

BACKGROUND_VARIABLE = "OMNIGRAPH_SPARK_ARCHIVE"
"""0: the first run of a user does not cache the Java classes of Spark in the background."""


def prepare_faster_starts() -> None:
    """Cache the Java classes of Spark in the background, once, after the first run of a user."""
    if os.environ.get(BACKGROUND_VARIABLE) == "0":
        return
    archive = pipeline.warm_up_in_background()
    if archive is not None:
        message = f"caching the Java classes of Spark in {archive.parent}: later runs start faster"
        click.echo(message, err=True)


@click.command()
@json_option
def warmup() -> None:
    """Cache the Java classes of Spark for this user, so that sessions start faster."""
    report = pipeline.warm_up()
    lines = (f"archive {report.archive}", f"java {report.java.version}", f"bytes {report.bytes}")
    print_result(report.to_json(), *lines)
