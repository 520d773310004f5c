"""The memory a query may take is checked before it is allocated, and shared by a process."""

import json
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
import omnigraph.graph as og
from omnigraph.errors import InvalidInput
from omnigraph.query.engine import QuerySettings
from omnigraph.query.limits import PROCESS_MEMORY, MemoryPool, QueryLimit

NODES = 200
DOCUMENTS, TEXT_BYTES, LIMIT = 60_000, 1_020, 24_000_000
SCHEMA = """
node Person { name: String @key }
node Document { name: String @key  text: String  size: I32 }
edge Knows: Person -> Person { since: I32 }
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """A complete digraph: each hop multiplies the rows by the number of nodes; and long texts."""
    made = og.init(tmp_path_factory.mktemp("memory") / "g", SCHEMA)
    names = [f"p{number:03d}" for number in range(NODES)]
    ends = [(a, b) for a in names for b in names]
    edges = {"from": [a for a, _ in ends], "to": [b for _, b in ends], "since": [1] * len(ends)}
    random = np.random.default_rng(7)
    words = np.array([random.bytes(8).hex() for _ in range(5_000)])
    documents = {
        "name": [f"d{number:05d}" for number in range(DOCUMENTS)],
        "text": [" ".join(words[random.integers(0, 5_000, 60)]) for _ in range(DOCUMENTS)],
        "size": pa.array(np.arange(DOCUMENTS) % 1_000, pa.int32()),
    }
    tables = {"Person": {"name": names}, "Knows": edges, "Document": documents}
    made.load({name: pa.table(columns) for name, columns in tables.items()})
    return made.uri


CHILD = Path(__file__).parents[2] / "support" / "query_peak.py"
FIRST = "$a: Person  $a $e:knows $b"
SUMS = "return { sum($e.since) as n, sum($f.since) as m }"
MAX = "return { sum($e.since) as n, max($c.name) as m }"
ALL = [{"n": NODES**3, "m": NODES**3}]
THREE = "return { $a.name as a, $b.name as b, $c.name as c }"
D = "match { $d: Document }"
REFUSED = None
"""The rows of a query whose result does not fit its memory."""
HUNGRY = {
    "scan": (f"{D} return {{ $d.text as t, $d.name as n }}", REFUSED),
    "filter": (
        'match { $d: Document  $d.text >= "g" } return { count($d) as n }',
        [{"n": 0}],
    ),
    "two edges": (f"match {{ {FIRST}  $b $f:knows $c }} {SUMS}", ALL),
    "either way": (f"match {{ {FIRST}  $b $f:<knows> $c }} {SUMS}", ...),
    "values": (
        f"match {{ {FIRST}  $b $f:knows $c }} return {{ $e.since as n, $f.since as m }}",
        REFUSED,
    ),
    "nodes": (f"match {{ $a: Person  $a knows $b  $b knows $c }} {THREE}", REFUSED),
    "bounded hops": (
        f"match {{ {FIRST}  $b knows{{1,2}} $c }} {MAX}",
        [{"n": NODES**3, "m": f"p{NODES - 1}"}],
    ),
    "cross": (f"match {{ $a: Person  $b: Person  $c: Person }} {THREE}", REFUSED),
    "cross and count": (
        "match { $a: Person  $b: Person  $c: Person } return { count(distinct $c.name) as n }",
        [{"n": NODES}],
    ),
    "sort": (f"{D} return {{ $d.text as t }} order {{ $d.text desc }}", REFUSED),
    "sort, first rows": (
        f"{D} return {{ $d.name as n }} order {{ $d.size desc, $d.text }} limit 60",
        ...,
    ),
    "aggregate": (f"{D} return {{ $d.text as t, count($d) as n }}", REFUSED),
    "few groups": (
        f"{D} return {{ min($d.size) as s, count(distinct $d.text) as n }}",
        [{"s": 0, "n": DOCUMENTS}],
    ),
    "distinct": (f"{D} return distinct {{ $d.text as t, $d.size as s }}", REFUSED),
    "search": (
        'match { $d: Document  search($d.text, "nothing") } return { count($d) as n }',
        [{"n": 0}],
    ),
    "ranking": (f'{D} return {{ $d.name as n }} order {{ bm25($d.text, "x") }} limit 9', REFUSED),
}


def run_apart(uri, mode, names, limit=LIMIT):
    """Return what queries gave in a process of their own."""
    texts = [f"query q() {{ {HUNGRY[name][0]} }}" for name in names]
    task = json.dumps({"uri": uri, "mode": mode, "memory": limit, "queries": texts})
    run = subprocess.run(
        [sys.executable, str(CHILD), task], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize(
    ("mode", "names"), [("topology", list(HUNGRY)), ("indexed", ["two edges", "either way"])]
)
def test_memory_stays_within_twice_the_limit_of_a_query_that_is_refused_or_spills(uri, mode, names):
    peaks = run_apart(uri, mode, names)
    allowed = 2 * LIMIT + 100_000_000
    assert [peak["query"] for peak in peaks if peak["grown"] > allowed] == [], peaks
    for name, peak in zip(names, peaks, strict=True):
        rows = HUNGRY[name][1]
        assert peak["code"] == ("query_memory" if rows is REFUSED else None), name
        assert peak["rows"] == rows or rows is ..., name


# --- memory that queries share -----------------------------------------------------------------


def hungry(graph, pool, **settings):
    text = f"query q() {{ match {{ {FIRST} }} return {{ $e.since as n }} }}"
    return graph._engine.stream(
        graph.snapshot(), text, {}, None, QuerySettings(pool=pool, **settings)
    )


def test_queries_of_a_process_share_memory_and_give_it_back(uri):
    graph, pool = og.open(uri, mode="ro"), MemoryPool(2_400_000)
    first = hungry(graph, pool)
    held = pool.used
    assert NODES**2 * 8 * 3 <= held < 2_400_000
    with pytest.raises(QueryLimit, match="Try again later") as refused:
        hungry(graph, pool)
    assert refused.value.code == "query_memory_busy"
    assert refused.value.details == {"operator": "Expand", "limit": 2_400_000}
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
    graph, pool = og.open(uri, mode="ro"), MemoryPool(1_000)
    with pytest.raises(QueryLimit) as refused:
        hungry(graph, pool)
    assert refused.value.code == "query_memory"
    assert refused.value.details["limit"] == 1_000
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
    graph, pool = og.open(uri, mode="ro"), MemoryPool(4_200_000)
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
    assert 0 < most <= 4_200_000
    assert done
    assert set(codes) <= {"query_memory_busy"}
    assert {row["n"] for result in done for row in result.rows} == {NODES**2}
    assert pool.used == 0


def test_the_memory_of_the_process_can_be_set(monkeypatch, uri):
    monkeypatch.setattr(PROCESS_MEMORY, "limit", PROCESS_MEMORY.limit)
    monkeypatch.setattr(PROCESS_MEMORY, "used", 0)  # streams of other tests may hold some
    omnigraph.set_query_memory(100_000)
    graph = og.open(uri, mode="ro")
    with pytest.raises(QueryLimit) as refused:
        graph.query(f"query q() {{ match {{ {FIRST} }} return {{ $e.since as n }} }}")
    assert refused.value.details == {"operator": "Expand", "limit": 100_000}
    with pytest.raises(InvalidInput, match="from 0 up"):
        omnigraph.set_query_memory(-1)
