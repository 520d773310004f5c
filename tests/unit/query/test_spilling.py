"""Rows that do not fit the memory of a query wait in a temporary file without a name."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
import omnigraph.graph as og
from omnigraph.errors import InvalidInput, StorageUnavailable
from omnigraph.query import column_cache
from omnigraph.query.column_cache import TypeTable
from omnigraph.query.engine import Engine, QuerySettings
from omnigraph.query.external_sort import ExternalSorter
from omnigraph.query.limits import PROCESS_DISK, MemoryPool, QueryBudget, QueryLimit

SCHEMA = """
node Person { name: String @key  age: I32?  city: String }
edge Knows: Person -> Person { since: I32 }
"""
PEOPLE, MEMORY = 300, 200_000


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("spill") / "g", SCHEMA)
    numbers = np.arange(PEOPLE)
    names = [f"p{number:03d}" for number in numbers]
    ends = [(a, b) for a in range(PEOPLE) for b in range(0, PEOPLE, 3)]
    ages = pa.array([None if n % 7 == 0 else int(n * 31 % 90) for n in numbers], pa.int32())
    people = {"name": names, "age": ages, "city": [f"c{n % 11}" for n in numbers]}
    edges = {
        "from": [names[a] for a, _ in ends],
        "to": [names[b] for _, b in ends],
        "since": pa.array([(a * 7 + b) % 50 for a, b in ends], pa.int32()),
    }
    made.load({"Person": pa.table(people), "Knows": pa.table(edges)})
    return made


PAIRS = "$a: Person  $a $e:knows $b"
CROSS = "$a: Person  $b: Person"
QUERIES = {
    "sort": f"{PAIRS} }} return {{ $e.since as s, $a.name as a, $b.name as b }} "
    "order { $e.since desc, $b.age, $a.name }",
    "sort and slice": f"{PAIRS} }} return {{ $e.since as s, $b.name as b }} "
    "order { $a.age desc, $b.name } limit 20 offset 15000",
    "groups": f"{PAIRS} }} return {{ $a.name as a, $b.city as c, count($e.since) as n, "
    "sum($e.since) as s, avg($b.age) as m, min($b.name) as least, max($b.age) as most }",
    "different values": f"{PAIRS} }} return {{ $a.city as c, count(distinct $b.name) as n, "
    "count(distinct $e.since) as s }",
    "lists": f"{PAIRS} }} return {{ $a.name as a, collect($e.since) as s, "
    "collect(distinct $b.city) as c }",
    "distinct": f"{CROSS} }} return distinct {{ $a.name as a, $b.age as g }} "
    "order { $b.age desc, $a.name }",
    "join": "$a: Person  $b: Person  $a.city >= $b.city } "
    "return { $a.name as a, $b.name as b } order { $a.age, $b.name, $a.name }",
    "optional": "$a: Person  optional { $a $e:knows $b  $b.age > 80 } } "
    "return { $a.name as a, $e.since as s, $b.name as b } order { $b.name, $a.name }",
    "cycle": "$a: Person  $a $e:knows $b  $b knows $a } return { $a.name as a, count($b) as n }",
    "counted pairs": "$a: Person  $a knows $b  $c: Person  $c.city >= $a.city } "
    "return { $c.city as c, count($a) as n } order { c }",
    "nothing": f"{PAIRS}  $e.since + $b.age > 10000 }} return {{ $b.city as c, sum($a.age) as n }}",
}


def text_of(name: str) -> str:
    return f"query q() {{ match {{ {QUERIES[name]} }}"


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_that_spills_has_the_same_rows(graph, name, monkeypatch):
    snapshot, engine, begun = graph.snapshot(), graph._engine, []
    expected = graph.query(text_of(name)).to_arrow()
    begin = QueryBudget.begin_batches
    monkeypatch.setattr(QueryBudget, "begin_batches", lambda b: begun.append(begin(b)))
    stream = engine.stream(snapshot, text_of(name), {}, None, QuerySettings(memory=MEMORY))
    assert stream.row_count == expected.num_rows
    found = stream.to_reader().read_all()
    assert found.equals(expected)
    assert len(begun) == 1
    assert PROCESS_DISK.used == 0


def test_an_explanation_shows_what_was_written(graph):
    text = text_of("sort and slice")
    shown = graph._engine.analyze(graph.snapshot(), text, {}, None, QuerySettings(memory=MEMORY))
    assert shown.to_json()["spilled_bytes"] > 100_000
    assert "Temporary file: " in str(shown)
    [expand] = [step for step in shown.to_json()["steps"] if step["operator"].startswith("Expand")]
    assert expand["rows"] == PEOPLE * PEOPLE // 3
    assert "spilled_bytes" not in graph.explain(text, analyze=True).to_json()


def test_a_result_that_does_not_fit_memory_is_refused_and_can_be_streamed(graph):
    settings = QuerySettings(memory=MEMORY)
    with pytest.raises(QueryLimit) as refused:
        graph._engine.run(graph.snapshot(), text_of("sort"), {}, None, settings)
    assert refused.value.code == "query_memory"
    stream = graph._engine.stream(graph.snapshot(), text_of("sort"), {}, None, settings)
    assert sum(1 for _ in stream) == PEOPLE * PEOPLE // 3


def test_temporary_files_are_bounded(graph, monkeypatch):
    disk = MemoryPool(50_000)
    settings = QuerySettings(memory=MEMORY, disk=disk)
    with pytest.raises(QueryLimit, match="set_query_disk") as refused:
        graph._engine.stream(graph.snapshot(), text_of("sort"), {}, None, settings)
    assert refused.value.code == "query_disk"
    assert refused.value.details == {"operator": "Sort", "limit": 50_000}
    assert disk.used == 0
    monkeypatch.setattr(PROCESS_DISK, "limit", PROCESS_DISK.limit)
    omnigraph.set_query_disk(1_000)
    assert PROCESS_DISK.limit == 1_000
    with pytest.raises(InvalidInput, match="from 0 up"):
        omnigraph.set_query_disk(-1)


def test_a_file_that_cannot_be_written_is_reported(graph, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    settings = QuerySettings(memory=MEMORY)
    with pytest.raises(StorageUnavailable, match="set TMPDIR") as failed:
        graph._engine.stream(graph.snapshot(), text_of("sort"), {}, None, settings)
    assert failed.value.code == "spill_failed"


def test_a_time_limit_ends_a_query_that_spills(graph):
    body = f"{CROSS}  $c: Person }} return {{ max($a.age + $b.age + $c.age) as n }}"
    text = f"query q() {{ match {{ {body} }}"
    settings = QuerySettings(memory=MEMORY, timeout=0.2)
    with pytest.raises(QueryLimit) as refused:
        graph._engine.run(graph.snapshot(), text, {}, None, settings)
    assert refused.value.code == "query_timeout"
    assert PROCESS_DISK.used == 0


CHILD = """
import sys
import omnigraph.graph as og
from omnigraph.query import column_cache
from omnigraph.query.column_cache import TypeTable
from omnigraph.query.engine import Engine, QuerySettings
graph = og.open(sys.argv[1], mode="ro")
settings = QuerySettings(memory=200_000)
stream = graph._engine.stream(graph.snapshot(), sys.argv[2], {}, None, settings)
print("spilled", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_is_interrupted_or_killed_leaves_no_files(graph, tmp_path, sent):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, graph.uri, text_of("sort")],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with child:
        assert child.stdout.readline() == b"spilled\n"
        files = [os.stat(f"/proc/{child.pid}/fd/{fd.name}") for fd in fds(child.pid)]
        assert max(file.st_size for file in files if not file.st_nlink) > 1_000_000
        assert list(tmp_path.iterdir()) == []
        child.send_signal(sent)
        assert child.wait(60) != 0
    assert list(tmp_path.iterdir()) == []


