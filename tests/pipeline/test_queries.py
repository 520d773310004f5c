"""Queries on Spark: every answer is that of the reference, and of the local engine.

SPARK_READS says how many random graphs to ask, and whether to ask all cases; READS_FROM is the seed
of the first.
"""

import os
from itertools import pairwise
from random import Random

import pytest

import omnigraph as og
from omnigraph import pipeline
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.lang import QueryError
from omnigraph.pipeline.connector.filters import apply_conditions
from omnigraph.pipeline.connector.table_scan import pin_table
from omnigraph.pipeline.query.execute import QueryInput, build_query_frame
from omnigraph.plan import FUNCTIONS
from omnigraph.plan.functions import FunctionKind
from tests.cases.test_read_cases import CASES, graph_of  # noqa: F401 - a fixture
from tests.support.agreement import disagreement
from tests.support.case_runs import run
from tests.support.generated_reads import Read, some_reads
from tests.support.read_checks import differences
from tests.support.reference import RefusedError
from tests.support.spark_reads import ask_in_memory, frame_in_memory

FIRST, COUNT = int(os.environ.get("READS_FROM", "0")), int(os.environ.get("SPARK_READS", "0"))
REFUSED = "cannot run on Spark"


def is_refused(text):
    """Return whether a query uses what Spark does not do."""
    names = [name for name, f in FUNCTIONS.items() if f.kind in _REFUSED or name == "rrf"]
    return "embedded for each row" in text or any(f"{n}(" in text for n in [*names, "bm25"])


_REFUSED = (FunctionKind.PREDICATE, FunctionKind.PATH)
ANSWERED = [case for case in CASES if not is_refused(str(case.values[0]))]


@pytest.mark.parametrize("case", ANSWERED if COUNT else ANSWERED[::9])
def test_spark_gives_the_rows_of_the_case(quick, case, graph_of):  # noqa: F811 - the fixture
    found = run(case)
    [query] = case.all("query")
    read, ask = Read(query.body, dict(found.values)), ask_in_memory(quick)
    if isinstance(found.answer, RefusedError):
        with pytest.raises(OmniError):
            ask(graph_of(case), read)
        return
    given = ask(graph_of(case), read)
    assert disagreement(found.answer, given.columns, given.rows) is None


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(COUNT, 1)))
def test_spark_and_reference_agree_on_a_random_graph(quick, seed):
    ways = {"spark": ask_in_memory(quick)}
    drawn = some_reads(Random(seed), 12, search=bool(seed % 2))
    mismatches = [text for text in differences(drawn, "at once", ways) if REFUSED not in text]
    assert not mismatches, f"{len(mismatches)} differences, the first: {mismatches[0]}"


# --- through the data source -------------------------------------------------------------------

SCHEMA = """
node Person {
  name: String @key
  age: U64?
  aGe: I32?
  born: DateTime?
  far: Vector(2)? @index(metric="l2")
}
edge Knows: Person -> Person { since: Date? }
"""
FRIENDS = """
query friends($least: U64?) {
  match {
    $a: Person
    $a $k:knows $b
    $b.age >= $least
    not { $b knows{1,3} $a }
  }
  return { $a.name as aB, $b.name as ab, $k.since, $b.born, $b.age, $b.aGe, $b.far }
  order { $b.age desc, $k.since }
  limit 3
}
"""


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("people") / "g", SCHEMA)
    names = ["ada", "bob", "cy", "dora"]
    persons = [
        {"name": name, "age": 2**64 - 1 - n, "aGe": n, "far": [n, 1], "born": f"000{n + 1}-02-03"}
        for n, name in enumerate(names)
    ]
    ends = [("ada", "bob"), ("bob", "cy"), ("cy", "dora"), ("ada", "dora"), ("dora", "dora")]
    knows = [{"from": a, "to": b, "since": "0001-01-01"} for a, b in ends]
    graph.load({"Person": persons, "Knows": knows})
    return graph


def test_a_frame_has_the_rows_and_types_of_the_result(spark, people):
    params = {"least": 2**64 - 4}
    frame = people.query(FRIENDS, params, engine="spark")
    expected = people.query(FRIENDS, params)
    assert people.stream(FRIENDS, params, engine="spark").to_reader().read_all() == (
        expected.to_arrow()
    )
    assert [tuple(row)[:2] for row in frame.collect()] == [
        (row["aB"], row["ab"]) for row in expected.rows
    ]
    assert len(expected) == 3
    assert frame.dtypes == [
        ("aB", "string"),
        ("ab", "string"),
        ("k.since", "date"),
        ("b.born", "timestamp"),
        ("b.age", "decimal(20,0)"),
        ("b.aGe", "int"),
        ("b.far", "array<float>"),
    ]


