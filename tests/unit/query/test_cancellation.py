"""A query ends soon after it was cancelled or its time is up, whatever operator it is at."""

import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.query.engine import QuerySettings
from omnigraph.query.expansion import ExpandMode
from omnigraph.query.limits import (
    Cancellation,
    MemoryPool,
    QueryBudget,
    QueryCancelled,
    QueryLimit,
    holding,
    run_apart,
)
from omnigraph.query.running import RUNNING_QUERIES

SCHEMA = """
interface Named { code: String }
node P implements Named { code: String @key  age: I32  city: String }
node D implements Named { code: String @key  text: String  look: Vector(4) }
edge Knows: P -> P { since: I32 }
edge Wrote: P -> D
"""
PEOPLE, DOCUMENTS = 400, 300


def tables(people, knows, documents, seed=3):
    random = np.random.default_rng(seed)
    codes = np.char.add("p", np.char.zfill(np.arange(people).astype(str), 7))
    names = [f"d{n:06d}" for n in range(documents)]
    words = np.array(["ship", "port", "tide", "crane", "rope", "fog", "bell", "buoy"])
    vectors = pa.array(random.random(documents * 4), pa.float32())
    return {
        "P": pa.table(
            {
                "code": codes.tolist(),
                "age": pa.array(random.integers(0, 90, people), pa.int32()),
                "city": [f"c{n}" for n in random.integers(0, 50, people)],
            }
        ),
        "D": pa.table(
            {
                "code": names,
                "text": [" ".join(row) for row in words[random.integers(0, 8, (documents, 6))]],
                "look": pa.FixedSizeListArray.from_arrays(vectors, 4),
            }
        ),
        "Knows": pa.table(
            {
                "from": codes[random.integers(0, people, knows)].tolist(),
                "to": codes[(people * random.random(knows) ** 2).astype(int)].tolist(),
                "since": pa.array(random.integers(0, 9, knows), pa.int32()),
            }
        ),
        "Wrote": pa.table(
            {"from": codes[random.integers(0, people, documents)].tolist(), "to": names}
        ),
    }


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("cancelled") / "g", SCHEMA)
    graph.load(tables(PEOPLE, 3_000, DOCUMENTS))
    return graph.uri


VECTOR = "[0.1, 0.2, 0.3, 0.4]"
QUERIES = {
    "Scan": "match { $a: P } return { $a.code, $a.age }",
    "Filter": 'match { $a: P  ($a.age > 30 or $a.city = "c1") } return { $a.code }',
    "Expand": "match { $a: P  $a knows $b  $b.age > 9 } return { $a.code as a, $b.code as b }",
    "Expand with an edge": "match { $a: P  $a $e:knows $b } return { $a.code, $e.since }",
    "Expand with hops": "match { $a: P  $a knows{1,3} $b } return { $a.code as a, $b.age as b }",
    "Expand both ways": "match { $a: P  $a <knows> $b } return { $a.code as a, $b.code as b }",
    "SemiJoin": "match { $a: P  $a knows $b  $b knows $a } return { $a.code as a, $b.code as b }",
    "a triangle": "match { $a: P  $a knows $b  $b knows $c  $c knows $a } "
    "return { count($a) as n }",
    "Cross": "match { $a: P  $b: P  $a.city = $b.city } return { $a.code as a, $b.code as b }",
    "Union": "match { $x: Named } return { $x.code }",
    "AntiJoin": "match { $a: P  not { $a knows $b  $b.age = 3 } } return { $a.code }",
    "ExistsJoin": "match { $a: P  exists { $a knows $b  $b.age = 3 } } return { $a.code }",
    "OptionalJoin": "match { $a: P  optional { $a knows $b } } "
    "return { $a.code as a, $b.age as b }",
    "SortRows": "match { $a: P } return { $a.code } order { $a.city, $a.age desc }",
    "SliceRows": "match { $a: P  $a knows $b } return { $a.code } limit 7 offset 2",
    "Aggregate": "match { $a: P } return { $a.city, collect($a.age) as ages, count($a) as n }",
    "Distinct": "match { $a: P } return distinct { $a.city, $a.age }",
    "SortColumns": "match { $a: P } return { $a.city, count($a) as n } order { n desc }",
    "search": 'match { $d: D  search($d.text, "tide") } return { $d.code }',
    "fuzzy": 'match { $d: D  fuzzy($d.text, "roqe") } return { $d.code }',
    "bm25": 'match { $d: D } return { $d.code } order { bm25($d.text, "fog bell") } limit 5',
    "nearest": "match { $d: D } return { $d.code } "
    f"order {{ nearest($d.look, {VECTOR}) }} limit 5",
    "rrf": "match { $d: D } return { $d.code } "
    f'order {{ rrf(bm25($d.text, "fog"), nearest($d.look, {VECTOR})) }} limit 5',
    "path": 'match { $a: P { code: "p0000001" }  $b: P } '
    "return { $b.code, path_length($a, knows, $b) as n }",
}
ENDINGS: dict[str, tuple[type[OmniError], str]] = {
    "cancelled": (QueryCancelled, "query_cancelled"),
    "time is up": (QueryLimit, "query_timeout"),
}


