"""`omnigraph alias`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.graph_address import GraphAddress, server_url
from omnigraph.cli.open_graph import load_user_config
from omnigraph.cli.options import InvalidUsage, json_option
from omnigraph.cli.output import json_requested
from omnigraph.cli.queries import output_style, params_options, read_params
from omnigraph.cli.remote import open_remote_graph
from omnigraph.cli.results import write_result
from omnigraph.service.user_config import OUTPUT_FORMATS, QueryAlias


@click.command()
@click.argument("name")
@click.argument("values", metavar="[ARGS]...", nargs=-1)
@params_options
@click.option(
    "--format", "format_", type=click.Choice(OUTPUT_FORMATS), help="Output format of the rows."
)
@json_option
def alias(
    name: str,
    values: tuple[str, ...],
    params: str | None,
    params_file: Path | None,
    format_: str | None,
) -> None:
    """Run the stored query configured as alias NAME."""
    operator = load_user_config()
    entry = operator.aliases.get(name)
    if entry is None:
        names = ", ".join(sorted(operator.aliases)) or "none"
        raise InvalidUsage(f"unknown alias '{name}'; configured aliases: {names}")
    url = server_url(entry.server, operator.servers)
    graph = entry.graph or operator.defaults.default_graph
    served = open_remote_graph(GraphAddress("server", url, graph), operator)
    merged = {**entry.params, **_positional(entry, values)}
    merged |= read_params(params, params_file) or {}
    answer = served.invoke(entry.query, merged, expect_mutation=False)
    chosen, style = output_style("json" if json_requested() else format_ or entry.format)
    target = {"branch": served.branch_name, "snapshot": None}
    write_result(answer, target, chosen, sys.stdout.buffer, style)


def _positional(entry: QueryAlias, values: tuple[str, ...]) -> dict[str, Any]:
    if len(values) > len(entry.args):
        names = " ".join(entry.args) or "none"
        raise InvalidUsage(f"alias '{entry.name}' takes these arguments: {names}")
    return {name: _value(text) for name, text in zip(entry.args, values, strict=False)}


def _value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except ValueError:
        return text
