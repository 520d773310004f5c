"""This module is `omnigraph export`."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.addresses import graph_options
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import count_text, print_json


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
    "--archive",
    type=click.Path(path_type=Path),
    help="Write one file that `import` makes a graph of; `.gz` at its end compresses it.",
)
@click.option("--history", is_flag=True, help="With --archive: all branches, tags and commits.")
@click.option(
    "--json", "as_json", is_flag=True, help="With --parquet or --archive: print facts as JSON."
)
def export(
    uri: str | None,
    store: str | None,
    at: str,
    types: tuple[str, ...],
    folder: Path | None,
    archive: Path | None,
    history: bool,
    as_json: bool,
) -> None:
    """Write out all entities, as lines that `load` reads back."""
    if archive is not None and (folder is not None or types):
        raise click.UsageError("--archive takes neither --parquet nor --type: it holds everything")
    if history and archive is None:
        raise click.UsageError("--history needs --archive FILE")
    graph = open_addressed(uri, store)
    if archive is not None:
        made = graph.export_archive(archive, at, history=history)
        if as_json:
            print_json({"uri": graph.uri, **made.to_json()})
            return
        what = (
            "all of its history"
            if history
            else count_text(made.entities or 0, "entity", "entities")
        )
        click.echo(f"exported {graph.uri} with {what} to {archive}: {made.bytes:,} bytes")
        return
    if folder is None:
        for line in graph.export(at, types=types):
            click.echo(line)
        return
    counts = graph.export_parquet(folder, at, types=types)
    if as_json:
        print_json({"uri": graph.uri, "folder": str(folder), "entities": counts})
        return
    total = count_text(sum(counts.values()), "entity", "entities")
    click.echo(f"exported {total} of {count_text(len(counts), 'type')} to {folder}")