class Checks:
    """Counts the checks of queries, and ends the query at one of them."""

    def __init__(self, monkeypatch) -> None:
        self.count = 0
        self.at = sys.maxsize
        self.end: Callable[[QueryBudget], None] = lambda _: None
        original = QueryBudget.check

        def check(budget, operator, rows=0, columns=0):
            self.count += 1
            if self.count == self.at:
                self.end(budget)
            original(budget, operator, rows, columns)

        monkeypatch.setattr(QueryBudget, "check", check)


@pytest.mark.parametrize("mode", [ExpandMode.TOPOLOGY, ExpandMode.INDEXED])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("operator", QUERIES)
def test_a_query_ends_at_any_check(uri, operator, ending, mode, monkeypatch):
    if mode is ExpandMode.INDEXED and "knows" not in QUERIES[operator]:
        pytest.skip("no edges are followed")
    text = f"query q() {{ {QUERIES[operator]} }}"
    pool, checks, stop = MemoryPool(10**9), Checks(monkeypatch), Cancellation()
    settings = QuerySettings(pool=pool, expand=mode)

    def run():
        graph = og.open(uri, mode="ro")  # nothing is in memory
        checks.count = 0
        return stop.run(lambda: graph._engine.run(graph.snapshot(), text, {}, None, settings).rows)

    expected = run()
    total = checks.count
    assert total > 0
    checks.end = (
        (lambda _: stop.set())
        if ending == "cancelled"
        else (lambda budget: setattr(budget, "seconds", 0.0))
    )
    error, code = ENDINGS[ending]
    for at in sorted({1, total // 3, total // 2, total - 1, total} - {0}):
        checks.at = at
        with pytest.raises(error) as ended:
            run()
        assert ended.value.code == code
        assert checks.count == at, "the check at which it had to end raised"
        assert pool.used == 0
        assert RUNNING_QUERIES.here(uri) == []
        stop.is_set = False
    checks.at = sys.maxsize
    assert run() == expected


# --- time between checks -----------------------------------------------------------------------

MANY, EDGES, TEXTS = 150_000, 1_200_000, 60_000
MOST_CPU = 0.15
"""Seconds of CPU between two checks: three times the contract, for machines that are busy."""
ANALYSES = ("pagerank", "components", "labels", "degrees", "kcore", "triangles")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("large") / "g", SCHEMA)
    graph.load(tables(MANY, EDGES, TEXTS))
    return graph.uri


COLD = {
    "Expand": "match { $a: P  $a knows $b  $b.age > 9 } return { count($a) as n }",
    "Expand with an edge": "match { $a: P  $a $e:knows $b } return { sum($e.since) as n }",
    "Expand with hops": 'match { $a: P  $a.code < "p0000030"  $a knows{1,3} $b  $b.age > 1 } '
    "return { count($b) as n }",
    "Distinct": "match { $a: P } return distinct { $a.code, $a.age }",
    "Aggregate": "match { $a: P } return { $a.code, collect(distinct $a.city) as n }",
    "SortRows": "match { $a: P } return { $a.code as c } order { $a.city, $a.age, $a.code desc }",
    "SortColumns": "match { $a: P } return { $a.code as c, count($a) as n } order { n, c desc }",
    "Filter": 'match { $a: P  ($a.age > 30 or $a.city contains "1") } return { count($a) as n }',
    "Cross": "match { $a: P { age: 3 }  $b: P { age: 4 }  $a.city = $b.city } "
    "return { count($a) as n }",
    "search": 'match { $d: D  search($d.text, "tide") } return { count($d) as n }',
    "bm25": 'match { $d: D } return { $d.code } order { bm25($d.text, "fog bell") } limit 5',
}


def longest_gap(monkeypatch, work):
    """Return the longest CPU time of this thread between two checks, and where it began."""
    checked, thread, gaps = QueryBudget.check_cancelled, threading.get_ident(), [(0.0, "")]
    last = [time.thread_time(), "begin"]

    def check_cancelled(budget, operator):
        checked(budget, operator)
        if threading.get_ident() == thread:
            caller = sys._getframe(2)
            place = f"{operator} at {caller.f_code.co_filename}:{caller.f_lineno}"
            gaps.append((time.thread_time() - last[0], f"{last[1]} to {place}"))
            last[:] = [time.thread_time(), place]

    monkeypatch.setattr(QueryBudget, "check_cancelled", check_cancelled)
    work()
    gaps.append((time.thread_time() - last[0], f"{last[1]} to the end"))
    return max(gaps)


@pytest.mark.parametrize("operator", COLD)
def test_no_operator_works_long_without_a_check(large, operator, monkeypatch):
    graph = og.open(large, mode="ro")
    graph.query("match { $a: P } return { $a.code } limit 1")  # imports
    seconds, place = longest_gap(monkeypatch, lambda: graph.query(COLD[operator]))
    assert seconds < MOST_CPU, place


@pytest.mark.parametrize("algorithm", ANALYSES)
def test_no_analysis_works_long_without_a_check(large, algorithm, monkeypatch):
    graph = og.open(large, mode="ro")
    seconds, place = longest_gap(monkeypatch, lambda: graph.analyze(algorithm, ["Knows"]))
    assert seconds < MOST_CPU, place


# --- work apart --------------------------------------------------------------------------------


def test_work_that_cannot_be_stopped_is_left_to_itself():
    begun, release = threading.Event(), threading.Event()
    finished = threading.Event()

    def work():
        begun.set()
        release.wait(10)
        finished.set()

    def check():
        if begun.is_set():
            raise QueryLimit("time is up", code="query_timeout", operator="Scan", limit=1)

    with pytest.raises(QueryLimit):
        run_apart(work, check)
    assert not finished.is_set()
    release.set()
    assert finished.wait(10)


def test_work_apart_gives_its_result_or_its_error():
    assert run_apart(lambda: 7, lambda: None) == 7

    def fails():
        raise TimeoutError("of the work itself")

    with pytest.raises(TimeoutError, match="of the work itself"):
        run_apart(fails, lambda: None)


def test_work_left_to_itself_reserves_no_memory():
    pool = MemoryPool(1_000)
    budget = QueryBudget(pool=pool)
    with budget.kept():
        budget.check_bytes("Scan", 500)
    with pytest.raises(QueryCancelled):
        budget.check("Scan", 10, 10)
    assert pool.used == 0


def test_a_query_does_not_wait_for_another_one_longer_than_it_may():
    lock, budget = threading.Lock(), QueryBudget(0.05)
    with (
        lock,
        pytest.raises(QueryLimit, match="took longer than"),
        budget.kept(),
        holding(lock, "Scan"),
    ):
        pass
