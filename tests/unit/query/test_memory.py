"""The memory a query may take is checked before it is allocated, and shared by a process."""

import json
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest

import omnigraph
import omnigraph.graph as og
from omnigraph.errors import InvalidInput
from omnigraph.query.engine import QuerySettings
from omnigraph.query.limits import PROCESS_MEMORY, MemoryPool, QueryLimit

NODES = 260
SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { since: I32 }
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """A complete digraph: each hop multiplies the rows by the number of nodes."""
    made = og.init(tmp_path_factory.mktemp("memory") / "g", SCHEMA)
    names = [f"p{number:03d}" for number in range(NODES)]
    ends = [(a, b) for a in names for b in names]
    edges = {"from": [a for a, _ in ends], "to": [b for _, b in ends], "since": [1] * len(ends)}
    made.load({"Person": pa.table({"name": names}), "Knows": pa.table(edges)})
    return made.uri


CHILD = Path(__file__).parents[2] / "support" / "query_peak.py"
FIRST = "$a: Person  $a $e:knows $b"
SUMS = "return { sum($e.since) as n, sum($f.since) as m }"
HUNGRY = {
    "two edges": f"{FIRST}  $b $f:knows $c }} {SUMS}",
    "either way": f"{FIRST}  $b $f:<knows> $c }} {SUMS}",
    "values": f"{FIRST}  $b $f:knows $c }} return {{ $e.since as n, $f.since as m }}",
    "a search": f"{FIRST}  $b knows{{1,2}} $c }} return {{ sum($e.since) as n, max($c.id) as m }}",
}


@pytest.mark.parametrize(
    ("mode", "names"), [("topology", list(HUNGRY)), ("indexed", ["two edges", "either way"])]
)
def test_edges_that_would_not_fit_are_refused_before_they_are_made(uri, mode, names):
    asked = [f"query q() {{ match {{ {HUNGRY[name]} }}" for name in names]
    task = json.dumps({"uri": uri, "mode": mode, "memory": 50_000_000, "queries": asked})
    run = subprocess.run(
        [sys.executable, str(CHILD), task], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    peaks = [json.loads(line) for line in run.stdout.splitlines()]
    assert [peak["code"] for peak in peaks] == ["query_memory"] * len(asked)
    assert [peak["query"] for peak in peaks if peak["grown"] > 100_000_000] == [], peaks


# --- memory that queries share -----------------------------------------------------------------


def hungry(graph, pool, **settings):
    text = f"query q() {{ match {{ {FIRST} }} return {{ $e.since as n }} }}"
    return graph._engine.stream(
        graph.snapshot(), text, {}, None, QuerySettings(pool=pool, **settings)
    )


def test_queries_of_a_process_share_memory_and_give_it_back(uri):
    graph, pool = og.open(uri, mode="ro"), MemoryPool(4_000_000)
    first = hungry(graph, pool)
    held = pool.used
    assert NODES**2 * 8 * 3 <= held < 4_000_000
    with pytest.raises(QueryLimit, match="Try again later") as refused:
        hungry(graph, pool)
    assert refused.value.code == "query_memory_busy"
    assert refused.value.details == {"operator": "Expand", "limit": 4_000_000}
    assert pool.used == held
    assert len(list(first)) == NODES**2
    assert pool.used == 0
    del first
    assert pool.used == 0
    dropped = hungry(graph, pool)
    assert pool.used == held
    del dropped
    assert pool.used == 0


def test_a_query_that_never_fits_the_process_is_not_worth_trying_again(uri):
    graph, pool = og.open(uri, mode="ro"), MemoryPool(1_000_000)
    with pytest.raises(QueryLimit) as refused:
        hungry(graph, pool)
    assert refused.value.code == "query_memory"
    assert refused.value.details["limit"] == 1_000_000
    assert pool.used == 0


def test_a_query_that_ends_or_fails_holds_nothing(uri):
    graph, pool = og.open(uri, mode="ro"), MemoryPool(100_000_000)
    text = f"query q() {{ match {{ {FIRST} }} return {{ sum($e.since) as n }} }}"
    settings = QuerySettings(pool=pool)
    assert graph._engine.run(graph.snapshot(), text, {}, None, settings).rows == [{"n": NODES**2}]
    assert pool.used == 0
    graph._engine.analyze(graph.snapshot(), text, {}, None, settings)
    assert pool.used == 0
    with pytest.raises(QueryLimit):
        graph._engine.run(graph.snapshot(), text, {}, None, QuerySettings(pool=pool, memory=1000))
    assert pool.used == 0


def test_concurrent_queries_stay_within_the_memory_of_the_process(uri):
    graph, pool = og.open(uri, mode="ro"), MemoryPool(7_000_000)
    text = f"query q() {{ match {{ {FIRST} }} return {{ sum($e.since) as n }} }}"
    most, codes, done = 0, [], []

    def ask():
        try:
            done.append(
                graph._engine.run(graph.snapshot(), text, {}, None, QuerySettings(pool=pool))
            )
        except QueryLimit as refused:
            codes.append(refused.code)

    for _ in range(4):
        threads = [Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            most = max(most, pool.used)
        for thread in threads:
            thread.join()
    assert 0 < most <= 7_000_000
    assert done
    assert set(codes) <= {"query_memory_busy"}
    assert {row["n"] for result in done for row in result.rows} == {NODES**2}
    assert pool.used == 0


def test_the_memory_of_the_process_can_be_set(monkeypatch, uri):
    monkeypatch.setattr(PROCESS_MEMORY, "limit", PROCESS_MEMORY.limit)
    omnigraph.set_query_memory(1_000_000)
    graph = og.open(uri, mode="ro")
    with pytest.raises(QueryLimit) as refused:
        graph.query(f"query q() {{ match {{ {FIRST} }} return {{ $e.since as n }} }}")
    assert refused.value.details == {"operator": "Expand", "limit": 1_000_000}
    with pytest.raises(InvalidInput, match="from 0 up"):
        omnigraph.set_query_memory(-1)
