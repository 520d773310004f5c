"""What telling a small change asks of an object store does not grow with the graph.

Requests are counted by an S3 server. The numbers stand in docs/costs.md, which is held to them.
"""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.storage.layout import dataset_path
from tests.support.counting_s3 import counting_server

SIZES = (10_000, 100_000, 200_000)
TOLERANCE = 2
"""Neighbouring pages of a file are sometimes read by one request."""
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "costs.md"
SCHEMA = """
node Person { name: String @key  age: I32? }
node Place { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
WORK = {
    "difference of ten updates": lambda g: list(g.diff("start", "changed")),
    "the same across an optimize": lambda g: list(g.diff("start", "tidied")),
    "difference of ten updates on each side of an optimize": (
        lambda g: list(g.diff("start", "end"))
    ),
    "changes of a commit with ten updates": (
        lambda g: list(g.commits.changes(g.snapshot("changed").commit_id).changes)
    ),
    "changes of an optimize": (
        lambda g: list(g.commits.changes(g.snapshot("tidied").commit_id).changes)
    ),
}
PERSON = {}
"""The folder of people by size."""
EXPECTED = dict(zip(WORK, (10, 10, 20, 10, 0), strict=True))


def build(folder, count):
    """Make a graph of people, ten of whom change, then all is optimized, then ten more change."""
    graph = og.init(folder, SCHEMA)
    names = pa.array([f"p{number:08d}" for number in range(count)])
    for half in (names.slice(0, count // 2), names.slice(count // 2)):
        graph.load({"Person": pa.table({"name": half})})
        graph.load({"Place": pa.table({"name": half})})
    graph.load({"Knows": pa.table({"id": names, "from": names, "to": names})})
    graph.indexes.ensure()
    graph.tags.create("start")
    update(graph, names, 100)
    graph.tags.create("changed")
    done = {dataset.type_key: dataset for dataset in graph.optimize().datasets}
    assert done["node:Person"].fragments_removed > 1
    graph.tags.create("tidied")
    update(graph, names, 200)
    graph.tags.create("end")
    entry = graph.snapshot().entry("node:Person")
    return dataset_path("node", *entry.key).rpartition("/")[2]


def update(graph, names, first):
    some = names.slice(first, 10)
    graph.load({"Person": pa.table({"name": some, "age": pa.array([first] * 10, pa.int32())})})


@pytest.fixture(scope="module")
def server():
    with counting_server() as running:
        yield running


@pytest.fixture(scope="module")
def costs(server, tmp_path_factory):
    """Return the requests of each piece of work by size: of a process that never asked before."""
    found = {}
    for size in SIZES:
        folder = tmp_path_factory.mktemp("cost") / "graph"
        PERSON[size] = build(folder, size)
        uri = server.load(folder, f"diff-{size}")
        for name, work in WORK.items():
            reader = og.open(uri, "ro", storage_options=server.options)
            reader.tags.list()
            with server.counted() as requests:
                changes = work(reader)
            assert len(changes) == EXPECTED[name]
            found[name, size] = requests
    return found


@pytest.mark.parametrize("name", WORK)
def test_a_small_change_asks_as_much_of_a_large_graph(costs, name):
    small, large, largest = (costs[name, size] for size in SIZES)
    assert large.total == pytest.approx(largest.total, rel=0.1), (large.kinds, largest.kinds)
    assert small.total <= large.total, "small files are read whole, which saves requests"


@pytest.mark.parametrize("name", WORK)
def test_a_small_change_reads_as_much_of_a_large_graph(costs, name):
    large, largest = (sum(costs[name, size].bytes.values()) for size in SIZES[1:])
    assert large == pytest.approx(largest, rel=0.1)


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("size", SIZES)
def test_entities_of_types_that_did_not_change_are_not_read(costs, name, size):
    """Upkeep moved places, too, which their versions tell."""
    read = {path for path in costs[name, size].paths if "/__manifest/" not in path}
    found = {path.split("/")[-3] for path in read if "/data/" in path}
    assert found == (set() if name == "changes of an optimize" else {PERSON[size]})
    if name in ("difference of ten updates", "changes of a commit with ten updates"):
        assert {path.split("/")[4] for path in read if path.count("/") > 4} == {PERSON[size]}


@pytest.mark.parametrize("name", WORK)
def test_documented_numbers_are_those_counted(costs, name):
    row = re.search(rf"^\| {name} \|(.+)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None, f"docs/costs.md lacks a row `{name}`"
    documented = [int(cell) for cell in row[1].split("|")[: len(SIZES)]]
    counted = [costs[name, size].total for size in SIZES]
    assert documented == pytest.approx(counted, abs=TOLERANCE), costs[name, SIZES[1]].kinds
