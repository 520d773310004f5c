"""What a migration asks of an object store does not grow with the graph, unless it has to write.

Requests are counted by an S3 server. The numbers stand in docs/costs.md, which is held to them.
"""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.graph as og
from tests.support.counting_s3 import counting_server

SIZES = (10_000, 1_000_000)
TOLERANCE = 2
"""Neighbouring pages of a file are sometimes read by one request."""
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "costs.md"
SCHEMA = "node Person { name: String @key  age: I32?  mood: enum(good, bad)? }"
MIGRATIONS = {
    "add a property": ("age: I32?", "age: I32?  city: String?"),
    "rename a property": ("age: I32?", 'years: I32? @rename_from("age")'),
    "drop a property": ("age: I32?", ""),
    "rename a type": ("node Person", 'node Human @rename_from("Person")'),
    "extend an enum": ("good, bad", "good, bad, odd"),
    "remove a property and add a type": ("age: I32? ", "} node City { name: String @key "),
}


@pytest.fixture(scope="module")
def server():
    with counting_server() as running:
        yield running


@pytest.fixture(scope="module")
def costs(server, tmp_path_factory):
    """Return the requests of each migration by size, and the data files it wrote."""
    found = {}
    for size in SIZES:
        folder = tmp_path_factory.mktemp("cost") / "graph"
        graph = og.init(folder, SCHEMA)
        names = pa.array([f"p{number:08d}" for number in range(size)])
        graph.load({"Person": pa.table({"name": names, "age": pa.array(range(size), pa.int32())})})
        for number, (name, (old, new)) in enumerate(MIGRATIONS.items()):
            writer = og.open(
                server.load(folder, f"migrate-{size}-{number}"), storage_options=server.options
            )
            writer.snapshot()
            before = data_files(writer)
            with server.counted() as requests:
                done = writer.schema.apply(SCHEMA.replace(old, new))
            assert done.applied
            found[name, size] = requests, data_files(writer) - before
    return found


def data_files(graph):
    found = (info.path for info in graph._manifest.objects.list("nodes"))
    return {path for path in found if "/data/" in path}


@pytest.mark.parametrize("name", MIGRATIONS)
def test_a_migration_of_a_large_type_asks_for_as_much_and_writes_no_data(costs, name):
    (small, no_files), (large, none) = (costs[name, size] for size in SIZES)
    assert abs(small.total - large.total) <= TOLERANCE, (small.kinds, large.kinds)
    assert no_files == none == set()


@pytest.mark.parametrize("name", MIGRATIONS)
def test_documented_numbers_are_those_counted(costs, name):
    row = re.search(rf"^\| {name} \|(.+)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None, f"docs/costs.md lacks a row `{name}`"
    documented = [int(cell) for cell in row[1].split("|")]
    counted = [costs[name, size][0].total for size in SIZES]
    assert all(abs(d - c) <= TOLERANCE for d, c in zip(documented, counted, strict=True)), counted
