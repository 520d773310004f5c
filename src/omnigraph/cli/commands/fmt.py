"""`omnigraph fmt`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from omnigraph.cli.errors import diagnostics_text
from omnigraph.cli.files import expand_paths, read_query_report, read_schema_report
from omnigraph.cli.options import json_option
from omnigraph.cli.output import count_text, json_requested, print_json
from omnigraph.errors import translate_disk_errors
from omnigraph.lang import DiagnosticError, QueryError, SchemaError, format_queries, format_schema


@dataclass(frozen=True, slots=True)
class FormatResult:
    """The result of formatting one file."""

    path: Path
    text: str = ""
    changed: bool = False
    error: DiagnosticError | None = None


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if a file is not formatted.")
@json_option
def fmt(paths: tuple[Path, ...], check: bool) -> None:
    """Format .pg and .gq files in place, including those in folders.

    Comments, blank lines and the spelling of literals are kept.
    """
    files = [_format(path) for path in expand_paths(paths, ".pg", ".gq")]
    broken = [file for file in files if file.error is not None]
    changed = [file for file in files if file.changed]
    if not check:
        for file in changed:
            _replace(file.path, file.text)
    if json_requested():
        print_json(_facts(files, check=check))
    else:
        _print_results(files, check=check)
    sys.exit(1 if broken or (check and changed) else 0)


def _format(path: Path) -> FormatResult:
    try:
        text = _formatted_text(path)
    except DiagnosticError as error:
        return FormatResult(path, error=error)
    return FormatResult(path, text, text.encode() != path.read_bytes())


def _formatted_text(path: Path) -> str:
    is_query = path.suffix == ".gq"
    report = read_query_report(path) if is_query else read_schema_report(path)
    if report.errors:
        raise (QueryError if is_query else SchemaError)(report.sorted())
    return (format_queries if is_query else format_schema)(report.source.text, str(path))


def _replace(path: Path, text: str) -> None:
    """Write a temporary file and rename it, so that an interruption loses nothing."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with translate_disk_errors(path):
            beside.write_bytes(text.encode())
            beside.chmod(path.stat().st_mode)
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _facts(files: list[FormatResult], *, check: bool) -> dict[str, object]:
    return {
        "checked": len(files),
        "changed": [str(file.path) for file in files if file.changed],
        "written": not check,
        "diagnostics": [d.to_json() for f in files if f.error for d in f.error.diagnostics],
    }


def _print_results(files: list[FormatResult], *, check: bool) -> None:
    for file in files:
        if file.error is not None:
            click.echo(diagnostics_text(file.error.diagnostics), err=True)
        elif file.changed:
            click.echo(f"{'would format' if check else 'formatted'} {file.path}")
    changed = sum(file.changed for file in files)
    verb = "would change" if check else "changed"
    click.echo(f"{count_text(len(files), 'file')} checked, {changed:,} {verb}", err=True)
