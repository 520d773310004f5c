"""Rules that use statistics: what they make of a plan, before and after."""

import pytest

from omnigraph.plan import operators as op
from omnigraph.plan.cardinality import Estimator
from omnigraph.plan.explain import describe_operator
from omnigraph.plan.planner import (
    COST_RULES,
    Planner,
    order_joins,
    plan_by_cost,
    push_blocks_down,
    push_limits_down,
)
from omnigraph.plan.statistics import (
    DegreeStatistics,
    GraphStatistics,
    PropertyStatistics,
    TypeStatistics,
)
from tests.support.plans import catalog, read_plan

MANY_SHIPS = {
    "node:Ship": TypeStatistics(10_000, {"label": PropertyStatistics(10_000)}),
    "node:Port": TypeStatistics(100),
    "node:Note": TypeStatistics(50),
    "edge:CallsAt": TypeStatistics(
        30_000, out=DegreeStatistics(9_000, 20), into=DegreeStatistics(90, 4_000)
    ),
    "edge:Route": TypeStatistics(600),
}
"""Ten thousand ships that call at a hundred ports, which routes connect."""


def planner(types=MANY_SHIPS):
    return Planner(Estimator(GraphStatistics(catalog(), types)))


def rows_of(match, result="return { 1 as one }"):
    return read_plan(match, result).root.input


def shown(rows):
    return ["  " * depth + describe_operator(o) for depth, o in op.walk_operators(rows)]


ORDERS = {
    "starts at the key": (
        '$s: Ship  $s callsAt $p  $p.code = "AAA"',
        ["Expand $p <-[CallsAt]- $s: Ship", '  Scan $p: Port where $p.code = "AAA"'],
    ),
    "starts at the smaller type": (
        "$s: Ship  $s callsAt $p  $p route $q  $q.city = $t  $p.city = $t",
        [
            "Expand $p <-[CallsAt]- $s: Ship",
            "  Expand $p -[Route]-> $q: Port where $q.city = $t",
            "    Scan $p: Port where $p.city = $t",
        ],
    ),
    "keeps the written order where both cost the same": (
        "$p: Port  $p route $q",
        ["Expand $p -[Route]-> $q: Port", "  Scan $p: Port"],
    ),
    "checks a step to a node that is found by key": (
        '$p: Port { code: "AAA" }  $s callsAt $p  $p route $q  $q.code = "BBB"',
        [
            "Expand $p <-[CallsAt]- $s: Ship",
            "  SemiJoin $p -[Route]-> $q",
            "    Cross",
            '      Scan $p: Port where $p.code = "AAA"',
            '      Scan $q: Port where $q.code = "BBB"',
        ],
    ),
    "turns a step of several hops around": (
        '$p: Port  $p route{1,3} $q  $q.code = "BBB"',
        ["Expand $q <-[Route{1,3}]- $p: Port", '  Scan $q: Port where $q.code = "BBB"'],
    ),
    "keeps the edge variable of a step it turns around": (
        '$s: Ship  $s $c:callsAt $p  $p.code = "AAA"  $c.fee > 3',
        [
            "Filter $c.fee > 3",
            "  Expand $p <-[$c:CallsAt]- $s: Ship",
            '    Scan $p: Port where $p.code = "AAA"',
        ],
    ),
    "checks a loop where its node is bound": (
        "$p: Port  $q <route> $p  $p route $p",
        ["Expand $p -[Route]- $q: Port", "  SemiJoin $p -[Route]-> $p", "    Scan $p: Port"],
    ),
    "crosses the smallest components first": (
        '$s: Ship  $p: Port  $n: Note { text: "a" }',
        [
            "Cross",
            "  Cross",
            '    Scan $n: Note where $n.text = "a"',
            "    Scan $p: Port",
            "  Scan $s: Ship",
        ],
    ),
    "orders the steps of a block, and starts it at the outer row": (
        '$p: Port  not { $s callsAt $p  $p route $q  $q.code = "AAA" }',
        [
            "AntiJoin",
            "  Scan $p: Port",
            "  Expand $p <-[CallsAt]- $s: Ship",
            "    SemiJoin $p -[Route]-> $q",
            "      Cross",
            "        OuterRow $p",
            '        Scan $q: Port where $q.code = "AAA"',
        ],
    ),
}


@pytest.mark.parametrize(("match", "after"), ORDERS.values(), ids=ORDERS)
def test_scans_and_steps_are_ordered_by_cost(match, after):
    assert shown(order_joins(rows_of(match), planner())) == after


@pytest.mark.parametrize("match", [match for match, _ in ORDERS.values()], ids=ORDERS)
def test_ordering_again_changes_nothing(match):
    once = order_joins(rows_of(match), planner())
    assert order_joins(once, planner()) == once


@pytest.mark.parametrize("match", [match for match, _ in ORDERS.values()], ids=ORDERS)
def test_ordered_rows_bind_the_same_variables(match):
    rows = rows_of(match)
    assert order_joins(rows, planner()).variables == rows.variables


def test_without_statistics_the_written_order_stays():
    rows = rows_of("$s: Ship  $s callsAt $p  $p route $q")
    nothing = {name: TypeStatistics(0) for name in MANY_SHIPS}
    assert order_joins(rows, planner(nothing)) == rows


