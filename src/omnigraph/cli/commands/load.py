"""`omnigraph load` and the deprecated `omnigraph ingest`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.command_line import given_line, line_text, without_option
from omnigraph.cli.older_lines import warn_deprecated
from omnigraph.cli.open_graph import GraphOpener, graph_command
from omnigraph.cli.options import InvalidUsage, durability_option, engine_option
from omnigraph.cli.output import print_notes, print_result
from omnigraph.cli.progress import show_progress, spark_details
from omnigraph.graph.modes import Durability, EngineName, LoadMode
from omnigraph.write.inputs.sources import is_table

MODES = ("append", "merge", "overwrite")


@click.command()
@graph_command(actor=True, lazy=True, mode="rw")
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
    default="merge",
    show_default=True,
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
@durability_option
def load(
    open_graph: GraphOpener,
    paths: tuple[Path, ...],
    nodes: tuple[str, ...],
    edges: tuple[str, ...],
    mode: LoadMode,
    partial: bool,
    vectors_from: str | None,
    branch: str,
    base: str | None,
    message: str | None,
    encoding: str | None,
    engine: EngineName,
    durability: Durability | None,
) -> None:
    """Load data atomically as one commit."""
    data = _data(paths, nodes, edges)
    graph = open_graph(destroys=mode == "overwrite", durability=durability)
    with show_progress("loading", spark_details(engine)) as progress:
        result = graph.load(
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
    types = f"{len(result.nodes)} node types and {len(result.edges)} edge types"
    summary = f"{result.total} entities across {types}"
    lines = [f"loaded {graph.uri} on branch {branch} with {mode}: {summary}"]
    if result.commit is None:
        lines.append("nothing changed; no commit was made")
    if result.branch_created:
        lines.append(f"branch {branch} created from {base}")
    print_result({"uri": graph.uri, **result.to_json()}, *lines)
    print_notes(result.notes)


def _data(paths: Sequence[Path], nodes: Sequence[str], edges: Sequence[str]) -> Any:  # noqa: ANN401
    """Return the argument `data` of `Graph.load`."""
    tables = {**_tables("node", nodes), **_tables("edge", edges)}
    if bool(paths) == bool(tables):
        raise click.UsageError(
            "no data given: pass either --data FILE, or --node T=FILE and --edge E=FILE"
        )
    if tables:
        return tables
    for path in paths:
        if is_table(path):
            line = [*without_option(given_line(), "--data"), "--node", f"TYPE={path}"]
            message = f"{path} is a table: give the type of its rows, e.g. `{line_text(line)}`"
            raise InvalidUsage(message)
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


@click.command(hidden=True)
@graph_command(actor=True, lazy=True, mode="rw")
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
def ingest(open_graph: GraphOpener, path: Path, branch: str, base: str, mode: LoadMode) -> None:
    """Load records of the older, permissive format as one commit."""
    warn_deprecated("ingest", "load")
    graph = open_graph(destroys=mode == "overwrite")
    with show_progress("loading") as progress:
        result = graph.load(
            open_input(path), mode=mode, branch=branch, from_=base, strict=False, progress=progress
        )
    became = "created" if result.branch_created else "exists"
    target = f"into branch {result.branch} from {base} with {result.mode} (branch {became})"
    lines = [f"ingested {result.total} entities from {path} {target}"]
    lines += [f"  {name}: {count:,}" for name, count in {**result.nodes, **result.edges}.items()]
    print_result({"uri": graph.uri, **result.to_json()}, *lines)
    print_notes(result.notes)
