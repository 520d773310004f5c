"""This module is `omnigraph export`."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from omnigraph.cli.addresses import engine_option, graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.older import warn_older
from omnigraph.cli.output import count_text, print_json
from omnigraph.cli.progress import counted, showing, spark_details
from omnigraph.graph import Graph
from omnigraph.maintain.archive import ArchiveReport
from omnigraph.query.choice import SPARK


@click.command()
@graph_options(positional=True)
@click.option("--branch", "at", default="main", help="Branch, tag, commit id or time.")
@click.option("--type", "types", multiple=True, metavar="T", help="Only this type; repeatable.")
@click.option(
    "--parquet",
    "folder",
    type=click.Path(path_type=Path),
    help="Write one Parquet file per type into this folder instead of lines.",
)
@click.option(
    "--parts",
    metavar="FOLDER",
    help="Write a folder of files per type below this folder or s3:// address instead of lines.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(("parquet", "csv", "ndjson")),
    default="parquet",
    help="What the files of --parts are.",
)
@engine_option
@click.option(
    "--archive",
    type=click.Path(path_type=Path),
    help="Write one file that `import` makes a graph of; `.gz` at its end compresses it.",
)
@click.option("--jsonl", is_flag=True, hidden=True)
@click.option("--history", is_flag=True, help="With --archive: all branches, tags and commits.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="With --parquet, --parts or --archive: print facts as JSON.",
)
def export(
    uri: str | None,
    store: str | None,
    at: str,
    types: tuple[str, ...],
    folder: Path | None,
    parts: str | None,
    format_: str,
    engine: str,
    archive: Path | None,
    jsonl: bool,
    history: bool,
    as_json: bool,
) -> None:
    """Write out all entities, as lines that `load` reads back."""
    if jsonl:
        warn_older("export --jsonl", "export")
    ways = [name for name, given in _ways(folder, parts, archive).items() if given is not None]
    if len(ways) > 1:
        raise click.UsageError(f"{' and '.join(ways)} exclude each other")
    if archive is not None and types:
        raise click.UsageError("--archive takes no --type: it holds everything")
    if history and archive is None:
        raise click.UsageError("--history needs --archive FILE")
    if engine == SPARK and parts is None:
        raise click.UsageError("--engine spark needs --parts FOLDER: executors write files")
    graph = open_addressed(uri, store)
    if archive is not None:
        with showing("exporting"):
            made = graph.export_archive(archive, at, history=history)
        _tell_archive(graph, archive, made, as_json)
    elif parts is not None:
        with showing("exporting", spark_details(engine)):
            counts = graph.export_parts(parts, at, types=types, format=format_, engine=engine)
        _tell(graph, parts, counts, as_json)
    elif folder is not None:
        with showing("exporting"):
            counts = graph.export_parquet(folder, at, types=types)
        _tell(graph, str(folder), counts, as_json)
    else:
        with nullcontext() if sys.stdout.isatty() else showing("exporting") as progress:
            for line in counted(graph.export(at, types=types), progress):
                click.echo(line)


def _ways(folder: Path | None, parts: str | None, archive: Path | None) -> dict[str, object]:
    return {"--parquet": folder, "--parts": parts, "--archive": archive}


def _tell_archive(graph: Graph, path: Path, made: ArchiveReport, as_json: bool) -> None:
    if as_json:
        print_json({"uri": graph.uri, **made.to_json()})
        return
    what = (
        "all of its history"
        if made.entities is None
        else count_text(made.entities, "entity", "entities")
    )
    click.echo(f"exported {graph.uri} with {what} to {path}: {made.bytes:,} bytes")


def _tell(graph: Graph, folder: str, counts: dict[str, int], as_json: bool) -> None:
    if as_json:
        print_json({"uri": graph.uri, "folder": folder, "entities": counts})
        return
    total = count_text(sum(counts.values()), "entity", "entities")
    click.echo(f"exported {total} of {count_text(len(counts), 'type')} to {folder}")