def test_frame_keeps_the_snapshot_of_its_query(spark, people):
    branch = people.branch("later", create=True)
    read = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    frame = branch.query(read, engine="spark")
    branch.load({"Person": [{"name": "eve"}]})
    assert [row[0] for row in frame.collect()] == ["ada", "bob", "cy", "dora"]
    assert branch.query(read, engine="spark").count() == 5
    assert people.query(read, at="main", engine="spark").count() == 4


def test_storage_skips_rows_that_a_query_does_not_need(quick, people):
    asked = []
    read = """query q($n: U64) {
      match { $a: Person { name: "ada" }  $a knows $b  $b.age >= $n  $b.name in ["bob", "cy"]
              $b.aGe < 2.5  $b.far is not null }
      return { $b.name } }"""
    question = QueryInput(source=read, params={"n": 5})

    def reader(kind, name, columns, where):
        asked.append((name, sorted(where)))
        pinned = apply_conditions(
            pin_table(people._manifest, people.snapshot(), f"{kind}:{name}"), where
        )
        return frame_in_memory(quick, pinned.named(columns))

    found = build_query_frame(people._engine, people.snapshot(), question, reader)
    assert [row[0] for row in found.frame.collect()] == ["bob"]
    assert sorted(asked) == [
        ("Knows", []),
        ("Person", [("age", ">=", 5), ("name", "in", ["bob", "cy"])]),
        ("Person", [("name", "=", "ada")]),
    ]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ('search($p.name, "ada")', ["search"]),
        (
            'fuzzy($p.name, "ada")  $p.age > 1  not { match_text($p.name, "b") }',
            ["fuzzy", "match_text"],
        ),
    ],
)
def test_unsupported_query_is_refused_before_anything_is_read(people, body, names):
    read = f"query q() {{ match {{ $p: Person {body} }} return {{ $p.name }} }}"
    with pytest.raises(InvalidInput, match="engine='local'") as refused:
        people.query(read, engine="spark")
    assert (refused.value.code, refused.value.details["functions"]) == ("engine_unsupported", names)


@pytest.mark.parametrize(
    ("tail", "name"),
    [
        ('return { $p.name } order { bm25($p.name, "a") } limit 1', "bm25"),
        ("return { shortest_path($p, knows, $q) as way }", "shortest_path"),
        ("return { $p.name } order { nearest($p.far, $q.name) } limit 1", "nearest"),
    ],
)
def test_rankings_by_words_and_paths_are_refused(people, tail, name):
    read = f"query q() {{ match {{ $p: Person  $q: Person }} {tail} }}"
    with pytest.raises(InvalidInput) as refused:
        people.query(read, engine="spark")
    assert refused.value.details["functions"] == [name]


def test_limits_of_the_local_engine_are_refused(people):
    read = "query q() { match { $p: Person } return { $p.name } }"
    with pytest.raises(InvalidInput, match="timeout: the local engine") as refused:
        people.query(read, timeout=3.0, engine="spark")
    assert refused.value.code == "engine_unsupported"
    with pytest.raises(InvalidInput, match="'presto'; it is one of local, spark"):
        people.query(read, engine="presto")


def test_parameters_are_checked_before_spark_starts(people):
    read = "query q($n: I32) { match { $p: Person } return { $p.name } limit $n }"
    with pytest.raises(QueryError, match="parameter 'n' not provided"):
        people.query(read, engine="spark")
    with pytest.raises(InvalidInput, match="cannot be negative"):
        people.query(read, {"n": -1}, engine="spark")


def test_a_page_behind_all_that_spark_can_count_is_empty(quick, people):
    read = "query q($n: U64) { match { $p: Person } return { $p.name } limit 1 offset $n }"
    reader = ask_in_memory(quick)
    assert reader(people, Read(read, {"n": 2**64 - 1})).rows == []
    assert reader(people, Read(read, {"n": 2**31 - 1})).rows == []
    assert len(reader(people, Read(read, {"n": 3})).rows) == 1


def test_the_distance_between_far_nodes_is_found_in_few_hops_at_a_time(quick, tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    names = [f"p{n:02}" for n in range(17)]
    ends = pairwise(names)
    graph.load(
        {
            "Person": [{"name": name} for name in names],
            "Knows": [{"from": a, "to": b} for a, b in ends],
        }
    )
    read = """query q() { match { $a: Person { name: "p00" }  $a knows{7,14} $b }
      return { $b.name } order { $b.name } }"""
    assert graph.query(read, engine="spark").collect() == [(f"p{n:02}",) for n in range(7, 15)]
    assert pipeline.query_stream(graph, read).row_count == len(graph.query(read))
