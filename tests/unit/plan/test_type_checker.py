"""What the type checker says of a whole query: its plan, its texts, its limits."""

import pytest

from omnigraph.lang import Code, QueryError, Severity
from omnigraph.plan import MutationPlan, Parameter, ReadPlan, explain
from omnigraph.plan.type_checker import MAX_COMPUTED_SIZE, MAX_MATCH_SIZE, MAX_RESULT_SIZE
from omnigraph.types import PropertyType, Scalar
from tests.support.plans import TEXT, plan_of, typechecked


def many(part, count, *, between=" "):
    return between.join(part.format(i) for i in range(count))


def any_of(part, count):
    return f"( {many(part, count, between=' or ')} )"


def all_of(part, count):
    return f"( {many(part, count, between=' and ')} )"


def query(match, result="return { 1 as one }"):
    return f"query q() {{ match {{ $s: Ship {match} }} {result} }}"


def codes(diagnostics):
    return [diagnostic.code for diagnostic in diagnostics]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{ match { $s: Ship } return { $s } }", ReadPlan),
        ("{ insert Note { text: $t } }", MutationPlan),
    ],
)
def test_a_plan_knows_its_name_parameters_and_texts(text, kind):
    plan = plan_of(
        'query find($t: String, $v: Vector(3)?) @description("all") @instruction("ask") ' + text
    )
    assert isinstance(plan, kind)
    assert plan.name == "find"
    vector = PropertyType(Scalar.VECTOR, nullable=True, dimension=3)
    assert plan.parameters == (Parameter("t", TEXT), Parameter("v", vector))
    assert (plan.description, plan.instruction) == ("all", "ask")


def test_a_plan_without_texts_has_none():
    plan = plan_of("query q() { match { $s: Ship } return { $s } }")
    assert (plan.description, plan.instruction) == (None, None)


def test_a_parameter_describes_itself_for_the_wire():
    types = [
        PropertyType(Scalar.VECTOR, dimension=3),
        PropertyType(Scalar.U64, nullable=True, is_list=True),
    ]
    assert [Parameter("x", type_).to_json() for type_ in types] == [
        {"name": "x", "kind": "vector", "vector_dim": 3, "nullable": False},
        {"name": "x", "kind": "list", "item_kind": "bigint", "nullable": True},
    ]


FULL = {
    "conditions": query(many("$s.imo != {}", MAX_MATCH_SIZE - 1)),
    "conditions of one group": query(all_of("$s.imo != {}", MAX_MATCH_SIZE - 1)),
    "inline matches": query(f"$t: Ship {{ {many('imo: {}', MAX_MATCH_SIZE - 2, between=', ')} }}"),
    "bindings": query(many("$t{}: Ship", MAX_MATCH_SIZE - 1)),
    "traversals": query(many("$s callsAt $t{}", MAX_MATCH_SIZE - 1)),
    "negations": query(many("not {{ $s.imo = {} }}", (MAX_MATCH_SIZE - 1) // 2)),
    "columns": query("", f"return {{ {many('$s.imo as c{}', MAX_RESULT_SIZE)} }}"),
    "choices": query(any_of("$s.imo = {}", 5000)),
    "computed values": query(
        "", f"return {{ coalesce({many('$s.imo', MAX_COMPUTED_SIZE, between=', ')}) as c }}"
    ),
}


@pytest.mark.parametrize("text", FULL.values(), ids=FULL)
def test_a_query_just_small_enough_is_planned_and_explained(text):
    plan, diagnostics = typechecked(text)
    assert codes(diagnostics) == []
    assert "Scan $s: Ship" in explain(plan)


TOO_LARGE = {
    "conditions": (query(many("$s.imo != {}", MAX_MATCH_SIZE)), "match"),
    "conditions of one group": (
        query(all_of("$s.imo != {}", MAX_MATCH_SIZE)),
        "match",
    ),
    "inline matches": (
        query(f"$t: Ship {{ {many('imo: {}', MAX_MATCH_SIZE, between=', ')} }}"),
        "match",
    ),
    "traversals": (query(many("$s callsAt $t{}", MAX_MATCH_SIZE)), "match"),
    "negations": (query(many("not {{ $s.imo = {} }}", MAX_MATCH_SIZE // 2)), "match"),
    "columns": (query("", f"return {{ {many('$s.imo as c{}', MAX_RESULT_SIZE + 1)} }}"), "return"),
    "computed values": (
        query("", f"return {{ {many('$s.imo + 1 + 1 as c{}', MAX_RESULT_SIZE)} }}"),
        "match",
    ),
    "sort keys": (
        query("", f"return {{ $s }} order {{ {many('$s.imo', MAX_RESULT_SIZE, between=', ')} }}"),
        "return",
    ),
}


@pytest.mark.parametrize(("text", "block"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_query_too_large_is_refused_before_its_size_costs_time(text, block):
    plan, [diagnostic] = typechecked(text)
    assert plan is None
    assert diagnostic.code is Code.QUERY_TOO_DEEP
    assert text[diagnostic.span.start :].startswith(f"{block} {{")


def test_more_warnings_than_are_shown_refuse_nothing():
    text = query(any_of('$s.kind = "z{}"', 150))
    plan, diagnostics = typechecked(text)
    assert isinstance(plan, ReadPlan)
    assert codes(diagnostics) == [Code.NEVER_MATCHES] * 100


def test_an_error_after_more_warnings_than_are_shown_is_reported():
    text = query(any_of('$s.kind = "z{}"', 150) + " $s.nope = 1")
    plan, diagnostics = typechecked(text)
    assert plan is None
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR]
    assert codes(errors) == [Code.UNKNOWN_PROPERTY]


def test_errors_beyond_those_shown_still_refuse():
    plan, diagnostics = typechecked(query(any_of("$s.nope{} = 1", 150)))
    assert plan is None
    assert codes(diagnostics) == [Code.UNKNOWN_PROPERTY] * 100


def test_a_refusal_names_every_mistake_in_the_order_of_the_text():
    with pytest.raises(QueryError) as refused:
        plan_of("query q() { match { $s: Shp  $p: Port { cod: 1 } } return { $p.cty } }")
    assert codes(refused.value.diagnostics) == [
        Code.UNKNOWN_NODE_TYPE,
        Code.UNKNOWN_MATCH_PROPERTY,
        Code.UNKNOWN_PROPERTY,
    ]
