"""What a query asks of an object store: nothing again, and nothing in proportion to the graph.

Requests are counted by an S3 server, on a disk the datasets that are opened. The numbers stand in
docs/costs.md, which is held to them.
"""

import re
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.query.engine import QuerySettings
from omnigraph.query.expansion import ExpandMode
from omnigraph.storage.datasets import Datasets
from tests.support.counting_s3 import counting_server
from tests.support.indexes import index_ids

SIZES = (1_000, 100_000)
TOLERANCE = 2
"""Neighbouring pages of a file are sometimes read by one request."""
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "costs.md"
SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""
START = '$p: Person { name: "p00000500" }'
QUERIES = {
    "lookup by key": f"{START} }} return {{ $p.age as age }}",
    "neighbours": f"{START}  $p knows $f }} return {{ $f.name as name }}",
    "two hops": f"{START}  $p knows{{1,2}} $f }} return {{ $f.name as name }}",
    "count of paths": "$p: Person  $p knows $f  $f knows $g } return { count($p) as n }",
    "group": "$p: Person } return { $p.age as age, count($p) as n }",
    "first by age": "$p: Person } return { $p.name as name } order { $p.age desc } limit 3",
}


def ask(graph, name, mode=ExpandMode.AUTO):
    text = f"query q() {{ match {{ {QUERIES[name]} }}"
    return graph._engine.run(graph.snapshot(), text, {}, None, QuerySettings(expand=mode))


def fill(graph, count):
    """Give a graph people who know the next three, in one fragment each, with indexes."""
    names = [f"p{number:08d}" for number in range(count)]
    ages = pa.array([number % 90 for number in range(count)], pa.int32())
    graph.load({"Person": pa.table({"name": names, "age": ages})})
    ends = [(names[i], names[(i + k) % count]) for i in range(count) for k in (1, 2, 3)]
    graph.load({"Knows": pa.table({"from": [a for a, _ in ends], "to": [b for _, b in ends]})})
    index_ids(graph)


@pytest.fixture(scope="module")
def server():
    with counting_server() as running:
        yield running


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a graph of each size, on disk."""
    found = {}
    for size in SIZES:
        found[size] = tmp_path_factory.mktemp("reads") / "graph"
        fill(og.init(found[size], SCHEMA), size)
    return found


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("omnigraph.query.topology.MIN_STORED_EDGES", 0)


@contextmanager
def opened(monkeypatch):
    """Note every dataset that is opened."""
    notes = []
    real = Datasets.open

    def noted(self, path, version=None):
        notes.append((path, version))
        return real(self, path, version)

    monkeypatch.setattr(Datasets, "open", noted)
    yield notes


def documented(name):
    row = re.search(rf"^\| {name} \|(.+)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None, f"docs/costs.md lacks a row `{name}`"
    return [int(cell) for cell in row[1].split("|")[: len(SIZES)]]


@pytest.mark.parametrize("name", QUERIES)
def test_a_warm_query_asks_a_bucket_for_one_probe(server, folders, name):
    uri = server.load(folders[SIZES[0]], f"warm-{name.replace(' ', '-')}")
    graph = og.open(uri, storage_options=server.options)
    expected = ask(graph, name).rows
    with server.counted() as requests:
        assert ask(graph, name).rows == expected
    assert dict(requests.kinds) == {"HEAD": 1}


@pytest.mark.parametrize("name", QUERIES)
def test_a_warm_query_opens_no_dataset_on_disk(folders, name, monkeypatch):
    graph = og.open(folders[SIZES[0]])
    expected = ask(graph, name).rows
    with opened(monkeypatch) as notes:
        assert ask(graph, name).rows == expected
    assert notes == []


@pytest.mark.parametrize("name", ["lookup by key", "neighbours", "two hops"])
def test_small_queries_of_a_large_graph_ask_for_nothing_more_in_the_end(server, folders, name):
    """What is fetched row by row is kept whole once that would have been cheaper."""
    uri = server.load(folders[SIZES[1]], f"often-{name.replace(' ', '-')}")
    graph = og.open(uri, storage_options=server.options)
    expected = ask(graph, name).rows
    for _ in range(120):
        assert ask(graph, name).rows == expected
    with server.counted() as requests:
        assert ask(graph, name).rows == expected
    assert dict(requests.kinds) == {"HEAD": 1}


def test_a_query_after_a_small_change_asks_as_much_of_a_large_graph(server, folders):
    """What an insert costs the next reader does not depend on how many edges there are."""
    found = {}
    for size in SIZES:
        uri = server.load(folders[size], f"changed-{size}")
        graph = og.open(uri, storage_options=server.options)
        graph._engine.store.small = 0  # let the small graph be read like the large one
        ask(graph, "two hops", ExpandMode.TOPOLOGY)
        insert = 'insert Knows { from: "p00000500", to: "p00000700" }'
        graph.mutate(f"query q() {{ {insert} }}")
        with server.counted() as requests:
            rows = ask(graph, "two hops", ExpandMode.TOPOLOGY).rows
        names = {row["name"] for row in rows}
        assert names == {f"p{500 + k:08d}" for k in (*range(1, 7), 200, 201, 202, 203)}
        assert graph._engine.topologies.built == 1
        found[size] = requests
    counted = [found[size].total for size in SIZES]
    reported = documented("two hops after an insert of an edge")
    differences = [abs(one - other) for one, other in zip(counted, reported, strict=True)]
    assert max(differences) <= TOLERANCE, found
    assert abs(counted[1] - counted[0]) <= TOLERANCE, found
