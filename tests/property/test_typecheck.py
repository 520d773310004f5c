"""Whatever well-formed query is checked: a plan or reasons, and the plan holds together."""

from collections import Counter
from dataclasses import fields, is_dataclass, replace

from hypothesis import event, given, settings

from omnigraph.lang import (
    Code,
    DiagnosticReport,
    SourceText,
    parse_queries,
    print_queries,
    report_for_text,
)
from omnigraph.lang.query_tree import QueryTree
from omnigraph.plan import describe_operation, explain, typecheck
from omnigraph.plan.check_read import check_match
from omnigraph.plan.expressions import And
from omnigraph.plan.lower import lower_pattern
from omnigraph.plan.operators import Expand, Filter, Scan, operator_inputs
from omnigraph.plan.rewrite_rules import push_filters_down
from omnigraph.plan.type_check_context import BindingScope, TypeCheckContext
from tests.support import strategies
from tests.support.effort import examples
from tests.support.harbour_queries import PARAMETERS, clauses, queries
from tests.support.plans import catalog

laws = settings(max_examples=examples(34))


def checked(query):
    report = DiagnosticReport(SourceText(""))
    return typecheck(query, catalog(), report), report


def rebuilt(value):
    """Make a plan again from its parts, so that every constructor checks them again."""
    if isinstance(value, tuple):
        return tuple(rebuilt(item) for item in value)
    if is_dataclass(value):
        return replace(value, **{f.name: rebuilt(getattr(value, f.name)) for f in fields(value)})
    return value


@laws
@given(queries)
def test_a_query_has_a_plan_or_reasons_but_never_both(query):
    plan, report = checked(query)
    event("accepted" if plan else "refused")
    assert (plan is None) == bool(report.errors)


@laws
@given(strategies.queries)
def test_any_well_formed_query_has_a_plan_or_reasons(tree):
    for query in tree.queries:
        plan, report = checked(query)
        assert (plan is None) == bool(report.errors)


@laws
@given(queries)
def test_an_accepted_plan_passes_its_own_constructors_again(query):
    plan, _ = checked(query)
    if plan is not None:
        assert rebuilt(plan) == plan


@laws
@given(queries)
def test_an_accepted_plan_can_be_explained_and_described(query):
    plan, _ = checked(query)
    if plan is not None:
        assert all(line.strip() for line in explain(plan).split("\n"))
        operation = describe_operation(plan, catalog())
        assert set(operation) == {"result", "reads", "writes"}
        assert operation["reads"]


@laws
@given(queries)
def test_printing_and_reading_a_query_changes_neither_its_plan_nor_its_reasons(query):
    plan, report = checked(query)
    [read] = parse_queries(print_queries(QueryTree((query,)))).queries
    plan_again, report_again = checked(read)
    assert plan_again == plan
    # A tree that was not read has no places, so there the same reason is reported once.
    assert set(map(str, report_again.diagnostics)) == set(map(str, report.diagnostics))


def conjuncts(predicate):
    if isinstance(predicate, And):
        return [part for inner in predicate.parts for part in conjuncts(inner)]
    return [predicate]


def predicates(rows):
    """Count every predicate in a plan, wherever it stands; `repr` because lists have no hash."""
    found = Counter()
    match rows:
        case Scan(predicates=own) | Expand(predicates=own):
            found.update(repr(part) for predicate in own for part in conjuncts(predicate))
        case Filter(predicate=predicate):
            found.update(map(repr, conjuncts(predicate)))
    return sum((predicates(source) for source in operator_inputs(rows)), found)


@laws
@given(clauses)
def test_moving_filters_keeps_what_is_asked_for(match):
    report = report_for_text("", "query.gq", Code.QUERY_UNREADABLE)
    pattern = check_match(match, BindingScope(), TypeCheckContext(catalog(), report, PARAMETERS))
    if report.errors or not (pattern.declared or pattern.steps):
        return
    rows = lower_pattern(pattern)
    moved = push_filters_down(rows)
    event("moved" if moved != rows else "kept")
    assert rows == lower_pattern(pattern)
    assert push_filters_down(moved) == moved
    assert predicates(moved) == predicates(rows)
    assert moved.variables == rows.variables
