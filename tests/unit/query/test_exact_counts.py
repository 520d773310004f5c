"""Counts and integer sums are exact, or refused when a 64-bit integer cannot hold them."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.query import engine, exact_integers
from omnigraph.query.engine import QuerySettings
from omnigraph.query.expansion import ExpandMode
from omnigraph.query.limits import MEMORY_CODE, QueryLimit

NODES = 300
HOPS = 9
SCHEMA = """
node P { name: String @key  kind: I32  big: I64?  huge: U64?  small: I32?  plain: U32? }
edge Knows: P -> P
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A complete digraph with self-loops: each hop multiplies the rows by the number of nodes."""
    made = og.init(tmp_path_factory.mktemp("exact") / "g", SCHEMA)
    names = [f"n{number:03d}" for number in range(NODES)]
    ends = [(a, b) for a in names for b in names]
    made.load(
        {
            "P": pa.table({"name": names, "kind": [int(n[1:]) % 3 for n in names]}),
            "Knows": pa.table({"from": [a for a, _ in ends], "to": [b for _, b in ends]}),
        }
    )
    return made


def path(hops):
    steps = pairwise(f"$a{number}" for number in range(hops + 1))
    return "$a0: P  " + "  ".join(f"{one} knows {other}" for one, other in steps)


def run(graph, body, **settings):
    settings = QuerySettings(timeout=60, **settings)
    text = f"query q() {{ match {{ {body} }}"
    return graph._engine.run(graph.snapshot(), text, {}, None, settings)


@pytest.mark.parametrize("hops", range(1, HOPS + 1))
@pytest.mark.parametrize("counted", ["first", "last"])
def test_a_count_of_paths_is_exact_or_refused(graph, hops, counted):
    variable = "$a0" if counted == "first" else f"$a{hops}"
    body = f"{path(hops)} }} return {{ count({variable}) as n }}"
    expected = NODES ** (hops + 1)
    if expected < 2**63:
        assert run(graph, body).rows == [{"n": expected}]
        return
    with pytest.raises(QueryLimit, match="9,223,372,036,854,775,807") as refused:
        run(graph, body)
    assert refused.value.code == "query_count_overflow"
    assert refused.value.details == {"operator": "Aggregate", "limit": 2**63 - 1}


NODES_OF_A_GROUP = {"name": 1, "kind": NODES // 3}


@pytest.mark.parametrize("key", NODES_OF_A_GROUP)
@pytest.mark.parametrize("hops", [6, 7, 8])
def test_each_group_is_counted_exactly_whatever_all_groups_are_together(graph, key, hops):
    nodes = NODES_OF_A_GROUP[key]
    body = f"{path(hops)} }} return {{ $a{hops}.{key} as k, count($a1) as n }}"
    expected = nodes * NODES**hops
    if expected >= 2**63:
        with pytest.raises(QueryLimit) as refused:
            run(graph, body)
        assert refused.value.code == "query_count_overflow"
        return
    assert {row["n"] for row in run(graph, body).rows} == {expected}


def test_a_count_after_a_filter_counts_what_is_left(graph):
    body = f'{path(9)}  $a9.name = "n007" }} return {{ count(distinct $a9) as n }}'
    assert run(graph, body).rows == [{"n": 1}]


def test_paths_from_a_chosen_node_are_counted_from_either_end(graph):
    body = f'{path(9)}  $a9.name = "n007" }} return {{ $a9.name as n, count($a0) as c }}'
    assert run(
        graph, f'{path(6)}  $a6.name = "n007" }} return {{ $a6.name as n, count($a0) as c }}'
    ).rows == [{"n": "n007", "c": NODES**6}]
    with pytest.raises(QueryLimit) as refused:
        run(graph, body)
    assert refused.value.code == "query_count_overflow"
    kinds = run(
        graph, f'{path(4)}  $a0.name = "n007" }} return {{ $a4.kind as k, count($a2) as c }}'
    )
    assert kinds.rows == [{"k": kind, "c": NODES**4 // 3} for kind in range(3)]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("return { max($a9.kind) as m, min($a9.name) as n }", [{"m": 2, "n": "n000"}]),
        ("return distinct { $a9.kind as m } order { $a9.kind } limit 1", [{"m": 0}]),
        ("return { count(distinct $a9.kind) as n }", [{"n": 3}]),
        ("return { count($a9.big) as n }", [{"n": 0}]),
    ],
)
def test_what_does_not_count_paths_is_answered_however_many_there_are(graph, wanted, expected):
    assert run(graph, f"{path(9)} }} {wanted}").rows == expected


def test_cycles_closed_by_common_neighbours_are_counted_exactly(graph):
    body = f"{path(4)}  $a4 knows $b  $b knows $a3 }} return {{ count($a0) as n }}"
    assert run(graph, body).rows == [{"n": NODES**6}]
    body = f"{path(6)}  $a6 knows $b  $b knows $a5 }} return {{ count($a0) as n }}"
    with pytest.raises(QueryLimit) as refused:
        run(graph, body)
    assert refused.value.code == "query_count_overflow"


def test_analyze_reports_row_counts_beyond_64_bits(graph):
    text = f"query q() {{ match {{ {path(9)} }} return {{ max($a9.kind) as m }} }}"
    shown = graph._engine.analyze(graph.snapshot(), text, {})
    assert f"{NODES**10:,} rows" in str(shown)
    assert NODES**10 in [step["rows"] for step in shown.to_json()["steps"]]


# --- the arithmetic ----------------------------------------------------------------------------

NUMBERS = [0, 1, 2**31, 2**32 - 1, 2**53 + 1, 2**62, 2**63 - 1]


def test_products_are_exact():
    one = np.array(NUMBERS, np.int64)
    for factor in NUMBERS:
        found = exact_integers.exact_product(one, np.full(len(one), factor, np.int64))
        assert [int(n) for n in found] == [n * factor for n in NUMBERS]
        again = exact_integers.exact_product(found, one)
        assert [int(n) for n in again] == [n * factor * n for n in NUMBERS]


# --- sums --------------------------------------------------------------------------------------

VALUES = {
    "big": [2**53, 2**63 - 1, 1, -(2**63), 1, 1, 1, None],
    "huge": [2**53, 2**64 - 1, 1, 2**64 - 1, 1, 2**53, None, 2049],
    "small": [2**31 - 1, -(2**31), 7, None, 2**31 - 1, 5, 6, 1],
    "plain": [2**32 - 1, 2**32 - 1, 7, None, 2**31 - 1, 5, 6, 1],
}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("sums") / "g", SCHEMA)
    rows = len(VALUES["big"])
    columns = {
        "big": pa.array(VALUES["big"], pa.int64()),
        "huge": pa.array(VALUES["huge"], pa.uint64()),
        "small": pa.array(VALUES["small"], pa.int32()),
        "plain": pa.array(VALUES["plain"], pa.uint32()),
    }
    names = pa.array([f"n{number}" for number in range(rows)])
    kinds = pa.array([number % 2 for number in range(rows)], pa.int32())
    made.load({"P": pa.table({"name": names, "kind": kinds, **columns})})
    return made


@pytest.mark.parametrize("name", VALUES)
def test_a_sum_of_integers_is_exact_and_rounded_once(numbers, name):
    values = [value for value in VALUES[name] if value is not None]
    body = f"$p: P }} return {{ sum($p.{name}) as s, avg($p.{name}) as a }}"
    expected = float(sum(values))
    assert run(numbers, body).rows == [{"s": expected, "a": expected / len(values)}]


@pytest.mark.parametrize("name", VALUES)
def test_sums_of_groups_are_exact_too(numbers, name):
    body = f"$p: P }} return {{ $p.kind as k, sum($p.{name}) as s }} order {{ k }}"
    expected = [
        {"k": kind, "s": float(sum(value for value in VALUES[name][kind::2] if value is not None))}
        for kind in (0, 1)
    ]
    assert run(numbers, body).rows == expected


@pytest.mark.parametrize("name", VALUES)
def test_the_least_and_the_greatest_integer_are_those_stored(numbers, name):
    values = [value for value in VALUES[name] if value is not None]
    body = f"$p: P }} return {{ min($p.{name}) as l, max($p.{name}) as m }}"
    assert run(numbers, body).rows == [{"l": min(values), "m": max(values)}]


@pytest.mark.parametrize("mode", ExpandMode)
def test_all_ways_to_follow_edges_count_alike(graph, mode):
    body = f"{path(2)} }} return {{ count($a0) as n }}"
    assert run(graph, body, expand=mode).rows == [{"n": NODES**3}]


LONG = {
    "many hops": "$a0: P  $a0 knows{1,1000} $b",
    "more hops than can be listed": "$a0: P  $a0 knows{1,4294967295} $b",
    "many steps": path(220),
}


@pytest.mark.parametrize("name", LONG)
def test_an_estimate_beyond_every_number_is_the_largest_integer(graph, name):
    text = f"query q() {{ match {{ {LONG[name]} }} return {{ count(distinct $a0) as n }} }}"
    rows = [step["estimated_rows"] for step in graph.explain(text).to_json()["steps"]]
    assert rows[0] == 1
    assert max(rows) == (2**63 - 1 if name == "many steps" else NODES**2)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("max($a.kind) as m", {"m": 2}),
        ("count(distinct $a.kind) as n, max($a.big) as m", {"n": 3, "m": None}),
        ("count($a.big) as n", {"n": 0}),
        ("count($a.kind) as n", None),
        ("count($a) as n", None),
    ],
)
def test_rows_that_count_more_often_than_a_64_bit_integer_says_fit_batches(
    graph, monkeypatch, returned, expected
):
    def refuse(*_, **__):
        raise QueryLimit("too much", code=MEMORY_CODE, operator="Query", limit=0)

    monkeypatch.setattr(engine._ResultColumns, "of", refuse)
    body = " ".join(f"${name}: P" for name in "abcdefghi") + f" }} return {{ {returned} }}"
    if expected is not None:
        assert run(graph, body).rows == [expected]
        return
    with pytest.raises(QueryLimit) as refused:
        run(graph, body)
    assert refused.value.code == "query_count_overflow"
