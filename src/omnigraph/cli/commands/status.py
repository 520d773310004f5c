"""`omnigraph status`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import count_text, print_result
from omnigraph.graph import Graph
from omnigraph.maintain.maintainer_lock import MaintainerInfo
from omnigraph.maintain.status import GraphStatus


@click.command()
@graph_command()
@click.option("--branch", default="main", help="Branch whose types to show.")
def status(graph: Graph, branch: str) -> None:
    """Show the size of a graph, its fragments and indexes, and its maintenance."""
    report = graph.maintenance.status(branch)
    print_result({"uri": graph.uri, **report.to_json()}, *_lines(report))


def _lines(report: GraphStatus) -> Iterator[str]:
    yield (
        f"{report.branch} at commit {report.commit_id}; "
        f"{count_text(report.branches, 'branch', 'branches')}, {count_text(report.tags, 'tag')}, "
        f"{count_text(report.files, 'file')}, {report.bytes:,} bytes"
    )
    for type_ in report.types:
        counts = type_.counts
        tasks = (("compaction", counts.compaction_due), ("indexing", counts.index_due))
        due = [task for task, is_due in tasks if is_due]
        yield (
            f"  {type_.type_key}: {count_text(counts.rows, 'row')}, "
            f"{count_text(counts.fragments, 'fragment')}, {type_.indexed:,} rows indexed, "
            f"{count_text(type_.versions, 'version')}, {type_.bytes:,} bytes"
            + (f"; due: {', '.join(due)}" if due else "")
        )
    yield f"retention: {report.retention or 'none, nothing is removed automatically'}"
    yield from _maintainer_lines(report.maintainer)


def _maintainer_lines(info: MaintainerInfo) -> Iterator[str]:
    state = info.state
    if state is None:
        yield "maintainer: running" if info.running else "maintainer: none"
        return
    where = f"process {state.pid} on {state.host}"
    verb = "running" if info.running else "not running, last"
    yield f"maintainer: {verb} {where}, since {state.started_at}, last pass {info.last_pass_at}"
    for action in state.last_actions:
        yield f"  {action}"
    if state.last_error is not None:
        yield f"  error at {state.last_error_at}: {state.last_error}"
