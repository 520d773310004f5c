"""Algorithms on both engines: the values of a plain reference, stored as a property."""

import os
from collections import Counter
from random import Random

import pytest
from pyspark.sql.classic.dataframe import DataFrame

import omnigraph as og
from omnigraph import pipeline
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.pipeline.analytics import analysis
from omnigraph.pipeline.analytics.run import SPARK_ALGORITHMS
from omnigraph.query.analytics.algorithms import ALGORITHMS
from omnigraph.query.limits import QueryLimit
from tests.support import reference_algorithms

pytestmark = pytest.mark.usefixtures("quick")
SCHEMA = """
node Person {
  name: String @key
  rank: F64?
  group: String?
  degree: I64?
  kind: enum(a, b)?
}
node Paper { title: String  score: F32? }
edge Knows: Person -> Person
edge Wrote: Person -> Paper
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A graph of long chains, dense corners, loops, parallel edges and nodes by themselves."""
    random, graph = Random(7), og.init(tmp_path_factory.mktemp("network") / "g", SCHEMA)
    names = [f"p{number:02}" for number in range(30)]
    chain = [(f"p{n + 1:02}", f"p{n:02}") for n in range(9)]
    dense = [(random.choice(names[12:20]), random.choice(names[12:20])) for _ in range(24)]
    some = [(random.choice(names[20:27]), random.choice(names[20:27])) for _ in range(9)]
    knows = [*chain, *dense, *some, ("p12", "p12"), ("p03", "p04"), ("p03", "p04")]
    graph.load(
        {
            "Person": [{"name": name, "kind": "a"} for name in names],
            "Paper": [{"id": id_, "title": id_} for id_ in ("p00", "x", "y", "z")],
            "Knows": [{"from": src, "to": dst} for src, dst in knows],
            "Wrote": [{"from": "p28", "to": "x"}, {"from": "p00", "to": "p00"}],
        }
    )
    return graph


def ends(graph, *types):
    """Return nodes and edges with the type before each id."""
    nodes = [
        f"Person/{row['n']}"
        for row in graph.query("query q() { match { $n: Person } return { $n } }")
    ]
    nodes += [
        f"Paper/{row['n']}"
        for row in graph.query("query q() { match { $n: Paper } return { $n } }")
    ]
    kinds = {"Knows": ("Person", "Person"), "Wrote": ("Person", "Paper")}
    edges = []
    for name in types:
        src, dst = kinds[name]
        word = name[0].lower() + name[1:]
        read = f"query q() {{ match {{ $a: {src} $a $e:{word} $b }} return {{ $a, $b }} }}"
        edges += [(f"{src}/{row['a']}", f"{dst}/{row['b']}") for row in graph.query(read)]
    if types == ("Knows",):
        nodes = [node for node in nodes if node.startswith("Person/")]
    return nodes, edges


ENGINES = ["local", "spark"] if os.environ.get("PIPELINE_CASES") == "all" else ["local"]
"""`make test` stores the result of one algorithm from Spark, and compares those of all of them."""


@pytest.fixture(params=["local", "spark"])
def run(request, graph):
    """Runs an analysis on one engine, into a branch of its own; returns the result and values."""
    engine, branches = request.param, f"{request.param}/{request.node.originalname}"

    def run_into(algorithm, into, edges=("Knows",), **options):
        branch = f"{branches}/{len(graph.branches.list())}"
        options = {"branch": branch, "from_": "main", "engine": engine, **options}
        done = graph.pipeline.analyze(algorithm, edges, into, **options)
        assert done.engine == engine
        return done, stored(graph, branch, into)

    return run_into


def stored(graph, branch, into):
    type_name, _, name = into.partition(".")
    read = f"query q() {{ match {{ $n: {type_name} }} return {{ $n, $n.{name} as value }} }}"
    return {row["n"]: row["value"] for row in graph.query(read, at=branch)}


def persons(values):
    found = {k.removeprefix("Person/"): v for k, v in values.items() if k.startswith("Person/")}
    return {k: v.removeprefix("Person/") if isinstance(v, str) else v for k, v in found.items()}


def test_pagerank_is_stored_on_a_branch_and_is_the_same_every_time(run, graph, monkeypatch):
    def refuse(frame):
        raise AssertionError("values of nodes stay on executors")

    monkeypatch.setattr(DataFrame, "toArrow", refuse)
    before = graph.snapshot().commit_id
    done, found = run("pagerank", "Person.rank", iterations=3)
    expected = reference_algorithms.ranks(*ends(graph, "Knows"), rounds=3)
    assert found == pytest.approx(persons(expected), abs=1e-12)
    assert (done.nodes, done.rounds, done.loaded.branch_created) == (30, 3, True)
    assert graph.snapshot().commit_id == before, "main is as it was"
    commit = graph.commits.list(done.loaded.branch)[0]
    message = "pagerank over Knows into Person.rank"
    assert (commit.id, commit.message) == (done.loaded.commit.id, message)
    read = "query q() { match { $n: Person } return { count($n.kind) as n } }"
    assert graph.query(read, at=done.loaded.branch).rows == [{"n": 30}], "other properties stay"
    assert run("pagerank", "Person.rank", iterations=3)[1] == found


