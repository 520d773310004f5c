"""Print errors and diagnostics, with colours on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

import click

from omnigraph.catalog import SchemaChangeRefused
from omnigraph.cli.changes import conflict_lines
from omnigraph.cli.output import count_text, print_json, wants_json
from omnigraph.errors import OmniError
from omnigraph.lang import Diagnostic, DiagnosticError, Severity
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.write import ValidationFailed, Violation

_MAX_SHOWN = 20
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def report_error(error: OmniError) -> None:
    """Print an error on standard error, and with `--json` also as JSON on standard output."""
    if wants_json():
        print_json({"status": "error", "error": error.to_json()})
    if isinstance(error, DiagnosticError):
        click.echo(diagnostics_text(error.diagnostics), err=True)
    elif isinstance(error, MergeConflicts):
        click.echo(_conflicts_text(error), err=True)
    elif isinstance(error, SchemaChangeRefused):
        click.echo(_refusals_text(error), err=True)
    elif isinstance(error, ValidationFailed):
        click.echo(_violations_text(error), err=True)
    else:
        click.echo(f"error[{error.code}]: {error.message}", err=True)


def _conflicts_text(error: MergeConflicts) -> str:
    """Return the conflicts of a merge as text."""
    head = click.style(f"error[{error.code}]", fg="red", bold=True)
    lines = [f"{head}: {count_text(len(error.conflicts), 'conflict')}; nothing was changed"]
    for conflict in error.conflicts[:_MAX_SHOWN]:
        lines += conflict_lines(conflict)
    if len(error.conflicts) > _MAX_SHOWN:
        lines.append(f"… and {len(error.conflicts) - _MAX_SHOWN:,} more (--json lists them all)")
    lines.append("resolve them with --resolve source, --resolve target or --resolve FILE")
    return "\n".join(lines)


def _violations_text(error: ValidationFailed) -> str:
    """Return the violations of a change, one line each."""
    head = click.style(f"error[{error.code}]", fg="red", bold=True)
    lines = [f"{head}: {count_text(error.total, 'violation')}; nothing was changed"]
    lines += [f"  {_violation_text(violation)}" for violation in error.violations]
    if error.total > len(error.violations):
        rules = ", ".join(f"{rule} {count:,}" for rule, count in error.totals.items())
        lines.append(f"  … and {error.total - len(error.violations):,} more ({rules})")
    return "\n".join(lines)


def _violation_text(violation: Violation) -> str:
    """Return a violation, with its entity if it has no position in an input."""
    if violation.source is not None or violation.id is None or violation.id in violation.message:
        return str(violation)
    return f"{violation.kind} {violation.type} '{violation.id}': {violation}"


def _refusals_text(error: SchemaChangeRefused) -> str:
    """Return the refused schema changes, one line each."""
    head = click.style(f"error[{error.code}]", fg="red", bold=True)
    count = count_text(len(error.refusals), "change")
    lines = [f"{head}: {count} cannot be made; nothing was changed"]
    return "\n".join([*lines, *(f"  {r.entity}: {r.message}" for r in error.refusals)])


def diagnostics_text(diagnostics: Iterable[Diagnostic]) -> str:
    """Return diagnostics as text; click removes the colours where output is not a terminal."""
    return "\n\n".join(_coloured(diagnostic) for diagnostic in diagnostics)


def _coloured(diagnostic: Diagnostic) -> str:
    head, *rest = diagnostic.render().split("\n")
    label, _, message = head.partition(": ")
    colour = _COLOURS[diagnostic.severity]
    lines = [click.style(label, fg=colour, bold=True) + ": " + click.style(message, bold=True)]
    for line in rest:
        is_caret = line.lstrip(" |").startswith("^")
        lines.append(click.style(line, fg=colour) if is_caret else line)
    return "\n".join(lines)
