"""Lint query files: every error, every warning, and what each query does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.model import Catalog
from omnigraph.lang import Code, Diagnostic, DiagnosticReport, Severity, read_queries
from omnigraph.lang import query_tree as qt
from omnigraph.plan.describe import describe_operation
from omnigraph.plan.expressions import EntityKind
from omnigraph.plan.query_plan import MutationPlan, QueryPlan, Update
from omnigraph.plan.type_checker import typecheck


@dataclass(frozen=True, slots=True)
class QueryLint:
    """Lint findings about one query."""

    name: str
    is_mutation: bool
    plan: QueryPlan | None
    diagnostics: tuple[Diagnostic, ...]
    operation: dict[str, Any] | None
    is_anonymous: bool = False

    @property
    def errors(self) -> list[Diagnostic]:
        """The diagnostics that refuse the query."""
        return [d for d in self.diagnostics if d.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Diagnostic]:
        """The warnings."""
        return [d for d in self.diagnostics if d.severity is Severity.WARNING]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts: dict[str, Any] = {
            "name": self.name,
            "kind": "mutation" if self.is_mutation else "read",
            "status": "error" if self.errors else "ok",
        }
        if self.warnings:
            facts["warnings"] = [warning.message for warning in self.warnings]
        if self.errors:
            facts["error"] = str(self.errors[0])
        if self.diagnostics:
            facts["diagnostics"] = [d.to_json() for d in self.diagnostics]
        if self.operation is not None:
            facts["operation"] = self.operation
        return facts


@dataclass(frozen=True, slots=True)
class LintFinding:
    """Something lint noticed about a file rather than about one query."""

    diagnostic: Diagnostic
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts = self.diagnostic.to_json()
        if self.type_name is not None:
            facts["type_name"] = self.type_name
            facts["property"] = self.property
        if self.query_names:
            facts["query_names"] = list(self.query_names)
        return facts


@dataclass(frozen=True, slots=True)
class FileLint:
    """Lint findings about one file."""

    path: str
    results: tuple[QueryLint, ...] = ()
    findings: tuple[LintFinding, ...] = ()

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """All diagnostics, findings first."""
        about_queries = [d for result in self.results for d in result.diagnostics]
        return [*(finding.diagnostic for finding in self.findings), *about_queries]

    def count(self, severity: Severity) -> int:
        """Return the number of diagnostics with this severity."""
        return sum(d.severity is severity for d in self.diagnostics)

    @property
    def ok(self) -> bool:
        """Whether nothing is refused."""
        return self.count(Severity.ERROR) == 0

    def to_json(self) -> dict[str, Any]:
        """Return the wire form, without the schema it was linted against."""
        return {
            "status": "ok" if self.ok else "error",
            "query_path": self.path,
            "queries_processed": len(self.results),
            "errors": self.count(Severity.ERROR),
            "warnings": self.count(Severity.WARNING),
            "infos": self.count(Severity.INFO),
            "results": [result.to_json() for result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
        }


def lint_queries(reports: Iterable[DiagnosticReport], catalog: Catalog) -> list[FileLint]:
    """Lint query files together; rules across queries see all of them."""
    reports = list(reports)
    files = [_lint_file(report, catalog) for report in reports]
    extra = _find_duplicate_queries(reports, files)
    if files:
        last = len(files) - 1
        extra[last] += _find_never_updated_properties(files, catalog, reports[last])
    return [
        FileLint(file.path, file.results, (*file.findings, *extra[index]))
        for index, file in enumerate(files)
    ]


def _lint_file(report: DiagnosticReport, catalog: Catalog) -> FileLint:
    tree = read_queries(report)
    path = report.source.name
    if report.errors:
        return FileLint(path, findings=tuple(LintFinding(d) for d in report.sorted()))
    seen: set[str] = set()
    results: list[QueryLint] = []
    for query in tree.queries:
        results.append(_lint_query(query, catalog, report, duplicate=query.name.text in seen))
        seen.add(query.name.text)
    return FileLint(path, tuple(results))


def _lint_query(
    query: qt.QueryDecl, catalog: Catalog, file_report: DiagnosticReport, *, duplicate: bool
) -> QueryLint:
    report = DiagnosticReport(file_report.source)
    if duplicate:
        report.add(
            Code.DUPLICATE_QUERY,
            f"another query of this file is called `{query.name}`",
            query.name.span,
        )
    plan = typecheck(query, catalog, report)
    if query.is_mutation and not query.parameters and not query.is_anonymous:
        report.add(Code.NO_PARAMS, Code.NO_PARAMS.about, query.name.span)
    operation = None
    if plan is not None and not report.errors:
        operation = describe_operation(plan, catalog)
    return QueryLint(
        query.name.text,
        query.is_mutation,
        plan,
        report.sorted(),
        operation,
        is_anonymous=query.is_anonymous,
    )


def _find_duplicate_queries(
    reports: Sequence[DiagnosticReport], files: Sequence[FileLint]
) -> list[list[LintFinding]]:
    homes: dict[str, str] = {}
    findings: list[list[LintFinding]] = [[] for _ in files]
    for index, file in enumerate(files):
        named = (result.name for result in file.results if not result.is_anonymous)
        for name in dict.fromkeys(named):
            home = homes.setdefault(name, file.path)
            if home != file.path:
                message = f"query `{name}` is also declared in {home}"
                code = Code.DUPLICATE_ACROSS_FILES
                diagnostic = Diagnostic(
                    code, message, severity=code.severity, source=reports[index].source
                )
                findings[index].append(LintFinding(diagnostic, query_names=(name,)))
    return findings


def _find_never_updated_properties(
    files: Sequence[FileLint], catalog: Catalog, report: DiagnosticReport
) -> list[LintFinding]:
    """Find nullable properties that no update query of their type ever assigns."""
    assigned: dict[str, set[str]] = defaultdict(set)
    queries: dict[str, set[str]] = defaultdict(set)
    for result in (result for file in files for result in file.results):
        if not isinstance(result.plan, MutationPlan) or result.errors:
            continue
        for statement in result.plan.statements:
            if isinstance(statement, Update) and statement.kind is EntityKind.NODE:
                assigned[statement.type_name] |= set(statement.values)
                queries[statement.type_name].add(result.name)
    findings: list[LintFinding] = []
    for type_name in sorted(assigned):
        node = catalog.nodes[type_name]
        for name in sorted(set(node.properties) - assigned[type_name] - set(node.key)):
            property_ = node.properties[name]
            if property_.type.nullable and property_.embed is None:
                code = Code.NEVER_UPDATED
                message = f"nullable property {type_name}.{name} is never assigned by an update"
                diagnostic = Diagnostic(code, message, severity=code.severity, source=report.source)
                names = tuple(sorted(queries[type_name]))
                findings.append(LintFinding(diagnostic, type_name, name, names))
    return findings
