"""`omnigraph queries`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from omnigraph.cli.graph_address import cluster_address
from omnigraph.cli.open_graph import address_options, load_user_config
from omnigraph.cli.options import (
    InvalidUsage,
    command_words,
    json_option,
    location_options,
    refuse_unused_options,
)
from omnigraph.cli.output import print_result
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.graph import open as open_graph
from omnigraph.plan import MutationPlan, compile_query
from omnigraph.plan.query_plan import QueryPlan
from omnigraph.service.cluster.serving import ServedGraph, read_applied_revision


@click.group()
def queries() -> None:
    """List and check the stored queries of a cluster."""


@dataclass(frozen=True, slots=True)
class _StoredQueryCheck:
    """A stored query with its plan, or the error that prevents one."""

    name: str
    plan: QueryPlan | None = None
    error: str | None = None


@queries.command("list")
@location_options
@json_option
def list_stored() -> None:
    """List the applied stored queries."""
    checks = [check for check in _stored() if check.plan is not None]
    lines = [line for check in checks for line in _lines(check)]
    facts = {"queries": [_facts(check) for check in checks]}
    print_result(facts, *(lines or ["(no stored queries registered)"]))


@queries.command()
@location_options
@json_option
def validate() -> None:
    """Check the applied stored queries against the current schemas of their graphs."""
    checks = list(_stored())
    broken = [check for check in checks if check.error is not None]
    breakages = [{"query": check.name, "message": check.error} for check in broken]
    lines = [f"ERROR  query '{check.name}': {check.error}" for check in broken]
    facts = {"ok": not broken, "breakages": breakages, "warnings": []}
    print_result(facts, *(lines or [f"OK  {len(checks)} stored queries type-check"]))
    if broken:
        sys.exit(1)


def _stored() -> Iterator[_StoredQueryCheck]:
    for graph in _graphs():
        opened = open_graph(graph.uri, mode="ro")
        for name, text in sorted(graph.queries.items()):
            try:
                plan = compile_query(opened.schema.catalog, text, name, source_name=f"{name}.gq")
            except OmniError as error:
                yield _StoredQueryCheck(name, error=error.message)
            else:
                yield _StoredQueryCheck(name, plan)


def _graphs() -> tuple[ServedGraph, ...]:
    """Return the graphs of the addressed cluster, or the named one."""
    refuse_unused_options(command_words())
    scope = cluster_address(address_options(None, None), load_user_config())
    if scope is None:
        raise InvalidUsage(
            "no cluster given: pass --cluster DIR|URI, or --profile NAME of a cluster"
        )
    serving, graph_id = read_applied_revision(scope.address), scope.graph
    graphs = tuple(graph for graph in serving.graphs if graph_id in (None, graph.id))
    if not graphs:
        ids = ", ".join(graph.id for graph in serving.graphs)
        message = f"the cluster has no graph '{graph_id}'; it has: {ids}"
        raise InvalidInput(message, code="graph_not_applied", graph=graph_id)
    return graphs


def _lines(check: _StoredQueryCheck) -> Iterator[str]:
    assert check.plan is not None, "only what can be run is listed"
    params = ", ".join(f"${p.name}: {p.type}" for p in check.plan.parameters)
    kind = "mutation" if isinstance(check.plan, MutationPlan) else "read"
    yield f"{kind}  {check.name}({params})"
    for text in (check.plan.description, check.plan.instruction):
        if text:
            yield f"    {text}"


def _facts(check: _StoredQueryCheck) -> dict[str, Any]:
    plan = check.plan
    assert plan is not None, "only what can be run is listed"
    facts: dict[str, Any] = {
        "name": check.name,
        "mcp_expose": False,
        "tool_name": None,
        "mutation": isinstance(plan, MutationPlan),
    }
    if plan.description:
        facts["description"] = plan.description
    if plan.instruction:
        facts["instruction"] = plan.instruction
    facts["params"] = [
        {"name": p.name, "type": p.type.base_text, "nullable": p.type.nullable}
        for p in plan.parameters
    ]
    return facts
