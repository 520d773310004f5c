"""This module plans the change of a graph's schema."""

from __future__ import annotations

from omnigraph.catalog import (
    AcceptedSchema,
    MigrationPlan,
    TimeOrderedAllocator,
    plan_migration,
    read_catalog,
    resolve,
)
from omnigraph.lang import Code, Diagnostic, SchemaError, admit


def plan_schema(
    accepted: AcceptedSchema, text: str, *, allow_data_loss: bool = False
) -> tuple[MigrationPlan, list[Diagnostic]]:
    """Return the steps to a schema text and what there is to say about it.

    Raises:
        SchemaError: the text is refused; `diagnostics` lists every reason.
    """
    report = admit(text, "<schema>", Code.SCHEMA_UNREADABLE)
    catalog = read_catalog(report)
    if report.errors:
        raise SchemaError(report.in_order())
    desired = resolve(catalog, accepted, allocator=TimeOrderedAllocator(), report=report)
    plan = plan_migration(accepted, desired)
    return (plan.with_data_loss() if allow_data_loss else plan), list(report.in_order())
