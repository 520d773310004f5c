"""With `reject`, rows that break a rule are left out and written down; the others are published."""

import json
from collections import Counter
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.pipeline.errors import TooManyRejects
from omnigraph.pipeline.load.commit_builder import check_rejects
from omnigraph.write.violations import ValidationFailed
from tests.support.changes import read_state
from tests.support.spark_loads import SCHEMA, begin, knows, load, people

BAD_PEOPLE = [
    ("ann", 30, "a@x"),
    ("bo", 200, "b@x"),
    ("cy", 40, "a@x"),
    ("ann", 31, None),
    (None, 5, None),
    ("dee", 50, "d@x"),
    ("eve", 60, "taken@x"),
]
BAD_KNOWS = [
    ("ann", "dee"),
    ("ann", "bo"),
    ("cy", "ann"),
    ("dee", "old"),
    ("dee", "nobody"),
    *(("old", "ann") for _ in range(4)),
]


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load({"Person": [{"name": "old", "email": "taken@x"}]})
    return graph


def rejects(folder):
    lines = [line for part in Path(folder).iterdir() for line in part.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def rejected_rows(folder):
    found = rejects(folder)
    return sorted((v["type"], v["source"]["row"], v["rule"], v.get("property")) for v in found)


def test_rows_that_break_a_rule_and_rows_that_need_them_are_left_out(spark, graph, tmp_path):
    inputs = [people(spark, BAD_PEOPLE), knows(spark, BAD_KNOWS)]
    folder = str(tmp_path / "rejects")
    done = load(graph, inputs, spark, on_violation="reject", rejects=folder)
    state = read_state(graph)
    assert sorted(state["Person"]) == ["ann", "dee", "old"]
    assert state["Person"]["ann"]["age"] == 30
    ends = sorted((row["src"], row["dst"]) for row in state["Knows"].values())
    assert ends == [("ann", "dee"), ("dee", "old")]
    assert done.rejects == folder
    assert rejected_rows(folder) == [
        ("Knows", 2, "endpoint", None),
        ("Knows", 3, "endpoint", None),
        ("Knows", 5, "endpoint", None),
        *(("Knows", number, "cardinality", None) for number in range(6, 10)),
        ("Person", 2, "range", "age"),
        ("Person", 3, "unique", "email"),
        ("Person", 4, "unique", None),
        ("Person", 5, "required", "name"),
        ("Person", 7, "unique", "email"),
    ]
    rows = {(v["type"], v["source"]["row"]): v["row"] for v in rejects(folder)}
    assert rows["Person", 2]["data"] == {"name": "bo", "age": 200, "email": "b@x"}
    assert rows["Person", 3] == {
        "type": "Person",
        "data": {"name": "cy", "age": 40, "email": "a@x"},
    }
    assert rows["Person", 5] == {"type": "Person", "data": {"age": 5}}
    late = {name: rows["Knows", 5][name] for name in ("edge", "from", "to")}
    assert late == {"edge": "Knows", "from": "dee", "to": "nobody"}
    person, knowing = done.types["node:Person"], done.types["edge:Knows"]
    assert (person.given, person.accepted) == (7, 2)
    assert person.rejected == {"range": 1, "unique": 3, "required": 1}
    assert (knowing.given, knowing.accepted) == (9, 2)
    assert knowing.rejected == {"endpoint": 3, "cardinality": 4}
    assert graph.verify().ok


def test_too_many_rejects_make_a_load_fail(spark, graph):
    head = graph.snapshot().commit_id
    inputs = [people(spark, BAD_PEOPLE), knows(spark, BAD_KNOWS)]
    run = begin(graph)
    with pytest.raises(TooManyRejects, match="12 of 16 rows were rejected") as failure:
        load(graph, inputs, spark, on_violation="reject", max_rejects=0.5, run=run)
    assert failure.value.code == "too_many_rejects"
    assert graph.snapshot().commit_id == head
    assert len(rejected_rows(failure.value.details["rejects"])) == 12


@pytest.mark.parametrize(
    ("rejected", "limit", "unreadable", "is_refused"),
    [
        (0, 0, 0, False),
        (1, 0, 0, True),
        (5, 5, 0, False),
        (6, 5, 0, True),
        (5, 0.5, 0, False),
        (6, 0.5, 0, True),
        (9, None, 0, False),
        (10, None, 0, True),
        (2, 5, 3, False),
        (3, 5, 3, True),
        (3, 0.5, 4, False),
        (4, 0.5, 4, True),
        (9, None, 5, False),
        (10, None, 5, True),
    ],
)
def test_a_limit_is_a_number_of_rows_or_a_share_of_ten(rejected, limit, unreadable, is_refused):
    refused = False
    try:
        check_rejects(
            {"node:Person": Counter(range=rejected)}, rejected, 10, limit, "there", unreadable
        )
    except TooManyRejects:
        refused = True
    assert refused is is_refused


def test_a_share_is_not_reached_a_little_early():
    for percent in range(1, 100):
        check_rejects({}, percent, 100, percent / 100, "there")
        with pytest.raises(TooManyRejects):
            check_rejects({}, percent + 1, 100, percent / 100, "there")


def test_a_load_without_one_good_row_fails(spark, graph):
    with pytest.raises(TooManyRejects, match="2 of 2 rows were rejected, so none are left"):
        load(graph, [people(spark, BAD_PEOPLE[1:2] * 2)], spark, on_violation="reject")


def test_violation_of_no_single_row_fails_the_load(spark, graph):
    graph.load({"Town": [{"name": "x"}], "Lives": [{"from": "old", "to": "x"}]})
    with pytest.raises(ValidationFailed, match="src 'old' not found in Person"):
        load(graph, [people(spark)], spark, on_violation="reject", mode="overwrite")
    unknown = people(spark)
    frame = unknown.frame.withColumnRenamed("age", "years")
    with pytest.raises(ValidationFailed, match="years"):
        load(graph, [type(unknown)("node:Person", frame)], spark, on_violation="reject")