def test_a_limit_is_worth_a_start_with_many_matches():
    """All ports first would follow all calls; a part of the ships is enough for three rows."""
    types = {**MANY_SHIPS, "node:Ship": TypeStatistics(1_000_000), "node:Port": TypeStatistics(2)}
    types["edge:CallsAt"] = TypeStatistics(1_000_000)
    match = "$p: Port  $s callsAt $p"
    whole, some = (rows_of(match, f"return {{ $s }} {cut}") for cut in ("", "limit 3"))
    assert "Scan $p: Port" in shown(order_joins(whole, planner(types)))[-1]
    assert "Scan $s: Ship" in shown(order_joins(some, planner(types)))[-1]


def test_the_choice_names_the_costs_of_all_starts():
    knows = planner()
    order_joins(rows_of('$s: Ship  $s callsAt $p  $p.code = "AAA"'), knows)
    [choice] = knows.choices
    assert (choice.written, choice.chosen) == ("s", "p")
    assert choice.costs["s"] > 10 * choice.costs["p"]
    assert choice.reason.startswith("the written order costs ")


BLOCKS = {
    "below a step that multiplies rows": (
        "$p: Port  $s callsAt $p  not { $p route $q }",
        [
            "Expand $p <-[CallsAt]- $s: Ship",
            "  AntiJoin",
            "    Scan $p: Port",
            "    Expand $p -[Route]-> $q: Port",
            "      OuterRow $p",
        ],
    ),
    "not below a step that leaves fewer rows": (
        '$s: Ship  $s callsAt $p  $p.code = "AAA"  exists { $s callsAt $q }',
        [
            "ExistsJoin",
            '  Expand $s -[CallsAt]-> $p: Port where $p.code = "AAA"',
            "    Scan $s: Ship",
            "  Expand $s -[CallsAt]-> $q: Port",
            "    OuterRow $s, $p",
        ],
    ),
    "to the side of a cross product it speaks of": (
        "$p: Port  $n: Note  not { $p route $q }",
        [
            "Cross",
            "  AntiJoin",
            "    Scan $p: Port",
            "    Expand $p -[Route]-> $q: Port",
            "      OuterRow $p",
            "  Scan $n: Note",
        ],
    ),
    "below an optional block, with blocks of its own": (
        "$p: Port  optional { $p route $o }  not { $p route $q  not { $q.city = $p.city } }",
        [
            "OptionalJoin $o",
            "  AntiJoin",
            "    Scan $p: Port",
            "    AntiJoin",
            "      Expand $p -[Route]-> $q: Port",
            "        OuterRow $p",
            "      Filter $q.city = $p.city",
            "        OuterRow $p, $q",
            "  Expand $p -[Route]-> $o: Port",
            "    OuterRow $p",
        ],
    ),
}


@pytest.mark.parametrize(("match", "after"), BLOCKS.values(), ids=BLOCKS)
def test_a_block_moves(match, after):
    assert shown(push_blocks_down(rows_of(match), planner())) == after


LIMITS = {
    "to both sides of a cross product": (
        "$p: Port  $n: Note",
        "limit 3 offset 2",
        [
            "Slice limit 3 offset 2",
            "  Cross",
            "    Slice limit 5",
            "      Scan $p: Port",
            "    Slice limit 5",
            "      Scan $n: Note",
        ],
    ),
    "below an optional block": (
        "$p: Port  optional { $p route $q }",
        "limit $n",
        [
            "Slice limit $n",
            "  OptionalJoin $q",
            "    Slice limit $n",
            "      Scan $p: Port",
            "    Expand $p -[Route]-> $q: Port",
            "      OuterRow $p",
        ],
    ),
    "not below a step, which may find nothing": (
        "$p: Port  $p route $q",
        "limit 3",
        ["Slice limit 3", "  Expand $p -[Route]-> $q: Port", "    Scan $p: Port"],
    ),
    "not below an order": (
        "$p: Port  $n: Note",
        "order { $p.city } limit 3",
        [
            "Slice limit 3",
            "  Sort $p.city, $n.id, $p.id",
            "    Cross",
            "      Scan $p: Port",
            "      Scan $n: Note",
        ],
    ),
    "not where a parameter says how many are skipped": (
        "$p: Port  $n: Note",
        "limit 3 offset $n",
        ["Slice limit 3 offset $n", "  Cross", "    Scan $p: Port", "    Scan $n: Note"],
    ),
}


@pytest.mark.parametrize(("match", "cut", "after"), LIMITS.values(), ids=LIMITS)
def test_a_limit_moves(match, cut, after):
    rows = rows_of(match, f"return {{ $p.city }} {cut}")
    assert shown(push_limits_down(rows, planner())) == after


@pytest.mark.parametrize("rule", COST_RULES)
@pytest.mark.parametrize(
    "match", [m for m, *_ in (*ORDERS.values(), *BLOCKS.values(), *LIMITS.values())]
)
def test_no_rule_loses_a_variable(rule, match):
    rows = rows_of(match)
    assert rule(rows, planner()).variables == rows.variables


def test_a_ranked_query_starts_where_it_was_written_to():
    ranked = read_plan(
        '$s: Ship  $s callsAt $p  $p.code = "AAA"',
        'return { $s.label as label } order { bm25($s.label, "a") } limit 3',
    )
    assert plan_by_cost(ranked, planner().estimator.statistics) is ranked
