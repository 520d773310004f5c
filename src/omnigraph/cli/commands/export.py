"""`omnigraph export` and `omnigraph import`."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import (
    actor_and_policy,
    actor_option,
    engine_option,
    graph_options,
    json_option,
    warn_deprecated,
)
from omnigraph.cli.output import count_text, print_json, print_result
from omnigraph.cli.progress import report_line_counts, show_progress, spark_details
from omnigraph.graph import Graph, import_archive
from omnigraph.maintain.archive import ArchiveReport
from omnigraph.query.limits import SPARK_ENGINE


@click.command()
@graph_options(positional=True)
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
    default="parquet",
    help="File format of --parts.",
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
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="With --parquet, --parts or --archive: print JSON.",
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
    """Export all entities as NDJSON that `load` reads."""
    if jsonl:
        warn_deprecated("export --jsonl", "export")
    ways = [
        name for name, path in _destinations(folder, parts, archive).items() if path is not None
    ]
    if len(ways) > 1:
        raise click.UsageError(f"{' and '.join(ways)} are mutually exclusive")
    if archive is not None and types:
        raise click.UsageError(
            "--archive and --type are mutually exclusive: an archive contains all types"
        )
    if history and archive is None:
        raise click.UsageError("--history needs --archive FILE")
    if engine == SPARK_ENGINE and parts is None:
        raise click.UsageError("--engine spark needs --parts FOLDER")
    graph = open_addressed_graph(uri, store)
    if archive is not None:
        with show_progress("exporting"):
            report = graph.export_archive(archive, at, history=history)
        _print_archive(graph, archive, report, as_json)
    elif parts is not None:
        with show_progress("exporting", spark_details(engine)):
            counts = graph.export_parts(parts, at, types=types, format=format_, engine=engine)
        _print_export(graph, parts, counts, as_json)
    elif folder is not None:
        with show_progress("exporting"):
            counts = graph.export_parquet(folder, at, types=types)
        _print_export(graph, str(folder), counts, as_json)
    else:
        with nullcontext() if sys.stdout.isatty() else show_progress("exporting") as progress:
            for line in report_line_counts(graph.export(at, types=types), progress):
                click.echo(line)


def _destinations(
    folder: Path | None, parts: str | None, archive: Path | None
) -> dict[str, object]:
    return {"--parquet": folder, "--parts": parts, "--archive": archive}


def _print_archive(graph: Graph, path: Path, report: ArchiveReport, as_json: bool) -> None:
    if as_json:
        print_json({"uri": graph.uri, **report.to_json()})
        return
    what = (
        "all of its history"
        if report.entities is None
        else count_text(report.entities, "entity", "entities")
    )
    click.echo(f"exported {graph.uri} with {what} to {path}: {report.bytes:,} bytes")


def _print_export(graph: Graph, folder: str, counts: dict[str, int], as_json: bool) -> None:
    if as_json:
        print_json({"uri": graph.uri, "folder": folder, "entities": counts})
        return
    total = count_text(sum(counts.values()), "entity", "entities")
    click.echo(f"exported {total} of {count_text(len(counts), 'type')} to {folder}")


@click.command("import")
@actor_option
@click.argument("archive", type=click.Path(path_type=Path))
@click.argument("uri")
@json_option
def import_(actor: str | None, archive: Path, uri: str) -> None:
    """Create a graph from a file written by `export --archive`."""
    who = actor_and_policy(actor)
    with show_progress("importing"):
        report = import_archive(archive, uri, policy=who.policy, actor=who.actor)
    what = "all of its history"
    if not report.history:
        what = count_text(report.entities or 0, "entity", "entities")
    print_result({"uri": uri, **report.to_json()}, f"imported {archive} with {what} as {uri}")
