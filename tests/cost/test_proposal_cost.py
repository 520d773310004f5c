"""Work on proposals reads as much of a great graph as of a small one.

Requests are counted by an S3 server, for a process new to the graph. The numbers stand in
docs/costs.md, which is held to them.
"""

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from tests.support.counting_s3 import counting_server
from tests.support.history import grow
from tests.support.indexes import index_ids
from tests.support.many_proposals import settle_proposals

SCHEMA = "node Port { code: String @key  depth: I64? }\nnode Note { text: String? }\n"
DEPTH = "query m($c: String, $d: I64) { update Port set { depth: $d } where code = $c }"
SOURCES = 25
TARGETS = ("main", "release")
OPEN = SOURCES * len(TARGETS)
SETTLED = OPEN + 1
"""The number of a proposal that was merged or closed long ago."""
SIZES = {"small": 100, "commits": 10_000, "entities": 100_000, "proposals": 10_000}
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "costs.md"
MORE_REQUESTS = 20
"""Some pages more of a longer log, which is merged in tiers."""
BYTES_PER_EVENT = 35
"""The columns by which the events of one proposal are found among all."""
OPERATIONS = {
    "create a proposal": lambda g: g.proposals.create("fresh", into="main", title="One more"),
    "list 50 open proposals": lambda g: g.proposals.list(limit=50),
    "list 50 settled proposals": lambda g: g.proposals.list("closed", limit=50),
    "show an open proposal": lambda g: g.proposals.get(1),
    "show a settled proposal": lambda g: g.proposals.get(SETTLED),
    "comment on an entity": lambda g: g.proposals.get(1).comment("?", on=("Port", "p0", "depth")),
    "approve": lambda g: g.proposals.get(1).review("approve"),
    "20 events of the feed": lambda g: g.proposals.events("5", limit=20),
    "merge a proposal": lambda g: g.proposals.get(1).merge(),
}


def deepen(graph, code, depth, branch="main"):
    graph.mutate(DEPTH, {"c": code, "d": depth}, branch=branch)


def make(path, ports, commits):
    """Make a graph with open proposals, and with others that are settled."""
    graph = og.init(path, SCHEMA, actor="act-ada")
    codes = [f"p{number}" for number in range(ports)]
    graph.load({"Port": pa.table({"code": codes, "depth": [0] * ports})})
    index_ids(graph)
    grow(graph, "node:Note", commits, versions=0)
    graph = og.open(path, actor="act-ada")
    graph.branches.create("release")
    for number in range(SOURCES):
        source = f"agent/{number}"
        graph.branches.create(source)
        deepen(graph, f"p{number}", 7, source)
        for target in TARGETS:
            graph.proposals.create(source, into=target, title=f"{source} into {target}")
    graph.branches.create("fresh")
    deepen(graph, "p99", 7, "fresh")
    settle_proposals(graph, SIZES["small"])
    deepen(graph, "p98", 7)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return a small graph, and one that is greater in each way."""
    folder = tmp_path_factory.mktemp("cost")
    paths = {name: folder / name for name in SIZES}
    make(paths["small"], 1_000, SIZES["small"])
    make(paths["commits"], 1_000, SIZES["commits"])
    make(paths["entities"], SIZES["entities"], SIZES["small"])
    shutil.copytree(paths["small"], paths["proposals"])
    settle_proposals(og.open(paths["proposals"]), SIZES["proposals"] - SIZES["small"])
    return paths


@pytest.fixture(scope="module")
def costs(graphs):
    """Return the requests of each operation, by graph; the operations follow each other."""
    found = {}
    with counting_server() as server:
        for size, path in graphs.items():
            uri = server.load(path, size)
            for name, act in OPERATIONS.items():
                reader = og.open(uri, storage_options=server.options, actor="act-bo")
                reader.snapshot()
                with server.counted() as requests:
                    act(reader)
                found[name, size] = requests
    return found


def test_graphs_have_what_they_are_named_for(graphs):
    great = og.open(graphs["proposals"])
    assert great.proposals.page("open").counts == {"open": OPEN, "merged": 5_000, "closed": 5_000}
    assert len(og.open(graphs["commits"]).commits.list()) > SIZES["commits"]
    assert {og.open(path).proposals.get(SETTLED).state for path in graphs.values()} == {"closed"}
    first = great.proposals.page("all", limit=200)
    after = great.proposals.page("all", limit=200, page_token=first.next_page_token)
    numbers = [one.number for page in (first, after) for one in page.proposals]
    last = OPEN + SIZES["proposals"]
    assert numbers == list(range(last, last - 400, -1))
    assert great.verify().ok


@pytest.mark.parametrize("size", ["commits", "entities", "proposals"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_cost_does_not_grow_with_the_graph(costs, name, size):
    small, great = costs[name, "small"], costs[name, size]
    assert great.total <= small.total + MORE_REQUESTS, (small.kinds, great.kinds)
    read = great.bytes.total() - small.bytes.total()
    assert read <= BYTES_PER_EVENT * 2 * SIZES["proposals"], (read, small.bytes, great.bytes)


@pytest.mark.parametrize("name", OPERATIONS)
def test_documented_numbers_are_those_counted(costs, name):
    row = re.search(rf"^\| {name} \|(.+)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None, f"docs/costs.md lacks a row `{name}`"
    documented = [int(cell.replace(",", "")) for cell in row[1].split("|")]
    requests = [costs[name, size].total for size in SIZES]
    assert requests == pytest.approx(documented, rel=0.1, abs=2)
