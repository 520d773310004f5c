"""`omnigraph blob`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph.cli.files import read_bytes
from omnigraph.cli.open_graph import GraphOpener, graph_command, open_addressed_graph
from omnigraph.cli.options import collect_options, graph_options
from omnigraph.cli.output import count_text, print_result
from omnigraph.commit.model import Commit
from omnigraph.errors import translate_disk_errors
from omnigraph.graph import Graph
from omnigraph.query.entities import Blob

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


@click.group()
def blob() -> None:
    """Read and write blobs: binary properties of entities."""


def _selector(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments that select a blob; the command gets them as `selector`."""
    command = collect_options("selector", ("entity", "type_name", "id_", "property_name"))(command)
    for name in ("property_name", "id_", "type_name"):
        metavar = name.partition("_")[0].upper()
        command = click.argument(name, metavar=metavar)(command)
    return click.argument("entity", type=click.Choice(["node", "edge"]))(command)


def _target(command: _CommandT) -> _CommandT:
    command = click.option("--snapshot", help="Commit ID, tag or timestamp to read.")(command)
    return click.option("--branch", help="Branch to read.  [default: main]")(command)


def _open(graph: Graph, selector: dict[str, str], branch: str | None, at: str | None) -> Blob:
    if branch is not None and at is not None:
        raise click.UsageError("--branch and --snapshot are mutually exclusive")
    return graph.blob(*_place(selector), branch or at or "main")


def _place(selector: dict[str, str]) -> tuple[str, str, str]:
    """Return the arguments of a graph that select a blob."""
    type_name = f"{selector['entity']}:{selector['type_name']}"
    return type_name, selector["id_"], selector["property_name"]


@blob.command()
@graph_options()
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
    selector: dict[str, str],
    branch: str | None,
    snapshot: str | None,
    offset: int,
    length: int | None,
    out: Path | None,
) -> None:
    """Write the bytes of a blob to a file or to standard output."""
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
@graph_command()
@_selector
@_target
def stat(graph: Graph, selector: dict[str, str], branch: str | None, snapshot: str | None) -> None:
    """Show the location and size of a blob."""
    content = _open(graph, selector, branch, snapshot)
    resolved = graph.snapshot(branch or snapshot or "main").commit_id
    target = {"snapshot": snapshot} if snapshot is not None else {"branch": branch or "main"}
    facts = {**content.to_json(), "target": {**target, "resolved_snapshot": resolved}}
    names = [name for name in ("kind", "size", "etag", "uri") if facts.get(name) is not None]
    print_result(facts, *(f"{name}: {facts[name]}" for name in names))


@blob.command()
@graph_command(actor=True, lazy=True, mode="rw")
@_selector
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--branch", default="main", help="Branch to change.")
def put(open_graph: GraphOpener, selector: dict[str, str], file: Path, branch: str) -> None:
    """Set a blob of an entity to the bytes of FILE, as one commit."""
    data = read_bytes(file)
    graph = open_graph()
    commit = graph.put_blob(*_place(selector), data, branch=branch)
    text = f"wrote {count_text(len(data), 'byte')} to {_property_text(selector)}"
    if commit is None:
        text = f"{_property_text(selector)} already has these bytes; no commit was made"
    print_result({"uri": graph.uri, "size": len(data), "commit": _commit_json(commit)}, text)


@blob.command()
@graph_command(actor=True, mode="rw")
@_selector
@click.option("--branch", default="main", help="Branch to change.")
def clear(graph: Graph, selector: dict[str, str], branch: str) -> None:
    """Set an optional blob of an entity to null, as one commit."""
    commit = graph.clear_blob(*_place(selector), branch=branch)
    text = f"cleared {_property_text(selector)}"
    if commit is None:
        text = f"{_property_text(selector)} is already null; no commit was made"
    print_result({"uri": graph.uri, "commit": _commit_json(commit)}, text)


def _property_text(selector: dict[str, str]) -> str:
    return f"{selector['type_name']}.{selector['property_name']} of {selector['id_']}"


def _commit_json(commit: Commit | None) -> dict[str, Any] | None:
    return None if commit is None else commit.to_json()
