"""`omnigraph blob`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph.cli.files import read_bytes
from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import actor_option, graph_options
from omnigraph.cli.output import count_text, print_json
from omnigraph.errors import translate_disk_errors
from omnigraph.graph import Graph
from omnigraph.query.entities import Blob

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


@click.group()
def blob() -> None:
    """Read and write blobs: binary properties of entities."""


def _selector(command: _CommandT) -> _CommandT:
    """Add the arguments that select a blob."""
    for name in ("property_name", "id_", "type_name"):
        metavar = name.partition("_")[0].upper()
        command = click.argument(name, metavar=metavar)(command)
    return click.argument("entity", type=click.Choice(["node", "edge"]))(command)


def _target(command: _CommandT) -> _CommandT:
    command = click.option("--snapshot", help="Commit ID, tag or timestamp to read.")(command)
    return click.option("--branch", help="Branch to read.  [default: main]")(command)


def _open(graph: Graph, selector: tuple[str, ...], branch: str | None, at: str | None) -> Blob:
    if branch is not None and at is not None:
        raise click.UsageError("--branch and --snapshot are mutually exclusive")
    entity, type_name, id_, property_name = selector
    return graph.blob(f"{entity}:{type_name}", id_, property_name, branch or at or "main")


@blob.command()
@graph_options(positional=False)
@_selector
@_target
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Offset of the first byte.")
@click.option("--length", type=click.IntRange(min=1), help="Maximum number of bytes.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write instead of standard output."
)
def get(
    uri: str | None,
    store: str | None,
    entity: str,
    type_name: str,
    id_: str,
    property_name: str,
    branch: str | None,
    snapshot: str | None,
    offset: int,
    length: int | None,
    out: Path | None,
) -> None:
    """Write the bytes of a blob to a file or to standard output."""
    selector = (entity, type_name, id_, property_name)
    content = _open(open_addressed_graph(uri, store), selector, branch, snapshot)
    end = None
    if length is not None and content.size is not None:
        end = min(offset + length, content.size)
    chunks = content.chunks(offset, end)
    if out is None:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        return
    first = next(chunks, b"")  # read before the file is created, so that a failure leaves no file
    with translate_disk_errors(out), out.open("wb") as file:
        file.write(first)
        file.writelines(chunks)


@blob.command()
@graph_options(positional=False)
@_selector
@_target
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stat(
    uri: str | None,
    store: str | None,
    entity: str,
    type_name: str,
    id_: str,
    property_name: str,
    branch: str | None,
    snapshot: str | None,
    as_json: bool,
) -> None:
    """Show the location and size of a blob."""
    graph = open_addressed_graph(uri, store)
    content = _open(graph, (entity, type_name, id_, property_name), branch, snapshot)
    resolved = graph.snapshot(branch or snapshot or "main").commit_id
    target = {"snapshot": snapshot} if snapshot is not None else {"branch": branch or "main"}
    facts = {**content.to_json(), "target": {**target, "resolved_snapshot": resolved}}
    if as_json:
        print_json(facts)
        return
    for name in ("kind", "size", "etag", "uri"):
        if facts.get(name) is not None:
            click.echo(f"{name}: {facts[name]}")


@blob.command()
@graph_options(positional=False)
@actor_option
@_selector
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--branch", default="main", help="Branch to change.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def put(
    uri: str | None,
    store: str | None,
    actor: str | None,
    entity: str,
    type_name: str,
    id_: str,
    property_name: str,
    file: Path,
    branch: str,
    as_json: bool,
) -> None:
    """Set a blob of an entity to the bytes of FILE, as one commit."""
    data = read_bytes(file)
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    commit = graph.put_blob(f"{entity}:{type_name}", id_, property_name, data, branch=branch)
    if as_json:
        facts = None if commit is None else commit.to_json()
        print_json({"uri": graph.uri, "size": len(data), "commit": facts})
        return
    if commit is None:
        click.echo(
            f"{type_name}.{property_name} of {id_} already has these bytes; no commit was made"
        )
        return
    click.echo(f"wrote {count_text(len(data), 'byte')} to {type_name}.{property_name} of {id_}")


@blob.command()
@graph_options(positional=False)
@actor_option
@_selector
@click.option("--branch", default="main", help="Branch to change.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def clear(
    uri: str | None,
    store: str | None,
    actor: str | None,
    entity: str,
    type_name: str,
    id_: str,
    property_name: str,
    branch: str,
    as_json: bool,
) -> None:
    """Set an optional blob of an entity to null, as one commit."""
    graph = open_addressed_graph(uri, store, mode="rw", actor=actor)
    commit = graph.clear_blob(f"{entity}:{type_name}", id_, property_name, branch=branch)
    if as_json:
        print_json({"uri": graph.uri, "commit": None if commit is None else commit.to_json()})
        return
    if commit is None:
        click.echo(f"{type_name}.{property_name} of {id_} is already null; no commit was made")
        return
    click.echo(f"cleared {type_name}.{property_name} of {id_}")
