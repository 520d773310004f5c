"""`omnigraph diff`."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import click

from omnigraph.changes.diff import ChangeTotals, change_json, comparison_json
from omnigraph.cli.changes import change_filter_options, print_change, stat_lines, summary_text
from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import graph_options, json_option
from omnigraph.cli.output import json_requested, print_result, stream_json


@click.command()
@graph_options()
@click.argument("old_state", metavar="A")
@click.argument("new_state", metavar="B")
@change_filter_options
@click.option("--stat", is_flag=True, help="Print only the number of changes of each type.")
@json_option
@click.option(
    "--jsonl", "as_lines", is_flag=True, help="Print one JSON object per line for each change."
)
def diff(
    uri: str | None,
    store: str | None,
    old_state: str,
    new_state: str,
    scope: dict[str, Any],
    stat: bool,
    as_lines: bool,
) -> None:
    """Show the entities that differ between two states of a graph.

    A and B are branches, tags, commit IDs or timestamps.
    """
    if as_lines and (stat or json_requested()):
        raise click.UsageError(
            f"{'--stat' if stat else '--json'} and --jsonl are mutually exclusive"
        )
    graph, tally = open_addressed_graph(uri, store), ChangeTotals()
    old, new = graph.snapshot(old_state), graph.snapshot(new_state)
    changes = tally.counting(graph.diff(old, new, **scope))
    if stat:
        deque(changes, maxlen=0)
        value = {**comparison_json(old, new), "stats": tally.to_json()}
        print_result(value, *stat_lines(tally), summary_text(tally))
    elif json_requested():
        items = (change_json(change, old, new) for change in changes)
        stream_json(comparison_json(old, new), "changes", items, lambda: {"stats": tally.to_json()})
    elif as_lines:
        for change in changes:
            click.echo(json.dumps(change_json(change, old, new), ensure_ascii=False))
    else:
        for change in changes:
            print_change(change)
        click.echo(summary_text(tally))
