"""Check a schema and queries together, as the public `omnigraph.check` does."""

from __future__ import annotations

from omnigraph.catalog.builder import read_catalog
from omnigraph.catalog.model import Catalog
from omnigraph.lang import (
    Code,
    Diagnostic,
    DiagnosticReport,
    QueryError,
    SchemaError,
    did_you_mean,
    report_for_text,
)
from omnigraph.lang.query_parser import read_queries
from omnigraph.plan.lint import lint_queries
from omnigraph.plan.query_plan import QueryPlan
from omnigraph.plan.type_checker import plan_query


def check(schema_text: str, query_text: str | None = None) -> list[Diagnostic]:
    """Check a schema, and queries against it.

    Returns the diagnostics that do not refuse anything (warnings and infos).

    Raises:
        SchemaError: the schema is refused; `diagnostics` lists every reason.
        QueryError: a query is refused; `diagnostics` lists every reason in every query.

    >>> check("node Port { code: String @key }", "query q() { match { $p: Port } return { $p } }")
    []
    """
    schema = report_for_text(schema_text, "<schema>", Code.SCHEMA_UNREADABLE)
    catalog = read_catalog(schema)
    schema.raise_errors(SchemaError)
    if query_text is None:
        return list(schema.sorted())
    queries = report_for_text(query_text, "<query>", Code.QUERY_UNREADABLE)
    [linted] = lint_queries([queries], catalog)
    if not linted.ok:
        raise QueryError(linted.diagnostics)
    return [*schema.sorted(), *linted.diagnostics]


def compile_query(
    catalog: Catalog, text: str, name: str | None = None, *, source_name: str = "<query>"
) -> QueryPlan:
    """Return the typed plan of one query of a file; raise QueryError with all errors.

    `name` may be left out when the file holds exactly one query.
    """
    report = report_for_text(text, source_name, Code.QUERY_UNREADABLE)
    tree = read_queries(report)
    report.raise_errors(QueryError)
    names = [query.name.text for query in tree.queries]
    if name is None and len(names) == 1:
        name = names[0]
    chosen = [query for query in tree.queries if query.name.text == name]
    if not chosen:
        raise QueryError([_query_not_found(name, names, report)])
    for other in chosen[1:]:
        message = f"another query of this text is called `{name}`"
        report.add(Code.DUPLICATE_QUERY, message, other.name.span)
    return plan_query(chosen[0], catalog, report)


def _query_not_found(name: str | None, names: list[str], report: DiagnosticReport) -> Diagnostic:
    if name is not None:
        message = f"query '{name}' not found"
        hint = did_you_mean(name, names)
    else:
        message = f"the text holds {len(names)} queries; say which one to run"
        hint = did_you_mean("", names)
    return Diagnostic(Code.QUERY_NOT_FOUND, message, hint=hint, source=report.source)
