"""Maintenance commands: `optimize`, `cleanup`, `verify`, `repair` and `recover`."""

from __future__ import annotations

import sys

import click

from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, engine_option, graph_options, read_duration
from omnigraph.cli.output import count_text, print_json
from omnigraph.cli.progress import show_progress, spark_details
from omnigraph.graph import Graph


@click.command()
@graph_options(positional=True)
@actor_option
@click.option("--branch", default="main", help="Branch to optimize.")
@engine_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def optimize(
    uri: str | None, store: str | None, actor: str | None, branch: str, engine: str, as_json: bool
) -> None:
    """Compact datasets and update indexes, as one commit that changes no entities."""
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    with show_progress("optimizing", spark_details(engine)):
        done = graph.optimize(branch=branch, engine=engine)
    if as_json:
        print_json({"uri": graph.uri, **done.to_json()})
        return
    click.echo(f"optimize {graph.uri} — {len(done.datasets)} datasets")
    for dataset in done.datasets:
        if dataset.staged is None:
            continue
        parts = []
        if dataset.fragments_removed:
            parts.append(f"fragments {dataset.fragments_removed} -> {dataset.fragments_added}")
        if dataset.indexes_built:
            parts.append(f"indexes {', '.join(dataset.indexes_built)}")
        click.echo(f"  {dataset.type_key}: {'; '.join(parts)}")
    if done.commit is None:
        click.echo("  nothing to do")


# ----------------------------------------------------------------------
# Cleanup.


@click.command()
@graph_options(positional=True)
@click.option(
    "--keep", type=click.IntRange(min=0), help="Number of newest commits to keep on each branch."
)
@click.option("--older-than", help="Keep commits younger than this: 90s, 15m, 12h, 30d, 2w.")
@click.option("--confirm", is_flag=True, help="Remove the files; without it only report.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cleanup(
    uri: str | None,
    store: str | None,
    keep: int | None,
    older_than: str | None,
    confirm: bool,
    as_json: bool,
) -> None:
    """Remove files that no retained snapshot needs."""
    mode = "rw" if confirm else "ro"
    graph = open_addressed_graph(uri, store, mode=mode, destroys=confirm)
    age = read_duration(older_than)
    with show_progress("cleaning up"):
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


# ----------------------------------------------------------------------
# Verify.


@click.command()
@graph_options(positional=True)
@engine_option
@click.option("--deep", is_flag=True, help="Compare every file with its checksum, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(uri: str | None, store: str | None, engine: str, deep: bool, as_json: bool) -> None:
    """Check the integrity of a graph; exit 1 if it is damaged."""
    graph = open_addressed_graph(uri, store)
    with show_progress("verifying", spark_details(engine)):
        report = graph.verify(deep=deep, engine=engine)
    if as_json:
        print_json(report.to_json())
    else:
        for problem in report.problems:
            label = "note" if problem.harmless else "PROBLEM"
            click.echo(f"{label}: {problem.where}: {problem.message}")
        counts = [
            count_text(report.branches, "branch", "branches"),
            count_text(report.commits, "commit"),
            count_text(report.versions, "dataset version"),
        ]
        if report.files is not None:
            counts.append(count_text(report.files, "file"))
        if report.unsummed:
            click.echo(
                f"note: {count_text(report.unsummed, 'file')} without checksum, only decoded"
            )
        click.echo(f"{'ok' if report.ok else 'damaged'}: {', '.join(counts)} checked")
    sys.exit(0 if report.ok else 1)


# ----------------------------------------------------------------------
# Repair.


@click.command()
@graph_options(positional=True)
@click.option("--confirm", is_flag=True, help="Make the repairs; without it only report.")
@click.option("--force", is_flag=True, help="With --confirm: repair in every case.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def repair(uri: str | None, store: str | None, confirm: bool, force: bool, as_json: bool) -> None:
    """Rebuild derived state, such as the versions that other programs read."""
    if force and not confirm:
        raise click.UsageError("--force needs --confirm")
    graph = open_addressed_graph(uri, store, mode="rw" if confirm else "ro")
    with show_progress("repairing"):
        report = graph.repair(confirm=confirm)
    if as_json:
        facts = [dataset.to_json() for dataset in report]
        version = graph.snapshot().manifest_version
        head = {"uri": graph.uri, "confirm": confirm, "force": force}
        print_json({**head, "graph_manifest_version": version, "datasets": facts})
    else:
        for dataset in report:
            failed = f" error={dataset.error}" if dataset.error else ""
            click.echo(f"{dataset.type_key} {dataset.action}{failed}")
    if any(dataset.error for dataset in report):
        raise SystemExit(1)


# ----------------------------------------------------------------------
# Recover.


@click.command()
@graph_options(positional=True)
@click.option(
    "--stale-after", help="Treat operations without a heartbeat for this long as dead, e.g. 15m."
)
@click.option("--audit", is_flag=True, help="List past recoveries instead; changes nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def recover(
    uri: str | None, store: str | None, stale_after: str | None, audit: bool, as_json: bool
) -> None:
    """Finish or undo operations interrupted by a crash."""
    if audit:
        if stale_after is not None:
            raise click.UsageError("--stale-after does not apply to --audit")
        _print_audit(open_addressed_graph(uri, store), as_json)
        return
    graph = open_addressed_graph(uri, store, mode="rw")
    with show_progress("recovering"):
        done = graph.recover(stale_after=read_duration(stale_after))
    if as_json:
        facts = [
            {
                "operation_id": recovery.intent.id,
                "graph_commit_id": recovery.intent.staged.id,
                "recovery_kind": str(recovery.kind),
            }
            for recovery in done
        ]
        print_json({"uri": graph.uri, "recovered": facts})
        return
    for recovery in done:
        click.echo(f"{recovery.kind} {recovery.intent.staged.operation} {recovery.intent.id}")
    if not done:
        click.echo("nothing to recover")


def _print_audit(graph: Graph, as_json: bool) -> None:
    rows = [{**row, "created_at": row["created_at"].isoformat()} for row in graph.recoveries()]
    if as_json:
        print_json({"uri": graph.uri, "recoveries": rows})
        return
    for row in rows:
        actor = f" actor={row['recovery_for_actor']}" if row["recovery_for_actor"] else ""
        click.echo(
            f"{row['created_at']} {row['recovery_kind']} {row['operation']} on {row['branch']} "
            f"commit={row['graph_commit_id']}{actor}"
        )
    if not rows:
        click.echo("no recoveries")
