"""`omnigraph schema`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from omnigraph.catalog import (
    Cardinality,
    Catalog,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    schema_shape,
    shape_hash,
)
from omnigraph.catalog.model import constraint_columns, constraint_word
from omnigraph.cli.files import open_catalog
from omnigraph.cli.migrations import migration_lines, print_file_plan
from omnigraph.cli.options import (
    actor_option,
    graph_options,
    has_location,
    json_option,
    location_options,
    policy_actor_option,
    policy_option,
    store_option,
)
from omnigraph.cli.output import json_requested, print_json, print_result, print_table
from omnigraph.cli.progress import show_progress

_FILE = click.Path(path_type=Path)


@click.group()
def schema() -> None:
    """Show schemas; plan and apply schema changes."""


@schema.command()
@graph_options()
@click.option("--schema", "new_schema", type=_FILE, help="New schema file of the graph.")
@click.option("--from", "old_path", type=_FILE, help="Old schema file, instead of a graph.")
@click.option("--to", "new_path", type=_FILE, help="With --from: new schema file.")
@click.option(
    "--allow-data-loss", is_flag=True, help="Plan drops as hard drops, which delete data."
)
@json_option
def plan(
    uri: str | None,
    store: str | None,
    new_schema: Path | None,
    old_path: Path | None,
    new_path: Path | None,
    allow_data_loss: bool,
) -> None:
    """Show the migration steps to a new schema, or why it is refused."""
    is_files = old_path is not None or new_path is not None
    if is_files and (new_schema, uri, store) != (None, None, None):
        raise click.UsageError("--from and --to compare two files: pass no graph and no --schema")
    if old_path is not None and new_path is not None:
        print_file_plan(old_path, new_path, allow_data_loss=allow_data_loss)
        return
    if new_schema is None:
        raise click.UsageError("pass a graph and --schema FILE, or --from FILE and --to FILE")
    _, report = open_catalog(new_schema)
    graph = _open_graph(uri, store)
    steps = graph.schema.plan(report.source.text, allow_data_loss=allow_data_loss)
    lines = migration_lines(steps, f"schema plan for {graph.uri}")
    print_result({"uri": graph.uri, **steps.to_json()}, *lines)


def _open_graph(uri: str | None, store: str | None, **options: Any) -> Any:  # noqa: ANN401 - a Graph
    # Importing storage takes half a second, and schema files do not need it.
    return import_module("omnigraph.cli.open_graph").open_addressed_graph(uri, store, **options)


@schema.command()
@graph_options()
@actor_option
@click.argument("path", metavar="FILE", type=_FILE, required=False)
@click.option("--schema", "new_schema", type=_FILE, help="New schema file, instead of FILE.")
@click.option("--branch", default="main", help="Branch to change.")
@click.option("--allow-data-loss", is_flag=True, help="Make drops hard drops, which delete data.")
@click.option("--dry-run", is_flag=True, help="Check the migration without changing anything.")
@click.option("--message", help="Message of the commit.")
@json_option
def apply(
    uri: str | None,
    store: str | None,
    actor: str | None,
    path: Path | None,
    new_schema: Path | None,
    branch: str,
    allow_data_loss: bool,
    dry_run: bool,
    message: str | None,
) -> None:
    """Migrate a graph to a new schema, as one commit."""
    if uri is None and path is not None and new_schema is not None:
        uri, path = str(path), None  # only a graph, whose new schema is an option
    is_graph = uri is None and path is not None and path.is_dir()
    if is_graph or (path is None) == (new_schema is None):
        raise click.UsageError("no schema given: pass a file after the graph, or --schema FILE")
    _, report = open_catalog(path or new_schema or Path())
    graph = _open_graph(uri, store, mode="rw", actor=actor)
    if not graph.uri.startswith(("http://", "https://")):
        managed = import_module("omnigraph.service.cluster.store")
        managed.refuse_managed(graph.uri, "change its schema")
    with show_progress("applying the schema") as progress:
        done = graph.schema.apply(
            report.source.text,
            branch=branch,
            allow_data_loss=allow_data_loss,
            message=message,
            dry_run=dry_run,
            progress=progress,
        )
    facts = {"applied": done.applied, "graph_manifest_version": done.manifest_version}
    title = f"schema apply for {graph.uri} on branch {done.branch}"
    lines = migration_lines(done.plan, title, **facts)
    print_result({"uri": graph.uri, **done.to_json()}, *lines)


@schema.command()
@graph_options()
@click.argument("old", metavar="FROM")
@click.argument("new", metavar="TO")
@json_option
def diff(uri: str | None, store: str | None, old: str, new: str) -> None:
    """Show the migration steps between two schema files or two states of a graph.

    Of a graph, FROM is a branch, tag, commit or timestamp, and TO another or a file.
    """
    is_files = old.endswith(".pg") or Path(old).is_file()
    if uri is None and store is None and is_files and not has_location():
        print_file_plan(Path(old), Path(new))
        return
    graph = _open_graph(uri, store)
    if new.endswith(".pg"):
        steps = graph.schema.plan(open_catalog(Path(new))[1].source.text, at=old)
    else:
        steps = graph.schema.diff(old, new)
    lines = migration_lines(steps, f"schema diff of {graph.uri} from {old} to {new}")
    print_result({"uri": graph.uri, "from": old, "to": new, **steps.to_json()}, *lines)


@schema.command()
@click.argument("uri", metavar="FILE|GRAPH", required=False)
@store_option
@location_options
@policy_actor_option
@policy_option
@click.option("--at", help="Branch, tag, commit ID or timestamp of a graph.  [default: main]")
@json_option
def show(uri: str | None, store: str | None, at: str | None) -> None:
    """Show the resolved types of a schema file, or the schema text of a graph."""
    if uri is None or not uri.endswith(".pg"):
        source = _open_graph(uri, store).snapshot(at).schema_source
        print_result({"schema_source": source}, source.removesuffix("\n"))
        return
    path = Path(uri)
    catalog, _ = open_catalog(path)
    if json_requested():
        facts = {"path": str(path), "shape_hash": shape_hash(catalog)}
        print_json({**facts, **schema_shape(catalog)})
        return
    _print_catalog(catalog)


schema.add_command(show, "get")


def _print_catalog(catalog: Catalog) -> None:
    headers = ("property", "type", "rules", "description")
    kinds: tuple[InterfaceType | NodeType | EdgeType, ...] = (
        *catalog.interfaces.values(),
        *catalog.nodes.values(),
        *catalog.edges.values(),
    )
    for type_ in kinds:
        rows = [_property_row(property_, type_) for property_ in type_.properties.values()]
        print_table(_title(type_), headers, rows)


def _title(type_: InterfaceType | NodeType | EdgeType) -> str:
    match type_:
        case InterfaceType(name=name):
            return f"interface {name}"
        case NodeType(name=name, interfaces=interfaces):
            return f"node {name}" + (f" implements {', '.join(interfaces)}" if interfaces else "")
        case EdgeType(name=name, src=src, dst=dst, cardinality=cardinality):
            limits = "" if cardinality == Cardinality() else f" @card({cardinality})"
            return f"edge {name}: {src} -> {dst}{limits}"


def _property_row(
    property_: Property, type_: InterfaceType | NodeType | EdgeType
) -> tuple[str, str, str, str]:
    rules = [f"@{word}" for word in property_.shorthands]
    if not isinstance(type_, InterfaceType):
        rules += [
            f"@{constraint_word(constraint)}"
            for constraint in type_.constraints
            if property_.name in constraint_columns(constraint)
        ]
    if property_.embed is not None:
        rules.append(f"@embed({property_.embed.source})")
    texts = [a.value or "" for a in property_.annotations if a.name == "description"]
    return property_.name, str(property_.type), " ".join(rules), " ".join(texts)
