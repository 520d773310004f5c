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
    click.echo(error_text(error), err=True)


def error_text(error: OmniError) -> str:
    """Return an error as text; click removes the colours where output is not a terminal."""
    return "\n".join(_error_lines(error))


def _error_lines(error: OmniError) -> list[str]:
    head = click.style(f"error[{error.code}]", fg="red", bold=True)
    match error:
        case DiagnosticError():
            return [diagnostics_text(error.diagnostics)]
        case MergeConflicts():
            return _conflict_lines(error, head)
        case ValidationFailed():
            return _violation_lines(error, head)
        case SchemaChangeRefused():
            count = count_text(len(error.refusals), "change")
            lines = (f"  {refusal.entity}: {refusal.message}" for refusal in error.refusals)
            return [f"{head}: {count} cannot be made; nothing was changed", *lines]
    return [f"error[{error.code}]: {error.message}"]


def _conflict_lines(error: MergeConflicts, head: str) -> list[str]:
    lines = [f"{head}: {count_text(len(error.conflicts), 'conflict')}; nothing was changed"]
    for conflict in error.conflicts[:_MAX_SHOWN]:
        lines += conflict_lines(conflict)
    if len(error.conflicts) > _MAX_SHOWN:
        lines.append(f"… and {len(error.conflicts) - _MAX_SHOWN:,} more (--json lists them all)")
    return [*lines, "resolve them with --resolve source, --resolve target or --resolve FILE"]


def _violation_lines(error: ValidationFailed, head: str) -> list[str]:
    lines = [f"{head}: {count_text(error.total, 'violation')}; nothing was changed"]
    lines += [f"  {_violation_text(violation)}" for violation in error.violations]
    if error.total > len(error.violations):
        rules = ", ".join(f"{rule} {count:,}" for rule, count in error.totals.items())
        lines.append(f"  … and {error.total - len(error.violations):,} more ({rules})")
    return lines


def _violation_text(violation: Violation) -> str:
    """Return a violation, with its entity if it has no position in an input."""
    if violation.source is not None or violation.id is None or violation.id in violation.message:
        return str(violation)
    return f"{violation.kind} {violation.type} '{violation.id}': {violation}"


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
