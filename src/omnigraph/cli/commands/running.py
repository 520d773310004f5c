"""`omnigraph running`: the running queries of a served graph."""

from __future__ import annotations

import click

from omnigraph.cli.open_graph import GraphOpener, graph_command
from omnigraph.cli.options import InvalidUsage, command_words
from omnigraph.cli.output import print_result
from omnigraph.graph import Graph
from omnigraph.query.running import RunningQuery


@click.group()
def running() -> None:
    """List and cancel the running queries of a served graph."""


@running.command("list")
@graph_command(lazy=True)
def list_running(open_graph: GraphOpener) -> None:
    """List the running queries, the oldest first; your own, or all for an admin."""
    queries = _served(open_graph).running_queries()
    facts = [{**q.to_json(), "started_at": q.started_at.isoformat()} for q in queries]
    lines = ["\t".join(_cells(query)) for query in queries]
    print_result({"queries": facts}, *(lines or ["no queries are running"]))


@running.command()
@click.argument("query_id")
@graph_command(lazy=True)
def cancel(open_graph: GraphOpener, query_id: str) -> None:
    """Cancel the running query with the ID QUERY_ID."""
    _served(open_graph).cancel_query(query_id)
    print_result({"query_id": query_id, "cancelled": True}, f"cancelled {query_id}")


def _cells(query: RunningQuery) -> list[str]:
    place, actor = query.operator or "start", query.actor or "anonymous"
    return [query.id, query.name, f"{query.seconds:.1f} s", f"at {place}", f"by {actor}"]


def _served(open_graph: GraphOpener) -> Graph:
    """Return the graph, which has to be served: other processes do not report their queries."""
    graph = open_graph()
    if not hasattr(graph, "invoke"):
        raise InvalidUsage(f"`{command_words()}` needs a server: pass --server NAME|URL")
    return graph
