"""Print migration plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from omnigraph.catalog import (
    MigrationPlan,
    MigrationStep,
    SequentialAllocator,
    accept_schema,
    plan_migration,
    resolve_schema,
)
from omnigraph.cli.errors import diagnostics_text
from omnigraph.cli.files import open_catalog
from omnigraph.cli.output import json_requested, print_result

_SCRATCH_DOMAIN = "0" * 26
"""Comparing two files needs identities; they are not stored."""

_COLOURS = {"add": "green", "drop": "red", "remove": "red", "unsupported": "red"}


def print_file_plan(old: Path, new: Path, *, allow_data_loss: bool = False) -> None:
    """Print the migration steps from one schema file to another."""
    before, _ = open_catalog(old)
    after, report = open_catalog(new)
    allocator = SequentialAllocator()
    accepted = accept_schema(before, allocator=allocator, domain=_SCRATCH_DOMAIN)
    desired = resolve_schema(after, accepted, allocator=allocator, report=report)
    plan = plan_migration(accepted, desired)
    plan = plan.with_data_loss() if allow_data_loss else plan
    if report.diagnostics and not json_requested():
        click.echo(diagnostics_text(report.sorted()), err=True)
    diagnostics = [diagnostic.to_json() for diagnostic in report.sorted()]
    value = {"from": str(old), "to": str(new), **plan.to_json(), "diagnostics": diagnostics}
    print_result(value, *migration_lines(plan, f"schema plan for {old} to {new}"))


def migration_lines(plan: MigrationPlan, title: str, **facts: object) -> Iterator[str]:
    """Yield a plan as text, one line per step, after a title and further facts."""
    yield title
    for name, value in {"supported": plan.supported, **facts}.items():
        yield f"{name}: {('no', 'yes')[value] if isinstance(value, bool) else value}"
    for step in plan.steps:
        yield f"- {step_text(step)}"
    if not plan.steps:
        yield "no schema changes"


def step_text(step: MigrationStep) -> str:
    """Return a step as text: additions are green, removals red."""
    colour = _COLOURS.get(step.kind.partition("_")[0])
    return click.style(step.describe(), fg=colour) if colour else step.describe()
