"""Runs the cases of `tests/cases` and says what came out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, NamedTuple

from omnigraph.catalog import (
    AcceptedSchema,
    Catalog,
    MigrationPlan,
    SequentialAllocator,
    TypeKind,
    accept_schema,
    plan_migration,
    read_catalog,
    resolve_schema,
)
from omnigraph.catalog.model import DST, SRC
from omnigraph.lang import (
    Code,
    Diagnostic,
    DiagnosticError,
    DiagnosticReport,
    parse_queries,
    report_for_bytes,
)
from omnigraph.lang.query_tree import QueryDecl
from omnigraph.pipeline.config.resolve import report_types
from omnigraph.pipeline.config.spec import parse_pipeline
from omnigraph.plan import (
    QueryPlan,
    bind_parameters,
    compile_query,
    describe_operation,
    explain,
    lint_queries,
)
from omnigraph.types import entity_id
from tests.support.agreement import disagreement
from tests.support.cases import GIVEN, ROOT, Case, CaseError, Section
from tests.support.embedding import mock_vector
from tests.support.graph_data import read_lines
from tests.support.reference import Answer, RefusedError, World, interpret

NOTHING = "nothing: it was refused, or what it is made from is not given"

_DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
_DIAGNOSTIC = re.compile(r"(?P<head>(?:error|warning|info) \S+ (?:\d+:\d+|-))(?: (?P<message>.+))?")
_HELP = "  help: "


@dataclass(slots=True)
class Run:
    """What a case gave."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    catalog: Catalog | None = None
    accepted: AcceptedSchema | None = None
    migration: MigrationPlan | None = None
    plan: QueryPlan | None = None
    values: Mapping[str, Any] | None = None
    answer: Answer | RefusedError | None = None
    id: str | None = None


def run(case: Case) -> Run:
    """Do with a case what its sections ask for; stop at the first thing that is refused."""
    found = Run()
    try:
        _run_schemas(case, found)
        if found.accepted is not None and case.all("query"):
            _run_queries(case, found)
        if found.catalog is not None and case.all("pipeline"):
            _run_pipeline(case, found.catalog, found)
    except DiagnosticError as error:
        found.diagnostics += error.diagnostics
    return found


def _run_schemas(case: Case, found: Run) -> None:
    before = case.one("from")
    allocator = SequentialAllocator()
    accepted: AcceptedSchema | None = None
    if before is not None:
        origin = _report(before, Code.SCHEMA_UNREADABLE)
        old = read_catalog(origin)
        if origin.errors:
            raise CaseError(f"the schema of `--- from` is refused: {origin.errors[0]}")
        accepted = accept_schema(old, allocator=allocator, domain=_DOMAIN)
    section = case.one("schema")
    assert section is not None
    report = _report(section, Code.SCHEMA_UNREADABLE)
    found.catalog = read_catalog(report)
    if not report.errors and accepted is not None:
        found.accepted = resolve_schema(found.catalog, accepted, allocator=allocator, report=report)
        found.migration = plan_migration(accepted, found.accepted)
    elif not report.errors:
        found.accepted = accept_schema(
            found.catalog, allocator=allocator, domain=_DOMAIN, report=report
        )
    found.diagnostics += report.sorted()
    row = case.one("row")
    if row is not None and found.accepted is not None:
        found.id = _row_id(row, found.accepted)


def _run_queries(case: Case, found: Run) -> None:
    assert found.catalog is not None
    reports = [_report(section, Code.QUERY_UNREADABLE) for section in case.all("query")]
    name, given = case.one("name"), case.one("params")
    if name is not None:
        found.plan = compile_query(found.catalog, reports[0].source.text, name.argument or None)
    else:
        for linted in lint_queries(reports, found.catalog):
            found.diagnostics += linted.diagnostics
            found.plan = linted.results[-1].plan if linted.results else None
    data = case.one("data")
    if found.plan is not None and (given is not None or data is not None):
        javascript = given is not None and given.argument == "javascript"
        values = None if given is None else json.loads(given.body)
        found.values = bind_parameters(found.plan.parameters, values, javascript=javascript)
    if data is not None and found.values is not None:
        [tree] = [q for q in parse_queries(reports[-1].source.text).queries if _is(q, found.plan)]
        found.answer = _answer(tree, found, data_lines(data))


def _run_pipeline(case: Case, catalog: Catalog, found: Run) -> None:
    [section] = case.all("pipeline")
    report = _report(section, Code.PIPELINE_UNREADABLE)
    given = case.one("set")
    variables = {} if given is None else json.loads(given.body)
    pipeline = parse_pipeline(report, ROOT, variables, environment={})
    if pipeline is not None:
        report_types(pipeline, catalog)
    found.diagnostics += report.sorted()


def _is(query: QueryDecl, plan: QueryPlan | None) -> bool:
    return plan is not None and query.name.text == plan.name


def _answer(query: QueryDecl, found: Run, lines: list[str]) -> Answer | RefusedError:
    """Return what the reference says about a query."""
    assert found.accepted is not None
    assert found.plan is not None
    declared = {p.name: (found.values or {})[p.name] for p in found.plan.parameters}
    graph = read_lines(lines, found.accepted)
    world = World(
        catalog=found.accepted.catalog,
        graph=graph,
        parameters=declared,
        parameter_types={p.name: p.type for p in found.plan.parameters},
        embed=mock_vector,
    )
    try:
        return interpret(query, world)
    except RefusedError as refused:
        return refused


