"""This module is `omnigraph cleanup`."""

from __future__ import annotations

import click

from omnigraph.cli.addresses import graph_options, read_duration
from omnigraph.cli.graphs import open_addressed
from omnigraph.cli.output import print_json
from omnigraph.cli.progress import showing


@click.command()
@graph_options(positional=True)
@click.option("--keep", type=click.IntRange(min=0), help="Newest commits of each branch to retain.")
@click.option("--older-than", help="Retain what is younger: 90s, 15m, 12h, 30d, 2w.")
@click.option("--confirm", is_flag=True, help="Really remove; without it only tell.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cleanup(
    uri: str | None,
    store: str | None,
    keep: int | None,
    older_than: str | None,
    confirm: bool,
    as_json: bool,
) -> None:
    """Remove what no retained snapshot needs."""
    mode = "rw" if confirm else "ro"
    graph = open_addressed(uri, store, mode=mode, destroys=confirm)
    age = read_duration(older_than)
    with showing("cleaning up"):
        report = graph.cleanup(keep=keep, older_than=age, confirm=confirm)
    if not confirm:
        click.echo("dry run: nothing was removed; add --confirm to remove it", err=True)
    if as_json:
        print_json({"uri": graph.uri, **report.to_json()})
        return
    verb = "removed" if confirm else "would remove"
    for dataset in report.datasets:
        failed = f" error={dataset.error}" if dataset.error else ""
        click.echo(
            f"{dataset.type_key} bytes={dataset.bytes_removed} kept={dataset.bytes_kept} "
            f"versions={dataset.old_versions_removed}{failed}"
        )
    needed = report.bytes_kept - report.recent_bytes
    click.echo(f"{verb} {report.bytes_removed:,} bytes, {needed:,} are needed")
    if report.removable_at is not None:
        click.echo(
            f"{report.recent_files:,} files ({report.recent_bytes:,} bytes) are younger than "
            f"{report.floor.total_seconds() / 60:.0f} minutes and stay; they can be removed from "
            f"{report.removable_at:%Y-%m-%d %H:%M:%S} UTC on"
        )
