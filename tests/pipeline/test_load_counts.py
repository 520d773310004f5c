"""A load on Spark counts what changes: rows that are committed already are left out."""

import json

import pytest

import omnigraph.graph as og
from omnigraph.commit.model import Counts
from tests.behaviour.test_counts import check
from tests.support.spark_loads import PEOPLE, SCHEMA, knows, load, people

VALUES = """
node Item {
  name: String @key
  score: F64?
  tags: [String]?
  at: Vector(2)?
  photo: Blob?
}
"""
ITEMS = [
    {"name": f"i{n}", "score": -0.0, "tags": ["a", ""], "at": [0.5, 1.0], "photo": "base64:AAEC"}
    for n in range(4)
]


def test_rows_that_are_the_same_change_nothing(spark, tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    load(graph, [people(spark), knows(spark)], spark)
    before = graph.snapshot()
    again = load(graph, [people(spark)], spark)
    assert (again.commit.counts, again.types["node:Person"].accepted) == ({}, 20)
    check(graph, again.commit)
    assert graph.snapshot().head.datasets == before.head.datasets
    rows = [*PEOPLE, ("new", 1, "new@x")]
    rows[3] = ("p3", 99, "3@x")
    changed = load(graph, [people(spark, rows), knows(spark, [("p3", "p3")])], spark)
    assert dict(changed.commit.counts) == {
        "node:Person": Counts(inserted=1, updated=1),
        "edge:Knows": Counts(inserted=1),
    }
    assert changed.types["node:Person"].counts == Counts(inserted=1, updated=1)
    check(graph, changed.commit)
    people_now = {n: graph.entity_at("Person", n)["age"] for n in ("p2", "p3", "new")}
    assert people_now == {"p2": 2, "p3": 99, "new": 1}
    assert graph.snapshot().entry("node:Person").rows == 21
    assert [p for p in graph.verify().problems if not p.harmless] == []


def test_an_overwrite_counts_what_changes(spark, tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    load(graph, [people(spark)], spark)
    same = load(graph, [people(spark)], spark, mode="overwrite")
    assert same.commit.counts == {}
    rows = [("p1", 1, "1@x"), ("p2", 99, "2@x"), ("new", 1, None)]
    made = load(graph, [people(spark, rows)], spark, mode="overwrite")
    counts = {"node:Person": Counts(inserted=1, updated=1, deleted=18)}
    assert dict(made.commit.counts) == counts
    check(graph, made.commit)


@pytest.mark.parametrize(
    "other",
    [{"score": 0.0}, {"tags": ["a"]}, {"at": [0.5, -1.0]}, {"photo": "base64:AAED"}],
    ids=["zero", "list", "vector", "blob"],
)
def test_values_are_compared_exactly(spark, tmp_path, other):
    graph = og.init(tmp_path / "graph", VALUES)
    graph.load({"Item": ITEMS})
    given = [*ITEMS[:2], ITEMS[2] | other, ITEMS[3]]
    lines = (json.dumps({"type": "Item", "data": row}) for row in given)
    path = tmp_path / "items.ndjson"
    path.write_text("\n".join(lines))
    made = graph.load(path, engine="spark").commit
    assert dict(made.counts) == {"node:Item": Counts(updated=1)}
    check(graph, made)
