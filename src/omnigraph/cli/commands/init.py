"""`omnigraph init`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from omnigraph.cli.files import open_catalog
from omnigraph.cli.inference import infer_inputs, input_options, types_text
from omnigraph.cli.open_graph import stored_address
from omnigraph.cli.options import (
    InvalidUsage,
    actor_and_policy,
    graph_argument,
    json_option,
    option_value,
    store_option,
)
from omnigraph.cli.output import json_requested, print_json, print_notes
from omnigraph.cli.progress import show_progress
from omnigraph.graph import Graph
from omnigraph.graph import init as create
from omnigraph.write.inference import Inference


@click.command()
@graph_argument
@store_option
@click.option(
    "--schema",
    "schema_path",
    type=click.Path(path_type=Path),
    help="Schema file (.pg) of the graph.",
)
@input_options(required=False)
@click.option("--yes", is_flag=True, help="With --from: accept the inferred schema.")
@click.option(
    "--force", is_flag=True, help="Overwrite leftovers of a failed attempt; never a graph."
)
@json_option
def init(
    uri: str | None,
    store: str | None,
    schema_path: Path | None,
    inputs: tuple[str, ...],
    encoding: str | None,
    yes: bool,
    force: bool,
) -> None:
    """Create a graph in a folder or at an s3:// address.

    With --schema it is empty. With --from the schema is inferred from files and shown, and the
    files are loaded."""
    # Leftovers of failed attempts are always overwritten, and a graph never is, with or without
    # --force.
    if (schema_path is None) == (not inputs):
        raise click.UsageError("pass either --schema FILE, or --from FILE to infer a schema")
    address = stored_address(uri, store)
    if schema_path is not None:
        _, report = open_catalog(schema_path)
        _print_created(_create(address, report.source.text))
        return
    inferred = Inference(infer_inputs(inputs, encoding))
    if not (yes or option_value("yes")):
        _confirm(address, inferred)
    graph = _create(address, inferred.schema)
    with show_progress("loading") as progress:
        result = graph.load(inferred.rows(), mode="append", progress=progress)
    loaded = f"loaded {result.total:,} entities ({types_text(inferred.inferred)})"
    _print_created(graph, loaded, {"load": result.to_json(), **inferred.inferred.to_json()})
    print_notes([*inferred.warnings, *result.notes])


def _create(uri: str, schema: str) -> Graph:
    import_module("omnigraph.service.cluster.store").refuse_managed(uri, "declare it")
    who = actor_and_policy()
    return create(uri, schema, policy=who.policy, actor=who.actor)


def _confirm(uri: str, inferred: Inference) -> None:
    """Show the schema and ask, which needs a terminal."""
    if not json_requested():
        click.echo(inferred.schema)
        print_notes(inferred.warnings)
    if json_requested() or not _is_interactive():
        raise InvalidUsage("the schema is inferred: pass --yes to accept it, or use a terminal")
    click.confirm(f"create {uri} with this schema and load the files?", abort=True)


def _is_interactive() -> bool:
    return sys.stdin.isatty()


def _print_created(
    graph: Graph, loaded: str | None = None, more: dict[str, object] | None = None
) -> None:
    if json_requested():
        value = {"uri": graph.uri, "graph_commit_id": graph.snapshot().commit_id}
        print_json({**value, **(more or {})})
        return
    click.echo(f"initialized {graph.uri}")
    if loaded is not None:
        click.echo(loaded)
