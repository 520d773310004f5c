"""Short ways to read, accept and compare schemas in tests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omnigraph.catalog import (
    AcceptedSchema,
    Catalog,
    IdentityAllocator,
    MigrationPlan,
    SequentialAllocator,
    accept_schema,
    plan_migration,
    read_catalog,
    resolve_schema,
)
from omnigraph.lang import (
    Code,
    Diagnostic,
    DiagnosticReport,
    SchemaError,
    Severity,
    report_for_text,
)

DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

HARBOUR = """\
interface Labelled { label: String @index }

node Ship @description("a vessel") implements Labelled {
  imo: I64 @key
  kind: enum(tanker, ferry, tug)
  flags: [String]?
  draught: F32?
  built: Date?
  @range(draught, 0..30.5)
}
node Port {
  code: String @key
  city: String
  depth: F64?
  opened: DateTime?
  @check(code, "^[A-Z]{3}$")
}
node Note { text: String  score: I32? }
edge CallsAt: Ship -> Port @card(0..2) { on: Date?  fee: F64? }
edge Route: Port -> Port { nm: I32? }
"""

_MARK = "«"


def read(text: str, *, persisted: bool = False) -> tuple[Catalog, DiagnosticReport]:
    """Return the catalog of a schema and everything there is to say about it."""
    report = report_for_text(text, "schema.pg", Code.SCHEMA_UNREADABLE)
    return read_catalog(report, persisted=persisted), report


def sound(text: str, *, persisted: bool = False) -> Catalog:
    """Return the catalog of a schema that has no errors."""
    catalog, report = read(text, persisted=persisted)
    assert not report.errors, [str(d) for d in report.errors]
    return catalog


def first(text: str, allocator: IdentityAllocator | None = None) -> AcceptedSchema:
    """Accept a schema as the first of a graph."""
    return accept_schema(sound(text), allocator=allocator or SequentialAllocator(), domain=DOMAIN)


def after(
    accepted: AcceptedSchema, text: str, allocator: IdentityAllocator | None = None
) -> AcceptedSchema:
    """Resolve a schema on top of an accepted one."""
    catalog, report = read(text)
    fresh = allocator or SequentialAllocator(
        1 + max((i for i, _ in accepted.identities()), default=0)
    )
    return resolve_schema(catalog, accepted, allocator=fresh, report=report)


def plan(old: str, new: str) -> MigrationPlan:
    """Plan the migration between two texts."""
    accepted = first(old)
    return plan_migration(accepted, after(accepted, new))


def lines(plan_: MigrationPlan) -> list[str]:
    """Return a plan as people read it."""
    return [step.describe() for step in plan_.steps]


def changed(text: str, *replacements: tuple[str, str]) -> str:
    """Return text with pieces replaced, each of which must occur."""
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    return text


def marked(text: str) -> tuple[str, list[str]]:
    """Return text without its « marks, and where they stood as `line:column`."""
    places = []
    plain = ""
    for part in re.split(f"({_MARK})", text):
        if part == _MARK:
            places.append(f"{plain.count(chr(10)) + 1}:{len(plain) - plain.rfind(chr(10))}")
        else:
            plain += part
    return plain, places


def places(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return diagnostics as `code line:column`."""
    return [f"{d.code} {d.location.removeprefix('schema.pg:')}" for d in diagnostics]


def refused(text: str) -> Sequence[Diagnostic]:
    """Return the errors of a schema."""
    return _of(read(text)[1], Severity.ERROR)


def warned(text: str, *, persisted: bool = True) -> Sequence[Diagnostic]:
    """Return the warnings of a schema that has no errors."""
    _, report = read(text, persisted=persisted)
    assert not report.errors, [str(d) for d in report.errors]
    return _of(report, Severity.WARNING)


def _of(report: DiagnosticReport, severity: Severity) -> Sequence[Diagnostic]:
    return [d for d in report.sorted() if d.severity is severity]


def resolution(accepted: AcceptedSchema, text: str) -> Sequence[Diagnostic]:
    """Return everything resolving a schema on top of an accepted one has to say."""
    catalog, report = read(text)
    allocator = SequentialAllocator(1_000_000)
    try:
        resolve_schema(catalog, accepted, allocator=allocator, report=report)
    except SchemaError as error:
        return error.diagnostics
    return report.sorted()
