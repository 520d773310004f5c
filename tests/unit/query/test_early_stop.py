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
    "Scan": "$p: Person } return { $p.name as n, $p.age as age } limit 3",
    "Expand": "$p: Person  $p knows $f } return { $p.name as n, $f.name as f } limit 3 offset 2",
    "Filter": "$p: Person  $p knows $f  $p.age < $f.age } return { $p.name as n } limit 3",
    "ExistsJoin": "$p: Person  exists { $p knows $f  $f.age > 0 } } return { $p.name } limit 3",
    "OptionalJoin": "$p: Person  optional { $p knows $f } } return { $p.name, $f.name } limit 3",
    "AntiJoin": "$p: Person  not { $p knows $f  $f.age = 1 } } return { $p.name as n } limit 3",
}


@pytest.mark.parametrize("operator", QUERIES)
def test_only_a_part_of_the_rows_is_made(graph, operator, monkeypatch):
    monkeypatch.setattr("omnigraph.query.executor.FIRST_SCAN_ROWS", 16)
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


def test_rows_that_are_rare_are_found_in_later_parts(graph, monkeypatch):
    monkeypatch.setattr("omnigraph.query.executor.FIRST_SCAN_ROWS", 16)
    body = "$p: Person  $p knows $f  $p.age > 1990  $f.age > $p.age } return { $p.age as age }"
    found = graph.query(f"query q() {{ match {{ {body} limit 100 }}")
    assert sorted(row["age"] for row in found) == list(range(1991, PEOPLE - 1))