@pytest.mark.parametrize("run", ENGINES, indirect=True)
def test_pagerank_ends_when_little_changes(run, graph):
    done, found = run("pagerank", "Person.rank", damping=0.2, tolerance=0.01)
    assert 1 < done.rounds < 5
    expected = reference_algorithms.ranks(*ends(graph, "Knows"), rounds=100, damping=0.2)
    assert found == pytest.approx(persons(expected), abs=0.01)


@pytest.mark.parametrize("run", ENGINES, indirect=True)
def test_components_over_several_types_are_named_by_their_first_node(run, graph):
    _, found = run("components", "Person.group", ("Knows", "Wrote"))
    expected = reference_algorithms.first_of_component(*ends(graph, "Knows", "Wrote"))
    assert found == persons(expected)
    assert (found["p09"], found["p28"]) == ("Paper/p00", "Paper/x")


@pytest.mark.parametrize("run", ENGINES, indirect=True)
def test_labels_are_those_of_most_neighbours(run, graph):
    done, found = run("labels", "Person.group", iterations=4)
    expected = reference_algorithms.communities(*ends(graph, "Knows"), rounds=4)
    assert found == persons(expected)
    assert 1 <= done.rounds <= 4


@pytest.mark.parametrize("run", ENGINES, indirect=True)
@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_degrees_count_every_edge(run, graph, direction):
    _, found = run("degrees", "Person.degree", direction=direction)
    _, edges = ends(graph, "Knows")
    places = {"out": (0,), "in": (1,), "both": (0, 1)}[direction]
    counts = Counter(edge[place] for edge in edges for place in places)
    assert found == {name: counts[f"Person/{name}"] for name in found}
    assert len(found) == 30


def test_nodes_without_a_key_are_known_by_their_ids(run, graph):
    _, found = run("pagerank", "Paper.score", ("Wrote",), iterations=1)
    expected = reference_algorithms.ranks(*ends(graph, "Wrote"), rounds=1)
    assert found == pytest.approx(
        {k.removeprefix("Paper/"): v for k, v in expected.items() if k.startswith("Paper/")},
        abs=1e-6,
    )


@pytest.mark.parametrize(
    ("algorithm", "edges", "options"),
    [
        ("pagerank", ("Wrote", "Knows"), {"damping": 0.2, "tolerance": 0.01}),
        ("components", ("Knows", "Wrote"), {}),
        ("labels", ("Wrote", "Knows"), {}),
        ("degrees", ("Knows", "Wrote"), {"direction": "both"}),
    ],
)
def test_both_engines_give_exactly_the_same_rows(spark, graph, algorithm, edges, options):
    here = graph.analyze(algorithm, edges, **options)
    there = graph.analyze(algorithm, edges, engine="spark", **options)
    assert there.toArrow().to_pylist() == here.rows, "exactly: ranks are integers until the end"


def test_what_does_not_fit_is_computed_on_spark_unless_it_must_not_be(spark, graph, monkeypatch):
    monkeypatch.setattr(analysis, "DEFAULT_MEMORY_BYTES", 1000)
    done = graph.pipeline.analyze("degrees", ["Knows"], "Person.degree", branch="d", from_="main")
    assert done.engine == "spark"
    limits = {"branch": "d", "memory": 10**8}
    found = graph.pipeline.analyze("degrees", ["Knows"], "Person.degree", **limits)
    refused(graph, "degrees", "Person.degree", engine="local")
    refused(graph, "kcore", "Person.degree")
    assert (found.engine, found.loaded.commit) == ("local", None), "the same values"


def refused(graph, algorithm, into, **options):
    with pytest.raises(QueryLimit, match=f"{algorithm} over 30 nodes and 4. edges") as error:
        graph.pipeline.analyze(algorithm, ["Knows"], into, **options)
    assert error.value.code == "query_memory"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ({"algorithm": "closeness"}, "analysis_unknown", "one of pagerank, components"),
        ({"into": "rank"}, "analysis_target_invalid", "must be Type.property, got 'rank'"),
        ({"into": "Person.age"}, "analysis_target_invalid", "add `age: F64\\? or F32\\?`"),
        ({"into": "Person.name"}, "analysis_target_invalid", "Person.name is String; pagerank"),
        ({"into": "Person.kind", "algorithm": "labels"}, "analysis_target_invalid", "enum"),
        ({"into": "Persn.rank"}, "unknown_type", "did you mean"),
        ({"edges": ("Knws",)}, "unknown_type", "did you mean"),
        ({"edges": ()}, "analysis_without_edges", "at least one edge type"),
        ({"options": {"damping": 1.0}}, "analysis_option_invalid", "less than 1"),
        (
            {"algorithm": "degrees", "into": "Person.degree", "options": {"direction": "up"}},
            "analysis_option_invalid",
            "out, in, both, got 'up'",
        ),
    ],
)
def test_invalid_analysis_is_refused_and_changes_nothing(spark, graph, arguments, code, message):
    plain = {"algorithm": "pagerank", "edges": ("Knows",), "into": "Person.rank", "options": {}}
    before = graph.snapshot().commit_id
    with pytest.raises((InvalidInput, NotFound), match=message) as error:
        pipeline.analyze(graph, pipeline.Analysis(**{**plain, **arguments}))
    assert error.value.code == code
    assert graph.snapshot().commit_id == before


def test_spark_has_the_algorithms_that_the_registry_says():
    assert set(SPARK_ALGORITHMS) == {a.name for a in ALGORITHMS.values() if a.on_spark}
