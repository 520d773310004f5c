"""`omnigraph embed`: for a type of a graph, or for records in a file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.command_line import is_address
from omnigraph.cli.options import actor_option, json_option, store_option
from omnigraph.cli.output import count_text, print_result
from omnigraph.cli.progress import show_progress
from omnigraph.embed.embed_spec import (
    EmbedFileJob,
    EmbedFileMode,
    EmbedSpec,
    read_manifest,
    read_selector,
    read_spec,
)
from omnigraph.embed.embedder import Embedder
from omnigraph.embed.file_embedding import embed_file

_FILE = click.Path(path_type=Path)
_FORMS = (
    "nothing to embed: pass a graph and a type (omnigraph embed ./my-graph Article), "
    "or a file (--input, --output and --spec, or --seed)"
)


@click.command()
@click.argument("graph_and_type", nargs=-1, metavar="[GRAPH TYPE]")
@store_option
@actor_option
@click.option(
    "--property",
    "property_",
    metavar="P",
    help="Graph: vector property to fill, if the type has several.",
)
@click.option("--all", "everything", is_flag=True, help="Graph: recompute every vector.")
@click.option(
    "--stale",
    is_flag=True,
    help="Graph: compute missing vectors and those of changed texts (default).",
)
@click.option("--branch", help="Graph: branch to change.  [default: main]")
@click.option("--message", help="Graph: message of the commit.")
@click.option(
    "--seed", type=_FILE, help="File: YAML manifest with input, output and specification."
)
@click.option("--input", "source", type=_FILE, help="File: JSON lines to read.")
@click.option("--output", type=_FILE, help="File: JSON lines to write.")
@click.option("--spec", "spec_path", type=_FILE, help="File: JSON specification of the embedding.")
@click.option("--clean", is_flag=True, help="File: remove vectors.")
@click.option("--reembed-all", is_flag=True, help="File: recompute every vector.")
@click.option("--type", "types", multiple=True, metavar="T", help="File: include only this type.")
@click.option(
    "--select",
    "selects",
    multiple=True,
    metavar="[T:]FIELD=VALUE",
    help="File: include only matching records.",
)
@json_option
@click.pass_context
def embed(
    context: click.Context,
    graph_and_type: tuple[str, ...],
    store: str | None,
    actor: str | None,
    property_: str | None,
    everything: bool,
    stale: bool,
    branch: str | None,
    message: str | None,
    seed: Path | None,
    source: Path | None,
    output: Path | None,
    spec_path: Path | None,
    clean: bool,
    reembed_all: bool,
    types: tuple[str, ...],
    selects: tuple[str, ...],
) -> None:
    """Compute embedding vectors for a type of a graph, or for records in a file."""
    if _is_graph_form(context):
        if stale and everything:
            raise click.UsageError("--stale and --all are mutually exclusive")
        address, type_name = _graph_and_type(graph_and_type)
        graph = _open_graph(address, store, actor)
        with show_progress("embedding") as progress:
            done = graph.embed(
                type_name,
                property_,
                all=everything,
                branch=branch,
                message=message,
                progress=progress,
            )
        _print_graph_report(graph.uri, done)
        return
    mode = _mode(clean, reembed_all, bool(types or selects))
    input_path, output_path, spec = _files(seed, source, output, spec_path)
    job = EmbedFileJob(
        input=input_path,
        output=output_path,
        spec=spec,
        mode=mode,
        types=frozenset(types),
        selectors=tuple(read_selector(text) for text in selects),
    )
    with show_progress("embedding") as progress:
        report = embed_file(job, Embedder(), progress)
    facts = report.to_json()
    done = f"selected {report.selected}, cleaned {report.cleaned}"
    print_result(
        facts,
        f"embedded {report.embedded} records ({done}) from {input_path} -> {output_path} "
        f"[{facts['mode']} {facts['dimension']}d]",
    )


_GRAPH = {
    "graph_and_type",
    "store",
    "actor",
    "property_",
    "everything",
    "stale",
    "branch",
    "message",
}
_OF_FILES = {"seed", "source", "output", "spec_path", "clean", "reembed_all", "types", "selects"}


def _is_graph_form(context: click.Context) -> bool:
    """Return whether a graph is embedded; raise UsageError if options of both forms are given."""
    given = {name for name, value in context.params.items() if value not in (None, False, ())}
    graph, files = given & _GRAPH, given & _OF_FILES
    if graph and files:
        raise click.UsageError(
            "options for a graph and for a file are mutually exclusive: " + _FORMS
        )
    if not graph and not files & {"seed", "source", "output", "spec_path"}:
        raise click.UsageError(_FORMS)
    return bool(graph)


def _open_graph(address: str | None, store: str | None, actor: str | None) -> Any:  # noqa: ANN401 - a Graph
    # Importing storage takes half a second, and files do not need it.
    return import_module("omnigraph.cli.open_graph").open_addressed_graph(
        address, store, mode="rw", actor=actor
    )


def _graph_and_type(words: tuple[str, ...]) -> tuple[str | None, str]:
    match words:
        case (address, type_name):
            return address, type_name
        case (word,) if not is_address(word):
            return None, word
    wrong = "too many arguments" if len(words) > 2 else "no type given"
    raise click.UsageError(
        f"{wrong}: pass the address of a graph and one type, "
        "e.g. omnigraph embed ./my-graph Article"
    )


def _mode(clean: bool, reembed_all: bool, selective: bool) -> EmbedFileMode:
    if clean and reembed_all:
        raise click.UsageError("--clean and --reembed-all are mutually exclusive")
    if clean:
        return EmbedFileMode.CLEAN
    if reembed_all:
        return EmbedFileMode.ALL
    return EmbedFileMode.SELECTED if selective else EmbedFileMode.FILL


def _files(
    seed: Path | None, source: Path | None, output: Path | None, spec: Path | None
) -> tuple[Path, Path, EmbedSpec]:
    if seed is not None:
        if source or output or spec:
            raise click.UsageError("--seed and --input, --output or --spec are mutually exclusive")
        return read_manifest(seed)
    paths = {"--input": source, "--output": output, "--spec": spec}
    missing = [name for name, path in paths.items() if path is None]
    if source is None or output is None or spec is None:
        raise click.UsageError(f"{' and '.join(missing)} missing: {_FORMS}")
    return source, output, read_spec(spec)


def _print_graph_report(uri: str, done: Any) -> None:  # noqa: ANN401 - an EmbedResult
    by = f" by {done.model}" if done.model else ""
    vectors = count_text(done.total, "vector")
    lines = [f"embedded {uri} on branch {done.branch}: {vectors} of {done.type}{by}"]
    if done.skipped:
        lines.append(f"  {count_text(done.skipped, 'empty text')} left out")
    if done.commit is None:
        lines.append("  no vector changed" if done.total else "  nothing to do")
    print_result({"uri": uri, **done.to_json()}, *lines)
