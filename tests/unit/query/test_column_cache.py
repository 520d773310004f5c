"""Columns in memory are those of their version, whatever was in memory before."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.dataset_view import version_reader
from omnigraph.query import column_cache as module
from omnigraph.storage.columns import read_column

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
WIDE = SCHEMA.replace("I32", "I64")
NAMES = ["ann", "bob", "cid", "dan"]
CHANGES = [
    'insert Person { name: "eve", age: 5 }',
    'update Person set { age: 50 } where name = "bob"',
    'delete Person where name = "ann"',
    'insert Person { name: "ann", age: 7 }',
    "update Person set { age: 1 } where age > 4",
    "delete Person where age = 1",
    'insert Person { name: "fay" }',
]


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "g", SCHEMA)
    ages = pa.array(range(len(NAMES)), pa.int32())
    made.load({"Person": pa.table({"name": NAMES, "age": ages})})
    return made


@pytest.fixture
def reads(monkeypatch):
    """Note which columns are read whole."""
    found = []

    def noted(handle, column):
        found.append(column)
        return read_column(handle, column)

    monkeypatch.setattr(version_reader, "read_column", noted)
    return found


def table(graph, target=None):
    return graph._engine.store.table(graph.snapshot(target), TypeKind.NODE, "Person")


def columns(graph, target=None):
    found = table(graph, target)
    return {name: found.column(name).to_pylist() for name in ("id", "name", "age")}


def change(graph, text):
    return graph.mutate(f"query q() {{ {text} }}")


def test_columns_are_those_of_their_version(graph):
    for text in CHANGES:
        columns(graph)
        change(graph, text)
        assert columns(graph) == columns(og.open(graph.uri)), text
    assert columns(graph)["name"] == ["cid", "dan", "fay"]


def test_only_the_first_version_is_read_whole(graph, reads):
    for text in CHANGES:
        columns(graph)
        change(graph, text)
    columns(graph)
    assert len(reads) == 3


def test_versions_of_branches_and_of_the_past_are_their_own(graph):
    first = graph.snapshot().commit_id
    columns(graph)
    change(graph, CHANGES[0])
    branch = graph.branch("other", create=True)
    change(branch, CHANGES[2])
    change(graph, CHANGES[1])
    for one, target in ((branch, None), (graph, None), (graph, first), (branch, None)):
        assert columns(one, target) == columns(og.open(graph.uri), target or one.branch_name)


def test_a_column_that_is_stored_anew_is_read_anew(graph):
    columns(graph)
    graph.schema.apply(WIDE)
    assert str(table(graph).column("age").type) == "int64"
    assert columns(graph)["age"] == [0, 1, 2, 3]


def test_a_compacted_version_is_followed_too(graph):
    for text in CHANGES[:3]:
        change(graph, text)
        columns(graph)
    graph.optimize()
    assert columns(graph) == columns(og.open(graph.uri))


def test_of_many_who_ask_at_once_one_reads(graph, reads):
    found = table(graph)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: found.column("name"), range(32)))
    assert all(answer is answers[0] for answer in answers)
    assert len(reads) == 1


def test_only_a_few_versions_are_kept(graph, monkeypatch):
    monkeypatch.setattr(module, "MAX_VERSIONS", 3)
    graph = og.open(graph.uri)
    store = graph._engine.store
    for number in range(8):
        columns(graph)
        change(graph, f'insert Person {{ name: "n{number}" }}')
    columns(graph)
    kept = {version for _, version, _ in store._values._values}
    assert len(kept) == 3
    assert table(graph).entry.state in kept
    values = [store._values.peek(key) for key in store._values._values]
    assert store._values._total == sum(value.nbytes for value in values)
    assert {version for _, version in store._versions._values} == kept


def test_blobs_are_read_after_entities_were_only_deleted(tmp_path):
    graph = og.init(tmp_path / "blobs", "node Doc { k: String @key  file: Blob? }")
    graph.load({"Doc": [{"k": "a", "file": b"one"}, {"k": "b", "file": b"two"}, {"k": "c"}]})
    text = "query q() { match { $d: Doc  $d.file is not null } return { $d.k } order { $d.k } }"
    assert [row["d.k"] for row in graph.query(text).rows] == ["a", "b"]
    graph.mutate('query d() { delete Doc where k = "a" }')
    assert [row["d.k"] for row in graph.query(text).rows] == ["b"]
