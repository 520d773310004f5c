"""A load that lost a race looks again only where it meets who won, with the verdict of doing so."""

import os
from dataclasses import dataclass, field
from typing import Any

import pytest

import omnigraph.graph as og
from omnigraph.write.violations import ValidationFailed
from tests.behaviour.test_changes import without_new_ids
from tests.support.changes import read_state, said
from tests.support.spark_loads import SCHEMA, knows, load, people

FIRST = {
    "Person": [{"name": f"p{n}", "age": n, "email": f"{n}@x"} for n in range(6)],
    "Town": [{"name": "Ulm"}, {"name": "Bonn"}],
    "Knows": [{"id": f"k{n}", "from": "p0", "to": f"p{n + 1}"} for n in range(2)],
}
NEW = [{"name": "new", "email": "new@x"}]


@dataclass(frozen=True)
class Case:
    """What is loaded, what another writer commits before it is published, and the outcome.

    `validations` is how often everything is looked at; `refused` the rules that are broken.
    """

    rows: dict[str, Any]
    change: str
    validations: int = 1
    refused: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "others add": Case(
        {"Person": NEW, "Knows": [{"from": "new", "to": "p1"}]},
        'insert Person { name: "other", email: "other@x" }',
    ),
    "others change the end of an edge": Case(
        {"Lives": [{"from": "p1", "to": "Ulm"}]}, 'update Person set { age: 7 } where name = "p1"'
    ),
    "others remove the end of an edge": Case(
        {"Lives": [{"from": "p1", "to": "Bonn"}]},
        'delete Town where name = "Bonn"',
        refused=("endpoint",),
    ),
    "others take a unique value": Case(
        {"Person": NEW},
        'insert Person { name: "other", email: "new@x" }',
        refused=("unique",),
    ),
    "others take a key": Case(
        {"Person": NEW},
        'insert Person { name: "new" }',
        refused=("key_conflict",),
        options={"mode": "append"},
    ),
    "others use up the number of edges": Case(
        {"Knows": [{"from": "p0", "to": "p4"}]},
        'insert Knows { from: "p0", to: "p5" }',
        refused=("cardinality",),
    ),
    "others change rows beside those that are replaced": Case(
        {"Person": [{"name": "p2", "age": 22}, *NEW]},
        'update Person set { age: 33 } where name = "p3"',
    ),
    "others change the row that is replaced": Case(
        {"Person": [{"name": "p2", "age": 22}]},
        'update Person set { age: 33 } where name = "p2"',
        validations=2,
    ),
    "others move edges from sources that edges are moved from": Case(
        {"Knows": [{"id": "k0", "from": "p3", "to": "p4"}]},
        'insert Knows { from: "p0", to: "p5" }',
        validations=2,
    ),
    "others change rows beside those that are completed": Case(
        {"Person": [{"name": "p2", "age": 22}]},
        'update Person set { age: 33 } where name = "p3"',
        options={"partial": True},
    ),
    "others change the row that is completed": Case(
        {"Person": [{"name": "p2", "age": 22}]},
        'update Person set { email: "y@x" } where name = "p2"',
        validations=2,
        options={"partial": True},
    ),
    "others rewrite what is replaced": Case(
        {"Person": [{"name": "p2", "age": 22}]},
        "optimize",
        validations=2,
    ),
}

DEFAULT = (
    "others add",
    "others remove the end of an edge",
    "others take a unique value",
    "others use up the number of edges",
    "others change rows beside those that are replaced",
    "others change the row that is completed",
)
CHOSEN = CASES if os.environ.get("PIPELINE_CASES") == "all" else DEFAULT
"""Each takes seconds, so the default suite runs some; `make soak` runs all."""


@pytest.fixture
def graphs(tmp_path):
    made = [og.init(tmp_path / engine, SCHEMA) for engine in ("spark", "local")]
    for graph in made:
        graph.load(FIRST)
        graph.mutate('query q() { insert Person { name: "late", email: "late@x" } }')
    return made


def change(graph, text):
    """Make the change of another writer."""
    if text == "optimize":
        graph.optimize()
    else:
        graph.mutate(f"query q() {{ {text} }}")


def overtaken(graph, text):
    """Commit from another handle right before a load is published; return the steps it takes."""
    steps = []
    other = og.open(graph.uri)

    def observe(step):
        steps.append(step)
        if step == "pipeline: prepared" and steps.count(step) == 1:
            change(other, text)

    graph._manifest.datasets.observe = observe
    return steps


def verdict(graph, case, engine):
    """Return what a load counts, or what it is refused for."""
    if not case.refused:
        done = graph.load(case.rows, engine=engine, **case.options)
        return done.nodes, done.edges, dict(done.commit.counts)
    with pytest.raises(ValidationFailed) as failure:
        graph.load(case.rows, engine=engine, **case.options)
    assert {violation.rule for violation in failure.value.violations} == set(case.refused)
    return said(failure.value)


@pytest.mark.parametrize("name", CHOSEN)
def test_a_load_that_is_overtaken_has_the_verdict_of_one_that_comes_later(spark, graphs, name):
    case = CASES[name]
    steps = overtaken(graphs[0], case.change)
    change(graphs[1], case.change)
    verdicts = [
        verdict(graph, case, engine)
        for graph, engine in zip(graphs, ("spark", "local"), strict=True)
    ]
    assert verdicts[0] == verdicts[1]
    assert steps.count("pipeline: prepared") == (1 if case.refused else 2)
    assert steps.count("pipeline: validated") == case.validations
    states = [without_new_ids(read_state(og.open(graph.uri))) for graph in graphs]
    assert states[0] == states[1]
    assert graphs[0].verify().ok


@pytest.mark.parametrize(
    ("text", "validations", "known"),
    [
        ('insert Person { name: "other" }', 1, [("a", "p1")]),
        ('insert Person { name: "nobody" }', 2, [("a", "nobody"), ("a", "p1")]),
    ],
)
def test_rows_stay_rejected_unless_the_winner_makes_them_valid(
    spark, graphs, text, validations, known
):
    rows = [("a", 1, "a@x"), ("b", 2, "1@x"), ("c", 3, None)]
    steps = overtaken(graphs[0], text)
    inputs = [people(spark, rows), knows(spark, [("a", "nobody"), ("a", "p1")])]
    done = load(graphs[0], inputs, spark, mode="append", on_violation="reject")
    assert steps.count("pipeline: validated") == validations
    people_, edges = done.types["node:Person"], done.types["edge:Knows"]
    assert (people_.accepted, people_.rejected) == (2, {"unique": 1})
    assert edges.accepted == len(known)
    graph = og.open(graphs[0].uri)
    state = read_state(graph)
    assert {"a", "c"} <= set(state["Person"])
    assert "b" not in state["Person"]
    found = [(row["src"], row["dst"]) for row in state["Knows"].values()]
    assert sorted(pair for pair in found if pair[0] == "a") == known
    assert graph.verify().ok
