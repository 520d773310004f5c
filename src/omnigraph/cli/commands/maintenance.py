"""Maintenance commands: `optimize`, `cleanup`, `verify`, `repair` and `recover`."""

from __future__ import annotations

import sys

import click

from omnigraph.cli.damage import damaged_file_lines, print_last_good
from omnigraph.cli.open_graph import GraphOpener, graph_command
from omnigraph.cli.options import engine_option, read_duration
from omnigraph.cli.output import count_text, json_requested, print_json, print_result
from omnigraph.cli.progress import show_progress, spark_details
from omnigraph.graph import Graph
from omnigraph.graph.modes import EngineName


@click.command()
@graph_command(actor=True, mode="rw")
@click.option("--branch", default="main", help="Branch to optimize.")
@engine_option
def optimize(graph: Graph, branch: str, engine: EngineName) -> None:
    """Compact datasets and update indexes, as one commit that changes no entities."""
    with show_progress("optimizing", spark_details(engine)):
        report = graph.optimize(branch=branch, engine=engine)
    lines = [f"optimize {graph.uri} — {len(report.datasets)} datasets"]
    for dataset in report.datasets:
        if dataset.staged is None:
            continue
        parts = []
        if dataset.fragments_removed:
            parts.append(f"fragments {dataset.fragments_removed} -> {dataset.fragments_added}")
        if dataset.indexes_built:
            parts.append(f"indexes {', '.join(dataset.indexes_built)}")
        lines.append(f"  {dataset.type_key}: {'; '.join(parts)}")
    if report.commit is None:
        lines.append("  nothing to do")
    print_result({"uri": graph.uri, **report.to_json()}, *lines)


@click.command()
@graph_command(lazy=True)
@click.option(
    "--keep", type=click.IntRange(min=0), help="Number of newest commits to keep on each branch."
)
@click.option("--older-than", help="Keep commits younger than this: 90s, 15m, 12h, 30d, 2w.")
@click.option("--confirm", is_flag=True, help="Remove the files; without it only report.")
def cleanup(
    open_graph: GraphOpener, keep: int | None, older_than: str | None, confirm: bool
) -> None:
    """Remove files that no retained snapshot needs."""
    graph = open_graph(mode="rw" if confirm else "ro", destroys=confirm)
    age = read_duration(older_than)
    with show_progress("cleaning up"):
        report = graph.cleanup(keep=keep, older_than=age, confirm=confirm)
    if not confirm:
        click.echo("dry run: nothing was removed; add --confirm to remove it", err=True)
    verb = "removed" if confirm else "would remove"
    lines = [
        f"{dataset.type_key} bytes={dataset.bytes_removed} kept={dataset.bytes_kept} "
        f"versions={dataset.old_versions_removed}"
        + (f" error={dataset.error}" if dataset.error else "")
        for dataset in report.datasets
    ]
    needed = report.bytes_kept - report.recent_bytes
    lines.append(f"{verb} {report.bytes_removed:,} bytes, {needed:,} are needed")
    if report.removable_at is not None:
        lines.append(
            f"{report.recent_files:,} files ({report.recent_bytes:,} bytes) are younger than "
            f"{report.floor.total_seconds() / 60:.0f} minutes and stay; they can be removed from "
            f"{report.removable_at:%Y-%m-%d %H:%M:%S} UTC on"
        )
    print_result({"uri": graph.uri, **report.to_json()}, *lines)


@click.command()
@graph_command()
@engine_option
@click.option("--deep", is_flag=True, help="Compare every file with its checksum, too.")
def verify(graph: Graph, engine: EngineName, deep: bool) -> None:
    """Check the integrity of a graph; exit 1 if it is damaged."""
    with show_progress("verifying", spark_details(engine)):
        report = graph.verify(deep=deep, engine=engine)
    lines = [
        f"{'note' if problem.harmless else 'PROBLEM'}: {problem.where}: {problem.message}"
        for problem in report.problems
    ]
    for file in report.damaged_files:
        lines += damaged_file_lines(file)
    counts = [
        count_text(report.branches, "branch", "branches"),
        count_text(report.commits, "commit"),
        count_text(report.versions, "dataset version"),
    ]
    if report.files is not None:
        counts.append(count_text(report.files, "file"))
    if report.unsummed:
        files = count_text(report.unsummed, "file")
        lines.append(f"note: {files} without checksum, only decoded")
    lines.append(f"{'ok' if report.ok else 'damaged'}: {', '.join(counts)} checked")
    print_result(report.to_json(), *lines)
    sys.exit(0 if report.ok else 1)


@click.command()
@graph_command(actor=True, lazy=True)
@click.option("--confirm", is_flag=True, help="Make the repairs; without it only report.")
@click.option("--force", is_flag=True, help="With --confirm: repair in every case.")
@click.option(
    "--to-last-good",
    is_flag=True,
    help="Return every branch to its newest undamaged version; the graph need not open.",
)
def repair(open_graph: GraphOpener, confirm: bool, force: bool, to_last_good: bool) -> None:
    """Rebuild derived state, or return a damaged graph to its last good versions."""
    if force and not confirm:
        raise click.UsageError("--force needs --confirm")
    if to_last_good:
        print_last_good(open_graph.locate(mode="rw" if confirm else "ro"), confirm=confirm)
        return
    graph = open_graph(mode="rw" if confirm else "ro")
    with show_progress("repairing"):
        report = graph.repair(confirm=confirm)
    if json_requested():
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


@click.command()
@graph_command(lazy=True)
@click.option(
    "--stale-after", help="Treat operations without a heartbeat for this long as dead, e.g. 15m."
)
@click.option("--audit", is_flag=True, help="List past recoveries instead; changes nothing.")
def recover(open_graph: GraphOpener, stale_after: str | None, audit: bool) -> None:
    """Finish or undo operations interrupted by a crash."""
    if audit:
        if stale_after is not None:
            raise click.UsageError("--stale-after does not apply to --audit")
        _print_audit(open_graph())
        return
    graph = open_graph(mode="rw")
    with show_progress("recovering"):
        recoveries = graph.recover(stale_after=read_duration(stale_after))
    facts = [
        {
            "operation_id": recovery.intent.id,
            "graph_commit_id": recovery.intent.staged.id,
            "recovery_kind": str(recovery.kind),
        }
        for recovery in recoveries
    ]
    lines = [f"{r.kind} {r.intent.staged.operation} {r.intent.id}" for r in recoveries]
    print_result({"uri": graph.uri, "recovered": facts}, *(lines or ["nothing to recover"]))


def _print_audit(graph: Graph) -> None:
    rows = [{**row, "created_at": row["created_at"].isoformat()} for row in graph.recoveries()]
    lines = [
        f"{row['created_at']} {row['recovery_kind']} {row['operation']} on {row['branch']} "
        f"commit={row['graph_commit_id']}"
        + (f" actor={row['recovery_for_actor']}" if row["recovery_for_actor"] else "")
        for row in rows
    ]
    print_result({"uri": graph.uri, "recoveries": rows}, *(lines or ["no recoveries"]))
