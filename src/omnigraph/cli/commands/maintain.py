"""`omnigraph maintain`."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import click

from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import json_requested, print_result
from omnigraph.cli.progress import show_progress
from omnigraph.graph import Graph
from omnigraph.maintain.maintainer_process import become_maintainer_process
from omnigraph.maintain.maintenance_steps import MaintainerSettings, MaintenancePass

_DEFAULTS = MaintainerSettings()


@click.command()
@graph_command(actor=True, mode="rw")
@click.option("--watch", is_flag=True, help="Go on until stopped (Ctrl-C, SIGTERM).")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=_DEFAULTS.interval,
    show_default=True,
    help="With --watch: seconds between two passes.",
)
@click.option(
    "--cpu-share",
    type=click.FloatRange(min=0.01, max=1),
    help="Share of one core to use.  [default: 0.25 with --watch, else 1]",
)
def maintain(graph: Graph, watch: bool, interval: float, cpu_share: float | None) -> None:
    """Compact, index, clean up by the retention and store topologies, as far as due."""
    share = cpu_share or (_DEFAULTS.cpu_share if watch else 1.0)
    settings = replace(_DEFAULTS, interval=interval, cpu_share=share)
    if not watch:
        with show_progress("maintaining"):
            result = graph.maintenance.run(settings)
        _print_pass(graph.uri, result)
        sys.exit(1 if result.errors else 0)
    stop = become_maintainer_process()
    click.echo(f"maintaining {graph.uri} every {interval:g} s", err=True)
    graph.maintenance.watch(stop, settings, partial(_print_pass, graph.uri, watch=True))


def _print_pass(uri: str, result: MaintenancePass, *, watch: bool = False) -> None:
    """Print a pass; while watching, only one that did something."""
    lines = [*result.actions, *(f"error: {message}" for message in result.errors)]
    if result.lost_races:
        lines.append("writers were faster; the rest is done later")
    if watch and not lines and not json_requested():
        return
    if result.skipped:
        lines = ["another process maintains this graph"]
    print_result({"uri": uri, **result.to_json()}, *(lines or ["nothing to do"]))
