"""Short ways to typed plans, and to the values they are made of, in tests."""

from __future__ import annotations

from functools import cache

from omnigraph.catalog import Catalog, load_catalog
from omnigraph.lang import Code, Diagnostic, DiagnosticReport, read_queries, report_for_text
from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.plan import QueryPlan, ReadPlan, compile_query, typecheck
from omnigraph.plan.expressions import Binding, Compare, Constant, EntityKind, PropertyRef
from omnigraph.types import PropertyType, Scalar
from tests.support.cases import ROOT

TEXT = PropertyType(Scalar.STRING)
NUMBER = PropertyType(Scalar.I64)

SHIP = Binding("s", EntityKind.NODE, "Ship")
PORT = Binding("p", EntityKind.NODE, "Port")
OTHER_PORT = Binding("q", EntityKind.NODE, "Port")
CALL = Binding("c", EntityKind.EDGE, "CallsAt")


@cache
def catalog(name: str = "harbour") -> Catalog:
    """Return the catalog of a schema of `tests/cases/schemas`."""
    return load_catalog((ROOT / "schemas" / f"{name}.pg").read_text(encoding="utf-8"))


def plan_of(query: str, schema: str = "harbour") -> QueryPlan:
    """Return the plan of the only query of a text."""
    return compile_query(catalog(schema), query)


def read_plan(match: str, result: str = "return { 1 as one }", schema: str = "harbour") -> ReadPlan:
    """Return the plan of a read query, given its match clauses and what follows them."""
    plan = plan_of(f"query q($n: I64, $t: String) {{ match {{ {match} }} {result} }}", schema)
    assert isinstance(plan, ReadPlan)
    return plan


def typechecked(query: str, schema: str = "harbour") -> tuple[QueryPlan | None, list[Diagnostic]]:
    """Return the plan of the only query of a text, if it has one, and what is reported about it."""
    report: DiagnosticReport = report_for_text(query, "query.gq", Code.QUERY_UNREADABLE)
    [tree] = read_queries(report).queries
    plan = typecheck(tree, catalog(schema), report)
    return plan, list(report.sorted())


def text(binding: Binding, name: str = "label") -> PropertyRef:
    """Return a String property of a binding."""
    return PropertyRef(binding.name, name, TEXT)


def equals(left: PropertyRef, right: PropertyRef | str) -> Compare:
    """Return the predicate that a String property equals another, or a literal."""
    other = Constant(right, TEXT) if isinstance(right, str) else right
    return Compare(left, ComparisonOperator.EQ, other)
