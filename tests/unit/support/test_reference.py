"""The interpreter that judges the engine; the examples it answers are in `tests/cases/read`."""

import json
from math import log

import pytest

from omnigraph.lang import QueryError
from tests.support.catalogs import first
from tests.support.graph_data import content, read_lines, to_lines
from tests.support.reference import Edge, Inexact, PlainGraph, RefusedError, World, ask, text

NET = first("node N { k: String @key  s: String?  v: Vector(2)? } edge To: N -> N { w: I32? }")


def net(*edges, nodes="ABCDE", **properties):
    return World(
        catalog=NET.catalog,
        graph=PlainGraph(
            {"N": {id_: {"k": id_, **properties.get(id_, {})} for id_ in nodes}},
            {"To": [Edge(f"e{n}", src, dst) for n, (src, dst) in enumerate(edges)]},
        ),
    )


def found(world, match, result="$b.k as k", params=None, declared=""):
    source = f"query q({declared}) {{ match {{ {match} }} return {{ {result} }} order {{ k }} }}"
    return "".join(row["k"] for row in ask(world, source, params).rows)


@pytest.mark.parametrize(
    ("edges", "hops", "reached"),
    [
        (["AB", "BC", "CD"], "{1,3}", "BCD"),
        (["AB", "BC", "CD"], "{2,2}", "C"),
        (["AB", "AC", "CB"], "{2,2}", ""),
        (["AB", "BA"], "{1,4}", "B"),
        (["AA"], "{1,1}", "A"),
        (["AA"], "{1,9}", "A"),
        (["AA"], "{2,9}", ""),
        (["AB", "BB"], "{1,1}", "B"),
        (["AB", "BB"], "{1,2}", "B"),
        (["AB", "BB"], "{2,2}", "B"),
        (["AB", "BB"], "{3,9}", ""),
        (["AB", "BB", "BC"], "{2,2}", "BC"),
        (["AB", "AB", "AC", "BD", "CD"], "{2,2}", "D"),
        ([], "{1,9}", ""),
    ],
)
def test_hops_count_the_shortest_way_and_self_loops_once(edges, hops, reached):
    assert found(net(*edges), f'$a: N {{ k: "A" }}  $a to{hops} $b') == reached


@pytest.mark.parametrize("hops", ["{1,1}", "{2,2}", "{1,3}", "{2,4}"])
def test_hops_relate_the_same_nodes_whichever_end_is_bound_first(hops):
    world = net("AB", "BB", "BC", "CA", "CD", "DD", "EA")
    pairs = f"$b: N  $a: N  $a to{hops} $b"
    later = f"$b: N  $a to{hops} $b"
    for match in (pairs, later):
        for a in "ABCDE":
            expected = found(world, f'$a: N {{ k: "{a}" }}  $a to{hops} $b')
            assert found(world, f'{match}  $a.k = "{a}"') == expected


def test_a_row_has_every_named_variable_and_nothing_of_a_negation():
    world = net("AB", "BC")
    answer = ask(world, "query q() { match { $a $e:to $_  not { $a to $c } } return { $a } }")
    assert answer.rows == []
    answer = ask(world, "query q() { match { $a $e:to $_  not { $c to $a } } return { $e.id } }")
    assert answer.rows == [{"e.id": "e0"}]


def test_limits_cut_after_the_order_and_refuse_negative_numbers():
    source = "query q($n: I64?) { match { $b: N } return { $b.k as k } order { k desc } limit $n }"
    assert [row["k"] for row in ask(net(), source, {"n": 2}).rows] == ["E", "D"]
    assert len(ask(net(), source).rows) == 5
    with pytest.raises(RefusedError):
        ask(net(), source, {"n": -1})


def test_parameters_are_checked_before_anything_runs():
    with pytest.raises(QueryError):
        ask(net(), "query q($n: I64) { match { $b: N } return { $b } limit $n }")


def test_without_an_order_an_answer_says_so():
    answer = ask(net(), "query q() { match { $b: N } return { $b } limit 2 }")
    assert (len(answer.rows), len(answer.complete), answer.ordered) == (2, 5, False)


def test_sums_are_exact_and_know_how_far_adding_may_lead_away():
    schema = first("node N { x: F64? }")
    values = {"a": 1e300, "b": 1.0, "c": -1e300}
    world = World(
        catalog=schema.catalog, graph=PlainGraph({"N": {k: {"x": v} for k, v in values.items()}})
    )
    [row] = ask(world, "query q() { match { $n: N } return { sum($n.x) as s } }").rows
    assert row["s"] == 1.0
    assert isinstance(row["s"], Inexact)
    assert row["s"].slack > 1e290


# --- text --------------------------------------------------------------------------------------


def test_relevance_is_bm25():
    texts = {"a": "ship", "b": "ship ship port", "c": "port", "d": "the", "e": None}
    rarity = log(1 + 1.5 / 2.5)
    expected = {
        "a": rarity * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / (5 / 3))),
        "b": rarity * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / (5 / 3))),
    }
    assert text.bm25(texts, "Ships") == pytest.approx(expected)
    assert text.bm25(texts, "of the") == {}
    assert text.bm25({}, "ship") == {}


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("a", "", 1), ("ab", "ba", 2), ("kitten", "sitting", 3), ("日本", "日木語", 2)],
)
def test_edits_are_counted_in_letters(one, other, edits):
    assert text.edits(one, other) == text.edits(other, one) == edits


def test_a_text_query_is_embedded_by_whom_the_world_names():
    nodes = {"A": {"v": [1.0, 0.0]}, "B": {"v": [0.0, 1.0]}}
    world = World(
        catalog=NET.catalog,
        graph=PlainGraph({"N": nodes}),
        embed=lambda words, size: [float(len(words)), 0.0][:size],
    )
    source = 'query q() { match { $n: N } return { $n } order { nearest($n.v, "x") } limit 1 }'
    assert ask(world, source).rows == [{"n": "A"}]


# --- data --------------------------------------------------------------------------------------


def test_data_is_read_with_the_ids_a_graph_would_give():
    schema = first(
        "node K { a: I64  b: Date  @key(b, a)  c: F32? } node U { s: String } edge E: K -> U"
    )
    lines = [
        '{"type": "K", "data": {"a": 7, "b": "1970-01-02", "c": 0.1}}',
        '{"type": "U", "data": {"id": "u", "s": "é"}}',
        '{"edge": "E", "from": "[\\"7\\",\\"1\\"]", "to": "u"}',
    ]
    graph = read_lines(lines, schema)
    assert list(graph.nodes["K"]) == ['["7","1"]']
    assert graph.nodes["K"]['["7","1"]']["c"] == 0.10000000149011612
    assert graph.edges["E"] == [Edge("E-0", '["7","1"]', "u")]
    again = read_lines(to_lines(graph), schema)
    assert content(again) == content(graph)
    assert json.loads(next(to_lines(graph)))["data"]["b"] == "1970-01-02"
