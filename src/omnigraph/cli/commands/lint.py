"""`omnigraph lint`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.errors import diagnostics_text
from omnigraph.cli.files import expand_paths, open_catalog, read_query_report
from omnigraph.cli.options import has_location, json_option, location_options, store_option
from omnigraph.cli.output import count_text, json_requested, print_json
from omnigraph.lang import Diagnostic, Severity
from omnigraph.plan import FileLint, QueryLint, lint_queries


@click.command()
@click.option(
    "--schema",
    "schema_path",
    type=click.Path(path_type=Path),
    help="Schema file (.pg) to check against, instead of a graph.",
)
@store_option
@click.option(
    "--query",
    "query_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Query file (.gq) or folder of query files; repeatable.",
)
@location_options
@click.argument("rest", metavar="[GRAPH] [FILES]...", nargs=-1)
@json_option
def lint(
    schema_path: Path | None,
    store: str | None,
    query_paths: tuple[Path, ...],
    rest: tuple[str, ...],
) -> None:
    """Check query files against a schema file or a graph; exit 1 on errors."""
    # The first argument is the address of a graph, unless there is one, or it is a query file.
    named = schema_path is not None or store is not None or has_location()
    named = named or (rest != () and rest[0].endswith(".gq"))
    graphs, files_too = ((), rest) if named else (rest[:1], rest[1:])
    if schema_path is not None and store is not None:
        raise click.UsageError("--schema and --store are mutually exclusive")
    paths = (*query_paths, *map(Path, files_too))
    if not paths:
        raise click.UsageError("no query files given: pass --query with a file or folder")
    if schema_path is not None:
        catalog, _ = open_catalog(schema_path)
        source = {"kind": "file", "path": str(schema_path)}
    else:
        graph = import_module("omnigraph.cli.open_graph").open_addressed_graph(
            next(iter(graphs), None), store
        )
        catalog, source = graph.schema.catalog, {"kind": "graph", "uri": graph.uri}
    reports = [read_query_report(path) for path in expand_paths(paths, ".gq")]
    files = lint_queries(reports, catalog)
    if json_requested():
        single = len(paths) == 1 and not paths[0].is_dir()
        print_json(_facts(files, source, single=single))
    else:
        for file in files:
            _print_file(file, several=len(files) > 1)
        _summarise(files)
    sys.exit(0 if all(file.ok for file in files) else 1)


def _facts(files: list[FileLint], source: dict[str, str], *, single: bool) -> dict[str, Any]:
    """Return the report of one file, or a combined report of several."""
    reports = [{"schema_source": source, **file.to_json()} for file in files]
    if single:
        return reports[0]
    counts = ("queries_processed", "errors", "warnings", "infos")
    return {
        "status": "ok" if all(file.ok for file in files) else "error",
        "schema_source": source,
        **{name: sum(report[name] for report in reports) for name in counts},
        "files": reports,
    }


def _print_file(file: FileLint, *, several: bool) -> None:
    if several:
        click.echo(click.style(file.path, bold=True))
    for result in file.results:
        kind = "mutation" if result.is_mutation else "read"
        click.echo(f"{_label(result)} query `{result.name}` ({kind})")
        _print_diagnostics(result.diagnostics)
    _print_diagnostics([finding.diagnostic for finding in file.findings])


def _print_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    if diagnostics:
        click.echo(diagnostics_text(diagnostics) + "\n")


def _label(result: QueryLint) -> str:
    if result.errors:
        return click.style("ERROR", fg="red", bold=True)
    if result.warnings:
        return click.style("WARN ", fg="yellow", bold=True)
    return click.style("OK   ", fg="green", bold=True)


def _summarise(files: list[FileLint]) -> None:
    queries = sum(len(file.results) for file in files)
    errors = sum(file.count(Severity.ERROR) for file in files)
    warnings = sum(file.count(Severity.WARNING) for file in files)
    click.echo(
        f"INFO  Lint complete: {count_text(queries, 'query', 'queries')} processed, "
        f"{count_text(errors, 'error')}, {count_text(warnings, 'warning')}"
    )
