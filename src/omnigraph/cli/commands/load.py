"""`omnigraph load` and the deprecated `omnigraph ingest`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, engine_option, graph_options, warn_deprecated
from omnigraph.cli.output import print_json
from omnigraph.cli.progress import show_progress, spark_details
from omnigraph.write.load import LoadResult

MODES = ("append", "merge", "overwrite")


@click.command()
@graph_options(positional=True)
@actor_option
@click.option(
    "--data",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path, allow_dash=True),
    help="NDJSON file of nodes and edges, `-` for standard input; repeatable.",
)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="T=FILE",
    help="Parquet, CSV or Arrow file of a node type; repeatable.",
)
@click.option(
    "--edge",
    "edges",
    multiple=True,
    metavar="E=FILE",
    help="Parquet, CSV or Arrow file of an edge type; repeatable.",
)
@click.option(
    "--mode",
    required=True,
    type=click.Choice(MODES),
    help="How to handle entities that already exist.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="With --mode merge: keep properties that the data does not contain.",
)
@click.option(
    "--vectors-from",
    metavar="PROVIDER/MODEL",
    help="Embedding model of the vectors in the data.",
)
@click.option("--branch", default="main", help="Branch to load into.")
@click.option("--from", "base", help="Create the branch from this one if it does not exist.")
@click.option("--message", help="Message of the commit.")
@click.option("--encoding", help="Encoding of CSV and NDJSON files.  [default: utf-8]")
@engine_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def load(
    uri: str | None,
    store: str | None,
    actor: str | None,
    paths: tuple[Path, ...],
    nodes: tuple[str, ...],
    edges: tuple[str, ...],
    mode: str,
    partial: bool,
    vectors_from: str | None,
    branch: str,
    base: str | None,
    message: str | None,
    encoding: str | None,
    engine: str,
    as_json: bool,
) -> None:
    """Load data atomically as one commit."""
    data = _data(paths, nodes, edges)
    destroys = mode == "overwrite"
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor, destroys=destroys)
    with show_progress("loading", spark_details(engine)) as progress:
        done = graph.load(
            data,
            mode=mode,
            branch=branch,
            from_=base,
            message=message,
            partial=partial,
            vectors_from=vectors_from,
            progress=progress,
            engine=engine,
            encoding=encoding,
        )
    if as_json:
        print_json({"uri": graph.uri, **done.to_json()})
        return
    what = f"{done.total} entities across {len(done.nodes)} node types"
    summary = f"{what} and {len(done.edges)} edge types"
    click.echo(f"loaded {graph.uri} on branch {branch} with {mode}: {summary}")
    if done.commit is None:
        click.echo("nothing changed; no commit was made")
    if done.branch_created:
        click.echo(f"branch {branch} created from {base}")


def _data(paths: Sequence[Path], nodes: Sequence[str], edges: Sequence[str]) -> Any:  # noqa: ANN401
    """Return the argument `data` of `Graph.load`."""
    tables = {**_tables("node", nodes), **_tables("edge", edges)}
    if bool(paths) == bool(tables):
        raise click.UsageError(
            "no data given: pass either --data FILE, or --node T=FILE and --edge E=FILE"
        )
    if tables:
        return tables
    return [open_input(path) for path in paths]


def open_input(path: Path) -> Any:  # noqa: ANN401 - a path or an open stream
    """Return a path, or standard input for `-`."""
    return sys.stdin.buffer if str(path) == "-" else path


def _tables(kind: str, pairs: Sequence[str]) -> dict[str, Path]:
    tables: dict[str, Path] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise click.UsageError(f"invalid --{kind} '{pair}': expected TYPE=FILE")
        if f"{kind}:{name}" in tables:
            raise click.UsageError(f"--{kind} {name} is given twice")
        tables[f"{kind}:{name}"] = Path(path)
    return tables


# ----------------------------------------------------------------------
# `ingest`, deprecated in favour of `load`.


@click.command(hidden=True)
@graph_options(positional=True)
@actor_option
@click.option(
    "--data",
    "path",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    help="File of concatenated JSON values; `-` for standard input.",
)
@click.option("--branch", default="main", help="Branch to load into.")
@click.option(
    "--from", "base", default="main", help="Create the branch from this one if it does not exist."
)
@click.option(
    "--mode",
    default="merge",
    type=click.Choice(MODES),
    help="How to handle entities that already exist.",
)
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
    """Load records of the older, permissive format as one commit."""
    warn_deprecated("ingest", "load")
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor, destroys=mode == "overwrite")
    with show_progress("loading") as progress:
        done = graph.load(
            open_input(path), mode=mode, branch=branch, from_=base, strict=False, progress=progress
        )
    if as_json:
        print_json({"uri": graph.uri, **done.to_json()})
        return
    click.echo(_load_facts(done, path, base))
    for name, count in (*done.nodes.items(), *done.edges.items()):
        click.echo(f"  {name}: {count:,}")


def _load_facts(done: LoadResult, path: Path, base: str) -> str:
    became = "created" if done.branch_created else "exists"
    where = f"into branch {done.branch} from {base}"
    return f"ingested {done.total} entities from {path} {where} with {done.mode} (branch {became})"
