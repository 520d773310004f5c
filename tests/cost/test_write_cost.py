"""What a one-row mutation asks of an object store does not grow with the graph.

Requests are counted by an S3 server. The numbers stand in docs/costs.md, which is held to them.
"""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.graph as og
from tests.support.counting_s3 import counting_server
from tests.support.indexes import index_ids

SIZES = (1_000, 100_000, 300_000)
TOLERANCE = 2
"""Neighbouring pages of a file are sometimes read by one request."""
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "costs.md"
SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person @card(0..9) { since: I32? }
"""
STATEMENTS = {
    "insert of a keyed node": 'insert Person { name: "new", age: 1 }',
    "replacement of a keyed node": 'insert Person { name: "p00000500", age: 1 }',
    "insert of an edge": 'insert Knows { from: "p00000500", to: "p00000501" }',
    "update by key": 'update Person set { age: 2 } where name = "p00000500"',
    "delete of an edge by its ends": ('delete Knows where from = "p00000500" and to = "p00000501"'),
    "delete of a node with edges by key": 'delete Person where name = "p00000500"',
}


def fill(graph, count):
    """Give a graph people who know their neighbours, in one fragment each."""
    names = pa.array([f"p{number:08d}" for number in range(count)])
    after = pa.concat_arrays([names.slice(1), names.slice(0, 1)])
    ages = pa.array(range(count), pa.int32())
    graph.load({"Person": pa.table({"name": names, "age": ages})})
    graph.load({"Knows": pa.table({"id": names, "from": names, "to": after, "since": ages})})


@pytest.fixture(scope="module")
def server():
    with counting_server() as running:
        yield running


@pytest.fixture(scope="module")
def costs(server, tmp_path_factory):
    """Return the requests of each statement by size: of a process that never asked before."""
    found = {}
    for size in SIZES:
        folder = tmp_path_factory.mktemp("cost") / "graph"
        graph = og.init(folder, SCHEMA)
        fill(graph, size)
        index_ids(graph)
        for number, (name, statement) in enumerate(STATEMENTS.items()):
            uri = server.load(folder, f"write-{size}-{number}")
            writer = og.open(uri, storage_options=server.options)
            writer.snapshot()
            with server.counted() as requests:
                made = writer.mutate(f"query change() {{ {statement} }}")
            assert made.commit is not None
            found[name, size] = requests
    return found


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_one_row_mutation_asks_as_much_of_a_large_graph(costs, name):
    small, large, largest = (costs[name, size] for size in SIZES)
    assert abs(large.total - largest.total) <= TOLERANCE, (large.kinds, largest.kinds)
    assert small.total <= large.total, "small files are read whole, which saves requests"


@pytest.mark.parametrize("name", STATEMENTS)
def test_documented_numbers_are_those_counted(costs, name):
    row = re.search(rf"^\| {name} \|(.+)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None, f"docs/costs.md lacks a row `{name}`"
    documented = [int(cell) for cell in row[1].split("|")[: len(SIZES)]]
    counted = [costs[name, size].total for size in SIZES]
    assert documented == pytest.approx(counted, abs=TOLERANCE), costs[name, SIZES[1]].kinds