def fds(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.parametrize("rows", [0, 1, 5_000])
@pytest.mark.parametrize("kind", ["random", "ascending", "equal"])
@pytest.mark.parametrize("most", [None, 10, 700])
def test_merged_runs_are_in_order_and_few_blocks_are_in_memory(rows, kind, most):
    random = np.random.default_rng(3)
    numbers = {
        "random": random.integers(0, 500, rows),
        "ascending": np.arange(rows),
        "equal": np.zeros(rows, np.int64),
    }[kind]
    budget = QueryBudget(memory=64_000, pool=MemoryPool(10**9))
    budget.begin_batches()
    sorter = ExternalSorter([("n", True), ("row", False)], budget, most)
    for start in range(0, max(rows, 1), 100):
        part = numbers[start : start + 100]
        sorter.add(pa.table({"n": part, "row": np.arange(start, start + len(part))}))
    tables = list(sorter.sorted())
    found = pa.concat_tables(tables)
    order = np.lexsort((np.arange(rows), -numbers))
    assert found["row"].to_pylist()[:most] == order.tolist()[:most]
    assert max(table.nbytes for table in tables) <= 2 * budget.step_memory
    assert (budget.spilled_bytes > 0) == (rows == 5_000 and most != 10)
    budget.release()
    assert PROCESS_DISK.used == 0


@pytest.mark.parametrize("key", ["$a.city", "$a.age"])
def test_a_sort_does_not_notice_that_another_query_reads_its_columns(graph, monkeypatch, key):
    """Batches are compared by the values of wide columns, by places among all values of others."""
    engine = Engine(graph._manifest, may_write=False)
    engine.store.small = 0
    text = f"query q() {{ match {{ {CROSS}  $b.age < 60 }} return {{ $a.name as a, $b.name as b }} "
    text += f"order {{ {key} desc, $b.name }} }}"
    expected = graph.query(text).rows
    add, added = ExternalSorter.add, []

    def add_after_another_query(sorter, rows):
        added.append(rows)
        if len(added) == 2:
            engine.run(graph.snapshot(), f"match {{ $a: Person }} return distinct {{ {key} }}", {})
        add(sorter, rows)

    monkeypatch.setattr(ExternalSorter, "add", add_after_another_query)
    monkeypatch.setattr(column_cache, "MAX_COMPRESSION", 1_000)
    monkeypatch.setattr(TypeTable, "_sampled_bytes", lambda *_: 10**9)
    settings = QuerySettings(memory=MEMORY)
    assert list(engine.stream(graph.snapshot(), text, {}, None, settings)) == expected
    assert len(added) > 2