def data_lines(section: Section) -> list[str]:
    """Return the lines of a data section, or those of the file it names."""
    text = section.body
    if section.argument:
        text = (ROOT / "data" / f"{section.argument}.ndjson").read_text(encoding="utf-8")
    return text.splitlines()


def _report(section: Section, code: Code) -> DiagnosticReport:
    if section.argument == "hex":
        return report_for_bytes(bytes.fromhex(section.body), section.word, code)
    text = section.body
    if section.word in ("from", "schema") and section.argument:
        text = (ROOT / "schemas" / f"{section.argument}.pg").read_text(encoding="utf-8")
    return report_for_bytes(text.encode(), section.argument or section.word, code)


def _row_id(row: Section, accepted: AcceptedSchema) -> str:
    values = json.loads(row.body)
    kind = TypeKind.NODE if row.argument in accepted.catalog.nodes else TypeKind.EDGE
    found = accepted.find(kind, row.argument)
    assert found is not None, "a row names a type of the schema"
    properties = {"src": SRC, "dst": DST} | dict(found.definition.properties)
    types = [(name, properties[name].type) for name in found.key_order]
    members = [(type_.from_json(values[name]), type_) for name, type_ in types]
    return entity_id(members) if members else "generated"


# --- comparing ---------------------------------------------------------------------------------


def outcome(section: Section, found: Run) -> str:
    """Return what an outcome section of a run should say."""
    match section.word:
        case "expect":
            return "\n".join(map(_diagnostic_text, found.diagnostics)) or "ok"
        case "plan" if found.plan is not None:
            return explain(found.plan)
        case "operation" if found.plan is not None and found.catalog is not None:
            facts = describe_operation(found.plan, found.catalog)
            return "{" + ",\n ".join(f'"{key}": {_compact(facts[key])}' for key in facts) + "}"
        case "values" if found.values is not None:
            return _compact(found.values)
        case "rows" if found.answer is not None:
            return _rows_text(found.answer)
        case "steps" if found.migration is not None:
            hard = section.argument == "hard"
            plan = found.migration.with_data_loss() if hard else found.migration
            return "\n".join(_compact(step.to_json()) for step in plan.steps) or "none"
        case "id" if found.id is not None:
            return found.id
    return NOTHING


def agrees(section: Section, actual: str, found: Run) -> bool:
    """Return whether an outcome section says what came out."""
    if section.word == "expect":
        return _diagnostics_agree(section.body, actual)
    if section.word == "rows":
        return _rows_agree(section.body, actual, found.answer)
    return actual != NOTHING and _canonical(section) == _canonical(replace(section, body=actual))


def checked(case: Case) -> Case:
    """Run a case and return it with every outcome that differs put right."""
    found = run(case)
    sections = case.sections
    if case.one("expect") is None and found.diagnostics:
        sections += (Section("expect", "", "ok"),)
    actual = [(section, outcome(section, found)) for section in sections]
    return Case(
        case.title,
        tuple(
            section
            if section.word in GIVEN or agrees(section, text, found)
            else replace(section, body=text)
            for section, text in actual
        ),
    )


def _rows_text(answer: Answer | RefusedError) -> str:
    if isinstance(answer, RefusedError):
        return f"refused: {answer}"
    lines = [_compact(row) for row in answer.rows]
    return "\n".join(lines if answer.ordered else sorted(lines)) or "none"


def _rows_agree(expected: str, actual: str, answer: Answer | RefusedError | None) -> bool:
    if not isinstance(answer, Answer) or "none" in (expected, actual):
        return expected == actual
    rows = [json.loads(line) for line in expected.splitlines()]
    return disagreement(answer, list(rows[0]), rows) is None


def _canonical(section: Section) -> str:
    """Return a body without what does not matter about JSON."""
    if section.word in ("operation", "values"):
        return _compact(json.loads(section.body), sort_keys=True)
    if section.word == "steps" and section.body != "none":
        steps = map(json.loads, section.body.splitlines())
        return "\n".join(_compact(step, sort_keys=True) for step in steps)
    return section.body


def _compact(value: object, *, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=sort_keys, default=_temporal)


def _temporal(value: date) -> dict[str, str]:
    return {type(value).__name__: value.isoformat()}


def _diagnostic_text(diagnostic: Diagnostic) -> str:
    place = "-"
    if diagnostic.span is not None and diagnostic.source is not None:
        place = "{}:{}".format(*diagnostic.source.position(diagnostic.span.start))
    text = f"{diagnostic.severity} {diagnostic.code} {place} {diagnostic.message}"
    return text if diagnostic.hint is None else f"{text}\n{_HELP}{diagnostic.hint}"


def _diagnostics_agree(expected: str, actual: str) -> bool:
    if "ok" in (expected, actual):
        return expected == actual
    wanted, reported = list(_diagnostics(expected)), list(_diagnostics(actual))
    return len(wanted) == len(reported) and all(
        one.head == other.head
        and one.message in other.message
        and one.help in other.help
        and bool(one.help) == bool(other.help)
        for one, other in zip(wanted, reported, strict=True)
    )


class _Reported(NamedTuple):
    head: str
    message: str
    help: str


def _diagnostics(text: str) -> Iterator[_Reported]:
    """Read the lines of an `expect` section."""
    for block in re.split(r"\n(?!  )", text):
        first, *rest = block.split("\n")
        match = _DIAGNOSTIC.fullmatch(first)
        if match is None or len(rest) > 1 or not all(line.startswith(_HELP) for line in rest):
            raise CaseError(f"`{block}` is no diagnostic")
        yield _Reported(match["head"], match["message"] or "", "".join(rest).removeprefix(_HELP))
