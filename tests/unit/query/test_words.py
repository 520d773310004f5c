"""Texts are cut once, whatever is written around them."""

import json
import random

import pytest

import omnigraph.graph as og
from tests.support.reference import text as reference

SCHEMA = "node Doc { k: String @key  text: String? }"
FOUND = "query q($w: String) { match { $d: Doc  search($d.text, $w) } return { $d.k as k } }"
RANKED = """query q($w: String) {
  match { $d: Doc } return { $d.k as k, bm25($d.text, $w) as score } order { bm25($d.text, $w) }
}"""
WORDS = ("ship", "sailing", "the", "port", "tankers", "café", "日本", "of", "abc")


def some_docs(seed, numbers):
    draw = random.Random(seed)
    return {
        f"d{n}": None if draw.random() < 0.1 else " ".join(draw.choices(WORDS, k=draw.randrange(7)))
        for n in numbers
    }


@pytest.fixture
def docs():
    return some_docs(1, range(400))


@pytest.fixture
def graph(tmp_path, docs):
    graph = og.init(tmp_path / "g", SCHEMA)
    load(graph, docs)
    return graph


def load(graph, docs):
    rows = ({"type": "Doc", "data": {"k": k, "text": text}} for k, text in docs.items())
    graph.load("\n".join(map(json.dumps, rows)).encode())


def cuts(graph):
    """Return the segments of the version that was asked last."""
    [(key, _)] = graph._engine.words._last._values.values()
    return [cut.segment for cut in graph._engine.store.get(key).cuts]


def assert_answers(graph, docs, at=None):
    for query in ("ship", "ports sail", "日本 cafe", "abc", "unknown"):
        expected = reference.bm25(docs, query)
        rows = graph.query(RANKED, {"w": query}, at=at).rows
        assert {row["k"]: row["score"] for row in rows} == pytest.approx(expected)
        found = {row["k"] for row in graph.query(FOUND, {"w": query}, at=at).rows}
        assert found == expected.keys()


def test_new_texts_are_cut_alone(graph, docs):
    assert_answers(graph, docs)
    [first] = cuts(graph)
    more = some_docs(2, range(400, 420))
    load(graph, more)
    assert_answers(graph, docs | more)
    assert [segment is first for segment in cuts(graph)] == [True, False]


def test_a_changed_text_is_cut_and_those_beside_it_are_not(graph, docs):
    assert_answers(graph, docs)
    [first] = cuts(graph)
    changed = {"d7": "ship ship port", "d8": None}
    load(graph, changed)
    assert_answers(graph, docs | changed)
    assert cuts(graph)[0] is first
    assert sum(len(segment.lengths) for segment in cuts(graph)[1:]) == 2


def test_deleted_texts_are_not_found_and_nothing_is_cut(graph, docs):
    assert_answers(graph, docs)
    [first] = cuts(graph)
    graph.mutate('query q() { delete Doc where k = "d3" }')
    left = {k: text for k, text in docs.items() if k != "d3"}
    assert_answers(graph, left)
    assert cuts(graph) == [first]


def test_an_older_version_has_the_texts_of_its_time(graph, docs):
    before = graph.snapshot().commit_id
    graph.mutate('query q() { delete Doc where k = "d3" }')
    more = some_docs(3, range(400, 450))
    load(graph, more)
    now = {k: text for k, text in (docs | more).items() if k != "d3"}
    assert_answers(graph, now)
    assert_answers(graph, docs, at=before)
    assert_answers(graph, now)


def test_compacted_texts_are_found(graph, docs):
    more = some_docs(4, range(400, 600))
    load(graph, more)
    assert_answers(graph, docs | more)
    graph.optimize()
    assert_answers(graph, docs | more)
    graph.mutate('query q() { delete Doc where k = "d3" }')
    graph.optimize()
    assert_answers(graph, {k: text for k, text in (docs | more).items() if k != "d3"})


def test_many_small_changes_leave_few_segments(graph, docs):
    now = dict(docs)
    for number in range(24):
        new = some_docs(number, [1000 + number])
        load(graph, new)
        now |= new
        graph.query(FOUND, {"w": "ship"})
    assert_answers(graph, now)
    assert len(cuts(graph)) <= 5


def test_few_texts_of_many_are_cut_by_themselves(graph, docs):
    narrow = """query q() {
      match { $d: Doc { k: "d5" }  search($d.text, "ship sail port tanker cafe abc 日本") }
      return { $d.k as k }
    }"""
    expected = [{"k": "d5"}] if reference.stems(docs["d5"] or "") else []
    assert graph.query(narrow).rows == expected
    assert len(graph._engine.words._last) == 0


def test_a_property_does_not_have_the_words_of_another_one_that_had_its_name(graph, docs):
    assert_answers(graph, docs)
    before = graph.snapshot().commit_id
    graph.schema.apply('node Doc { k: String @key  old: String? @rename_from("text") }')
    graph.schema.apply(SCHEMA.replace("text:", "old: String?  text:"))
    assert_answers(graph, dict.fromkeys(docs))
    changed = docs | {"d0": "an abc of ships"}
    rows = ({"type": "Doc", "data": {"k": k, "text": t}} for k, t in changed.items())
    graph.load("\n".join(map(json.dumps, rows)).encode())
    assert_answers(graph, changed)
    assert_answers(graph, docs, at=before)
