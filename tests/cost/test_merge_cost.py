"""What a merge or a diff of ten entities asks of an object store does not grow with the graph."""

from functools import partial

import pytest

import omnigraph.graph as og
from omnigraph.changes.diff import diff
from tests.cost.test_write_cost import SCHEMA, fill
from tests.support.counting_s3 import counting_server
from tests.support.indexes import index_ids

SIZES = (10_000, 300_000)
TOLERANCE = 1.1
UNRELATED = "\nnode Note { text: String }\n"


@pytest.fixture(scope="module")
def server():
    with counting_server() as running:
        yield running


def prepare_diff(graph):
    """Return a function that compares two snapshots."""
    snapshots = graph.snapshot(), graph.snapshot("side")
    return lambda: list(diff(graph._manifest, *snapshots))


@pytest.fixture(scope="module")
def costs(server, tmp_path_factory):
    """Return the requests of a diff and of a merge by size, each by a process new to the graph."""
    found = {}
    for size in SIZES:
        folder = tmp_path_factory.mktemp("cost") / "graph"
        graph = og.init(folder, SCHEMA + UNRELATED)
        fill(graph, size)
        graph.insert("Person", [{"name": "somebody"}])
        graph.insert("Note", [{"text": "unrelated"}])
        index_ids(graph)
        graph.branches.create("side")
        names = [f"p{number:08d}" for number in range(500, 505)]
        changed = [{"name": name, "age": 7} for name in names]
        fresh = [{"name": f"new{number}", "age": 1} for number in range(5)]
        graph.load({"Person": changed + fresh}, branch="side")
        graph.branches.create("tidy")
        done = graph.optimize(branch="tidy").datasets
        assert sum(dataset.fragments_removed for dataset in done) > 1
        graph.load({"Person": changed + fresh}, branch="tidy")
        graph.load({"Person": [{"name": "p00000001", "age": 9}]})
        for name, prepare in {
            "diff": prepare_diff,
            "merge": lambda g: partial(g.merge, "side"),
            "merge-tidy": lambda g: partial(g.merge, "tidy"),
        }.items():
            uri = server.load(folder, f"{name}-{size}")
            reader = og.open(uri, storage_options=server.options)
            reader.snapshot()
            act = prepare(reader)
            with server.counted() as requests:
                act()
            found[name, size] = requests
    return found


@pytest.mark.parametrize("name", ["diff", "merge", "merge-tidy"])
def test_cost_does_not_grow_with_the_graph(costs, name):
    small, large = (costs[name, size] for size in SIZES)
    assert large.total <= small.total * TOLERANCE + 2
    assert large.bytes.total() <= small.bytes.total() * TOLERANCE


@pytest.mark.parametrize("name", ["diff", "merge"])
def test_only_the_type_that_changed_is_read(costs, name):
    paths = [path.split("/graph/") for path in costs[name, SIZES[-1]].paths if "/graph/" in path]
    below = [path.split("/") for _, path in paths]
    assert {folder for folder, *_ in below} - {"__manifest", "__branches"} == {"nodes"}
    assert len({type_ for folder, type_, *_ in below if folder == "nodes"}) == 1


def test_merge_of_ten_entities_is_sixty_requests(costs):
    requests = costs["merge", SIZES[-1]]
    assert requests.total <= 60, requests.kinds
    assert requests.bytes.total() <= 300_000


def test_diff_of_ten_entities_is_thirty_requests(costs):
    assert costs["diff", SIZES[-1]].total <= 30, costs["diff", SIZES[-1]].kinds
