"""This module is `omnigraph ingest`, which `load` took the place of."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.addresses import actor_option, graph_options
from omnigraph.cli.commands.load import MODES, opened
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.older import warn_older
from omnigraph.cli.output import print_json
from omnigraph.cli.progress import showing
from omnigraph.write.load import LoadResult


@click.command(hidden=True)
@graph_options(positional=True)
@actor_option
@click.option(
    "--data",
    "path",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    help="File of JSON values, one after the other; `-` for standard input.",
)
@click.option("--branch", default="main", help="Branch to load into.")
@click.option("--from", "base", default="main", help="Branch to make it from, if it is missing.")
@click.option("--mode", default="merge", type=click.Choice(MODES), help="What becomes of existing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ingest(
    uri: str | None,
    store: str | None,
    actor: str | None,
    path: Path,
    branch: str,
    base: str,
    mode: str,
    as_json: bool,
) -> None:
    """Load records of the older, forgiving grammar as one commit."""
    warn_older("ingest", "load")
    graph = open_addressed(uri, store, mode="rw", actor=actor, destroys=mode == "overwrite")
    with showing("loading") as progress:
        done = graph.load(
            opened(path), mode=mode, branch=branch, from_=base, strict=False, progress=progress
        )
    if as_json:
        print_json({"uri": graph.uri, **done.to_json()})
        return
    click.echo(_told(done, path, base))
    for name, count in (*done.nodes.items(), *done.edges.items()):
        click.echo(f"  {name}: {count:,}")


def _told(done: LoadResult, path: Path, base: str) -> str:
    became = "created" if done.branch_created else "exists"
    where = f"into branch {done.branch} from {base}"
    return f"ingested {done.total} entities from {path} {where} with {done.mode} (branch {became})"
