"""`omnigraph export` and `omnigraph import`."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import click

from omnigraph.cli.older_lines import warn_deprecated
from omnigraph.cli.open_graph import open_addressed_graph, stored_address
from omnigraph.cli.options import (
    actor_and_policy,
    actor_option,
    engine_option,
    graph_options,
    json_option,
    store_option,
)
from omnigraph.cli.output import count_text, print_result
from omnigraph.cli.progress import report_line_counts, show_progress, spark_details
from omnigraph.graph import Graph, import_archive
from omnigraph.graph.modes import EngineName
from omnigraph.maintain.archive import ArchiveReport
from omnigraph.query.engine_names import SPARK_ENGINE


@click.command()
@graph_options()
@click.option("--branch", "at", default="main", help="Branch, tag, commit ID or timestamp.")
@click.option(
    "--type", "types", multiple=True, metavar="T", help="Export only this type; repeatable."
)
@click.option(
    "--parquet",
    "folder",
    type=click.Path(path_type=Path),
    help="Write one Parquet file per type into this folder instead of NDJSON.",
)
@click.option(
    "--parts",
    metavar="FOLDER",
    help="Write a folder of files per type into this folder or s3:// address instead of NDJSON.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(("parquet", "csv", "ndjson")),
    help="File format of --parts.  [default: parquet]",
)
@engine_option
@click.option(
    "--archive",
    type=click.Path(path_type=Path),
    help="Write an archive file for `import`; the suffix `.gz` compresses it.",
)
@click.option("--jsonl", is_flag=True, hidden=True)
@click.option(
    "--history", is_flag=True, help="With --archive: include all branches, tags and commits."
)
@partial(json_option, about="With --parquet, --parts or --archive: print JSON.")
def export(
    uri: str | None,
    store: str | None,
    at: str,
    types: tuple[str, ...],
    folder: Path | None,
    parts: str | None,
    format_: str | None,
    engine: EngineName,
    archive: Path | None,
    jsonl: bool,
    history: bool,
) -> None:
    """Export all entities as NDJSON that `load` reads."""
    if jsonl:
        warn_deprecated("export --jsonl", "export")
    destinations = {"--parquet": folder, "--parts": parts, "--archive": archive}
    ways = [name for name, path in destinations.items() if path is not None]
    if len(ways) > 1:
        raise click.UsageError(f"{' and '.join(ways)} are mutually exclusive")
    if archive is not None and types:
        raise click.UsageError(
            "--archive and --type are mutually exclusive: an archive contains all types"
        )
    if history and archive is None:
        raise click.UsageError("--history needs --archive FILE")
    if format_ is not None and parts is None:
        raise click.UsageError("--format needs --parts FOLDER")
    if engine == SPARK_ENGINE and parts is None:
        raise click.UsageError("--engine spark needs --parts FOLDER")
    graph = open_addressed_graph(uri, store)
    if archive is not None:
        with show_progress("exporting"):
            report = graph.export_archive(archive, at, history=history)
        size = f"{report.bytes:,} bytes"
        text = f"exported {graph.uri} with {_content_text(report)} to {archive}: {size}"
        print_result({"uri": graph.uri, **report.to_json()}, text)
    elif parts is not None:
        with show_progress("exporting", spark_details(engine)):
            kind = format_ or "parquet"
            counts = graph.export_parts(parts, at, types=types, format=kind, engine=engine)
        _print_export(graph, parts, counts)
    elif folder is not None:
        with show_progress("exporting"):
            counts = graph.export_parquet(folder, at, types=types)
        _print_export(graph, str(folder), counts)
    else:
        with nullcontext() if sys.stdout.isatty() else show_progress("exporting") as progress:
            for line in report_line_counts(graph.export(at, types=types), progress):
                click.echo(line)


def _content_text(report: ArchiveReport) -> str:
    if report.history:
        return "all of its history"
    return count_text(report.entities or 0, "entity", "entities")


def _print_export(graph: Graph, folder: str, counts: dict[str, int]) -> None:
    total = count_text(sum(counts.values()), "entity", "entities")
    text = f"exported {total} of {count_text(len(counts), 'type')} to {folder}"
    print_result({"uri": graph.uri, "folder": folder, "entities": counts}, text)


@click.command("import")
@actor_option
@click.argument("archive", type=click.Path(path_type=Path))
@click.argument("uri", metavar="[GRAPH]", required=False)
@store_option
@json_option
def import_(actor: str | None, archive: Path, uri: str | None, store: str | None) -> None:
    """Create a graph from a file written by `export --archive`."""
    address = stored_address(uri, store)
    who = actor_and_policy(actor)
    with show_progress("importing"):
        report = import_archive(archive, address, policy=who.policy, actor=who.actor)
    text = f"imported {archive} with {_content_text(report)} as {address}"
    print_result({"uri": address, **report.to_json()}, text)
