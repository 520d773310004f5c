"""`omnigraph schema`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

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
from omnigraph.cli.migrations import print_file_plan, print_migration_plan
from omnigraph.cli.options import (
    actor_option,
    graph_options,
    has_location,
    location_options,
    policy_actor_option,
    policy_option,
)
from omnigraph.cli.output import print_json, print_table
from omnigraph.cli.progress import show_progress

_FILE = click.Path(path_type=Path)


@click.group()
def schema() -> None:
    """Show schemas; plan and apply schema changes."""


@schema.command()
@graph_options(positional=True)
@click.option("--schema", "new_schema", type=_FILE, help="New schema file of the graph.")
@click.option("--from", "old_path", type=_FILE, help="Old schema file, instead of a graph.")
@click.option("--to", "new_path", type=_FILE, help="With --from: new schema file.")
@click.option(
    "--allow-data-loss", is_flag=True, help="Plan drops as hard drops, which delete data."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(
    uri: str | None,
    store: str | None,
    new_schema: Path | None,
    old_path: Path | None,
    new_path: Path | None,
    allow_data_loss: bool,
    as_json: bool,
) -> None:
    """Show the migration steps to a new schema, or why it is refused."""
    if old_path is not None and new_path is not None:
        print_file_plan(old_path, new_path, allow_data_loss=allow_data_loss, as_json=as_json)
    elif new_schema is not None:
        _plan_graph((uri, store), new_schema, allow_data_loss, as_json)
    else:
        raise click.UsageError("pass a graph and --schema FILE, or --from FILE and --to FILE")


def _plan_graph(
    address: tuple[str | None, str | None], new_schema: Path, allow_data_loss: bool, as_json: bool
) -> None:
    _, report = open_catalog(new_schema)
    graph = import_module("omnigraph.cli.open_graph").open_addressed_graph(*address)
    steps = graph.schema.plan(report.source.text, allow_data_loss=allow_data_loss)
    if as_json:
        print_json({"uri": graph.uri, **steps.to_json()})
        return
    print_migration_plan(steps, f"schema plan for {graph.uri}")


@schema.command()
@graph_options(positional=True)
@actor_option
@click.argument("path", metavar="FILE", type=_FILE, required=False)
@click.option("--schema", "new_schema", type=_FILE, help="New schema file, instead of FILE.")
@click.option("--branch", default="main", help="Branch to change.")
@click.option("--allow-data-loss", is_flag=True, help="Make drops hard drops, which delete data.")
@click.option("--dry-run", is_flag=True, help="Check the migration without changing anything.")
@click.option("--message", help="Message of the commit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    as_json: bool,
) -> None:
    """Migrate a graph to a new schema, as one commit."""
    if path is None and new_schema is None and store is not None and uri is not None:
        path, uri = Path(uri), None
    if (path is None) == (new_schema is None):
        raise click.UsageError("no schema given: pass a file after the graph, or --schema FILE")
    _, report = open_catalog(path or new_schema or Path())
    opened = import_module("omnigraph.cli.open_graph").open_addressed_graph
    graph = opened(uri, store, mode="rw", actor=actor)
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
    if as_json:
        print_json({"uri": graph.uri, **done.to_json()})
        return
    facts = {"applied": done.applied, "graph_manifest_version": done.manifest_version}
    print_migration_plan(
        done.plan, f"schema apply for {graph.uri} on branch {done.branch}", **facts
    )


@schema.command()
@graph_options(positional=False)
@click.argument("old", metavar="FROM")
@click.argument("new", metavar="TO")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(uri: str | None, store: str | None, old: str, new: str, as_json: bool) -> None:
    """Show the migration steps between two schema files or two states of a graph.

    With --uri or --store, FROM is a branch, tag, commit or timestamp, and TO another or a file.
    """
    if uri is None and store is None and not has_location():
        print_file_plan(Path(old), Path(new), allow_data_loss=False, as_json=as_json)
        return
    graph = import_module("omnigraph.cli.open_graph").open_addressed_graph(uri, store)
    if new.endswith(".pg"):
        steps = graph.schema.plan(open_catalog(Path(new))[1].source.text, at=old)
    else:
        steps = graph.schema.diff(old, new)
    if as_json:
        print_json({"uri": graph.uri, "from": old, "to": new, **steps.to_json()})
        return
    print_migration_plan(steps, f"schema diff of {graph.uri} from {old} to {new}")


@schema.command()
@click.argument("uri", metavar="FILE|GRAPH", required=False)
@click.option("--store", help="Address of the graph.")
@location_options
@policy_actor_option
@policy_option
@click.option("--at", help="Branch, tag, commit ID or timestamp of a graph.  [default: main]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(uri: str | None, store: str | None, at: str | None, as_json: bool) -> None:
    """Show the resolved types of a schema file, or the schema text of a graph."""
    if uri is None or not uri.endswith(".pg"):
        graph = import_module("omnigraph.cli.open_graph").open_addressed_graph(uri, store)
        source = graph.snapshot(at).schema_source
        if as_json:
            print_json({"schema_source": source})
        else:
            click.echo(source, nl=not source.endswith("\n"))
        return
    path = Path(uri)
    catalog, _ = open_catalog(path)
    if as_json:
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
