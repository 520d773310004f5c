"""A limit without an order looks at no more than it needs."""

import pyarrow as pa
import pytest

import omnigraph.graph as og

PEOPLE = 2_000


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    schema = "node Person { name: String @key  age: I32 } edge Knows: Person -> Person"
    made = og.init(tmp_path_factory.mktemp("stop") / "g", schema)
    names = [f"p{number:04d}" for number in range(PEOPLE)]
    made.load(
        {
            "Person": pa.table({"name": names, "age": pa.array(range(PEOPLE), pa.int32())}),
            "Knows": pa.table({"from": names, "to": [*names[1:], names[0]]}),
        }
    )
    return made


QUERIES = {
    "Expand": "$p: Person  $p knows $f } return { $p.name as n, $f.name as f } limit 3 offset 2",
    "Filter": "$p: Person  $p knows $f  $p.age < $f.age } return { $p.name as n } limit 3",
    "ExistsJoin": "$p: Person  exists { $p knows $f  $f.age > 0 } } return { $p.name } limit 3",
    "OptionalJoin": "$p: Person  optional { $p knows $f } } return { $p.name, $f.name } limit 3",
    "Cross": "$p: Person  $q: Person } return { $p.name as n, $q.name as m } limit 3",
    "AntiJoin": "$p: Person  not { $p knows $f  $f.age = 1 } } return { $p.name as n } limit 3",
}


@pytest.mark.parametrize("operator", QUERIES)
def test_only_a_part_of_the_rows_is_made(graph, operator, monkeypatch):
    monkeypatch.setattr("omnigraph.query.row_batches.FIRST_BATCH_ROWS", 16)
    text = f"query q() {{ match {{ {QUERIES[operator]} }}"
    steps = graph.explain(text, analyze=True).steps
    [rows] = {
        step.actual.rows for step in steps if step.operator.startswith(("SliceRows", "Slice"))
    }
    assert rows == 3
    made = [s.actual.rows for s in steps if s.operator.lower().startswith(operator.lower()[:4])]
    assert made
    assert max(made) <= 16
    assert len(graph.query(text)) == 3


def test_a_cross_product_with_a_test_is_made_until_enough_rows_pass(graph):
    body = "$p: Person  $q: Person  $p.age + 1 = $q.age } return { $p.age as a, $q.age as b }"
    text = f"query q() {{ match {{ {body} limit 3 }}"
    examined = [step.actual.rows for step in graph.explain(text, analyze=True).steps]
    assert max(examined) < PEOPLE**2 / 10
    assert [(row["a"], row["b"]) for row in graph.query(text)] == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("limit", [3, 7])
def test_different_rows_are_made_until_there_are_enough(graph, limit, monkeypatch):
    monkeypatch.setattr("omnigraph.query.row_batches.FIRST_BATCH_ROWS", 16)
    body = "$p: Person  $q: Person } return distinct { $p.age / 2 as half, $q.age % 5 as b }"
    text = f"query q() {{ match {{ {body} limit {limit} offset 2 }}"
    steps = graph.explain(text, analyze=True).steps
    assert max(s.actual.rows for s in steps if s.operator == "Cross") <= 3 * PEOPLE
    rows = [(row["half"], row["b"]) for row in graph.query(text)]
    assert rows == [(0.0, n % 5) for n in range(2, 5)] + [(0.5, n) for n in range(limit - 3)]


def test_fewer_different_rows_than_the_limit_are_all_found(graph):
    body = "$p: Person } return distinct { $p.age % 5 as m } limit 100"
    found = graph.query(f"query q() {{ match {{ {body} }}")
    assert [row["m"] for row in found] == [0, 1, 2, 3, 4]


def test_rows_that_are_rare_are_found_in_later_parts(graph, monkeypatch):
    monkeypatch.setattr("omnigraph.query.row_batches.FIRST_BATCH_ROWS", 16)
    body = "$p: Person  $p knows $f  $p.age > 1990  $f.age > $p.age } return { $p.age as age }"
    found = graph.query(f"query q() {{ match {{ {body} limit 100 }}")
    assert sorted(row["age"] for row in found) == list(range(1991, PEOPLE - 1))
