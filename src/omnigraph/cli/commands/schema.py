"""This module is `omnigraph schema …`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from omnigraph.catalog import (
    Cardinality,
    Catalog,
    EdgeType,
    InterfaceType,
    MigrationPlan,
    NodeType,
    Property,
    SequentialAllocator,
    accept,
    plan_migration,
    resolve,
    schema_shape,
    shape_hash,
)
from omnigraph.catalog.model import constraint_columns, constraint_word
from omnigraph.cli.addresses import graph_options, one_address
from omnigraph.cli.errors import diagnostics_text
from omnigraph.cli.files import open_catalog
from omnigraph.cli.output import print_json, print_table

_FILE = click.Path(path_type=Path)
_SCRATCH_DOMAIN = "0" * 26
"""Comparing two files needs identities, but nothing keeps them."""


@click.group()
def schema() -> None:
    """Look at schemas and plan their changes."""


@schema.command()
@graph_options(positional=True)
@click.option("--schema", "wanted", type=_FILE, help="The schema wanted for a graph.")
@click.option("--from", "old_path", type=_FILE, help="Instead of a graph: the accepted schema.")
@click.option("--to", "new_path", type=_FILE, help="With --from: the schema wanted instead.")
@click.option("--allow-data-loss", is_flag=True, help="Plan drops as hard drops.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(
    uri: str | None,
    store: str | None,
    wanted: Path | None,
    old_path: Path | None,
    new_path: Path | None,
    allow_data_loss: bool,
    as_json: bool,
) -> None:
    """List the steps from one schema to another, or what stands in the way."""
    if old_path is not None and new_path is not None:
        _plan_files(old_path, new_path, allow_data_loss, as_json)
    elif wanted is not None:
        _plan_graph(one_address(uri, store), wanted, allow_data_loss, as_json)
    else:
        raise click.UsageError("give a graph and --schema FILE, or --from FILE and --to FILE")


def _plan_graph(address: str, wanted: Path, allow_data_loss: bool, as_json: bool) -> None:
    _, report = open_catalog(wanted)
    graph = import_module("omnigraph.cli.graphs").open_addressed(address, None)
    steps = graph.schema.plan(report.source.text, allow_data_loss=allow_data_loss)
    if as_json:
        print_json({"uri": graph.uri, **steps.to_json()})
        return
    _tell_plan(steps, graph.uri)


def _plan_files(old_path: Path, new_path: Path, allow_data_loss: bool, as_json: bool) -> None:
    old, _ = open_catalog(old_path)
    new, report = open_catalog(new_path)
    allocator = SequentialAllocator()
    accepted = accept(old, allocator=allocator, domain=_SCRATCH_DOMAIN)
    desired = resolve(new, accepted, allocator=allocator, report=report)
    steps = plan_migration(accepted, desired)
    steps = steps.with_data_loss() if allow_data_loss else steps
    if as_json:
        told = [diagnostic.to_json() for diagnostic in report.in_order()]
        paths = {"from": str(old_path), "to": str(new_path)}
        print_json({**paths, **steps.to_json(), "diagnostics": told})
        return
    if report.diagnostics:
        click.echo(diagnostics_text(report.in_order()), err=True)
    _tell_plan(steps, f"{old_path} to {new_path}")


def _tell_plan(steps: MigrationPlan, what: str) -> None:
    click.echo(f"schema plan for {what}")
    click.echo(f"supported: {'yes' if steps.supported else 'no'}")
    for step in steps.steps:
        click.echo(f"- {step.describe()}")
    if not steps.steps:
        click.echo("no schema changes")


@schema.command()
@click.argument("uri", metavar="FILE|GRAPH", required=False)
@click.option("--store", help="Address of the graph.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(uri: str | None, store: str | None, as_json: bool) -> None:
    """Show what a schema file declares, resolved, or the text of a graph's schema."""
    if uri is None or not uri.endswith(".pg"):
        graph = import_module("omnigraph.cli.graphs").open_addressed(uri, store)
        source = graph.schema.source
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
    _tell_catalog(catalog)


def _tell_catalog(catalog: Catalog) -> None:
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
