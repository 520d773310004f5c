"""The history of an entity opens the versions that changed it, whatever else happened.

Versions are counted as they are opened, requests by an S3 server. The numbers stand in
docs/costs.md, which is held to them.
"""

import re
from contextlib import contextmanager
from itertools import pairwise
from math import ceil
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.commit.lineage import PAGE_ROWS
from omnigraph.storage.datasets import Datasets
from tests.support.counting_s3 import counting_server
from tests.support.history import grow
from tests.support.indexes import index_ids

SCHEMA = """
node Port { code: String @key  depth: I64?  name: String? }
node Note { text: String? }
"""
DEPTH = "query m($c: String, $d: I64) { update Port set { depth: $d } where code = $c }"
CHANGES = 4
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "costs.md"


def deepen(graph, code, depth, branch="main"):
    graph.mutate(DEPTH, {"c": code, "d": depth}, branch=branch)


def make(path, ports=30):
    graph = og.init(path, SCHEMA)
    codes = [f"p{number}" for number in range(ports)]
    graph.load({"Port": pa.table({"code": codes, "depth": [0] * ports})})
    return graph


@contextmanager
def counted_versions(monkeypatch):
    """Count the versions of types that are opened, each once."""
    opened, plain = set(), Datasets.open

    def noting(self, path, version=None):
        if path.startswith(("nodes/", "edges/")):
            opened.add((path, version))
        return plain(self, path, version)

    with monkeypatch.context() as patched:
        patched.setattr(Datasets, "open", noting)
        yield opened


def read(path, monkeypatch, act):
    """Return the answer of a process new to the graph, and how many versions it opened."""
    graph = og.open(path, mode="ro")
    with counted_versions(monkeypatch) as opened:
        answer = act(graph)
    return answer, len(opened)


def history_of(code):
    return lambda graph: graph.history("Port", code)


@pytest.mark.parametrize("others", [40, 160])
def test_only_versions_that_changed_the_entity_are_opened(tmp_path, monkeypatch, others):
    graph = make(tmp_path / "g")
    for number in range(others):
        deepen(graph, f"p{number % 20 + 5}", number)
        if number % (others // CHANGES) == 0:
            deepen(graph, "p1", number + 1)
        if number % 37 == 0:
            graph.optimize()
    history, opened = read(tmp_path / "g", monkeypatch, history_of("p1"))
    assert [entry.op for entry in history] == ["update"] * CHANGES + ["insert"]
    assert opened == CHANGES + 1
    first, opened = read(
        tmp_path / "g", monkeypatch, lambda graph: graph.history("Port", "p1", limit=1)
    )
    assert (list(first), opened) == ([history[0]], 2)
    origins, opened = read(tmp_path / "g", monkeypatch, lambda graph: graph.blame("Port", "p1"))
    assert origins["depth"].commit_id == history[0].commit.id
    assert origins["code"].commit_id == history[-1].commit.id
    assert opened <= CHANGES + 1


def test_merges_of_branches_that_left_the_entity_alone_open_nothing(tmp_path, monkeypatch):
    graph = make(tmp_path / "g")
    deepen(graph, "p1", 1)
    for number in range(12):
        name = f"agent/{number}"
        graph.branches.create(name)
        deepen(graph, "p2", number + 1, name)
        if number % 2:  # the target changes, too, so its version cannot be taken
            deepen(graph, "p3", number + 1)
        graph.merge(name, delete_branch=True)
    history, opened = read(tmp_path / "g", monkeypatch, history_of("p1"))
    assert [entry.op for entry in history] == ["update", "insert"]
    assert opened == 2


def test_merges_of_branches_that_changed_the_entity_open_two_versions_each(tmp_path, monkeypatch):
    graph = make(tmp_path / "g")
    for number in range(CHANGES):
        name = f"agent/{number}"
        graph.branches.create(name)
        deepen(graph, "p1", number + 1, name)
        deepen(graph, "p2", number + 1, name)
        deepen(graph, "p3", number + 1)
        graph.merge(name, delete_branch=True)
    history, opened = read(tmp_path / "g", monkeypatch, history_of("p1"))
    branches = [entry.commit.branch for entry in history]
    assert branches == [f"agent/{number}" for number in reversed(range(CHANGES))] + ["main"]
    assert opened <= 2 * len(history) + 1


def chain(graph, length, changes):
    """Merge a change of p1 from branch to branch, each of which has changed something else."""
    names = [f"b{number}" for number in range(length)]
    for name in names:
        graph.branches.create(name)
    for number in range(changes):
        deepen(graph, "p1", number + 1, names[0])
    for number, (source, target) in enumerate(pairwise([*names, "main"])):
        graph.load({"Port": [{"code": f"x{number}", "depth": number}]}, branch=target)
        graph.merge(source, target)


@pytest.mark.parametrize("changes", [1, 3])
@pytest.mark.parametrize("length", [4, 24])
def test_chain_of_merges_opens_no_version_of_its_own(tmp_path, monkeypatch, length, changes):
    """A merge whose target left the entity alone shows what its source shows."""
    chain(make(tmp_path / "g"), length, changes)
    history, opened = read(tmp_path / "g", monkeypatch, history_of("p1"))
    assert [(entry.op, entry.commit.branch) for entry in history] == [
        *[("update", "b0")] * changes,
        ("insert", "main"),
    ]
    assert opened <= changes + 2
    origins, opened = read(tmp_path / "g", monkeypatch, lambda graph: graph.blame("Port", "p1"))
    assert origins["depth"].commit_id == history[0].commit.id
    assert opened <= changes + 2


def test_merges_decided_by_a_reviewer_open_two_versions_per_change(tmp_path, monkeypatch):
    graph = make(tmp_path / "g")
    for number in range(CHANGES):
        graph.branches.create(f"agent/{number}")
        deepen(graph, "p1", number + 1, f"agent/{number}")
    deepen(graph, "p1", 99)
    for number in range(CHANGES):
        decisions = {"entities": [{"type": "Port", "id": "p1", "set": {"depth": 50 + number}}]}
        graph.merge(f"agent/{number}", resolve=decisions)
    history, opened = read(tmp_path / "g", monkeypatch, history_of("p1"))
    depths = [entry.after.properties["depth"] for entry in history]
    assert sorted(depths) == sorted([0, *range(1, CHANGES + 1), 99, *range(50, 50 + CHANGES)])
    assert opened <= 2 * len(history) + 8


# --- requests -----------------------------------------------------------------------------------


LENGTHS = (100, 10_000)
PORTS = (1_000, 100_000)
REQUESTS_PER_PAGE = 14
INDEX_REQUESTS = 14
"""An index of a small type is read by fewer requests than that of a large one."""
OPERATIONS = {
    "history of an entity, newest 2 changes": lambda g: g.history("Port", "p1", limit=2),
    "history of an entity": lambda g: g.history("Port", "p1"),
    "blame of an entity": lambda g: g.blame("Port", "p9"),
}


@pytest.fixture(scope="module")
def costs(tmp_path_factory):
    """Return the requests of each operation, by length of the history and by number of ports."""
    found = {}
    with counting_server() as server:
        folder = tmp_path_factory.mktemp("cost")
        for kind, sizes in (("commits", LENGTHS), ("ports", PORTS)):
            for size in sizes:
                path = folder / f"{kind}-{size}"
                graph = make(path, size if kind == "ports" else PORTS[0])
                index_ids(graph)
                if kind == "commits":
                    grow(graph, "node:Note", size, versions=0)
                    graph = og.open(path)
                graph.load({"Port": [{"code": "p9", "depth": 0, "name": "x"}]}, mode="merge")
                for depth in range(1, CHANGES):
                    deepen(graph, "p1", depth)
                for name, act in OPERATIONS.items():
                    uri = server.load(path, f"{kind}-{size}-{len(found)}")
                    reader = og.open(uri, storage_options=server.options)
                    reader.snapshot()
                    with server.counted() as requests:
                        assert len(act(reader)) > 1
                    found[name, kind, size] = requests
    return found


def entity_files(requests):
    return {path.partition("/nodes/")[2] for path in requests.paths if "/nodes/" in path}


@pytest.mark.parametrize("name", OPERATIONS)
def test_cost_does_not_grow_with_the_graph(costs, name):
    small, large = (costs[name, "ports", size] for size in PORTS)
    assert large.total <= small.total + INDEX_REQUESTS, (small.kinds, large.kinds)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_longer_history_costs_the_pages_of_the_log(costs, name):
    short, long = (costs[name, "commits", size] for size in LENGTHS)
    rows = 2 * (LENGTHS[1] - LENGTHS[0])
    pages = 1 if "newest" in name else 2 + ceil(rows / PAGE_ROWS)
    assert long.total <= short.total + REQUESTS_PER_PAGE * pages, (short.kinds, long.kinds)
    assert len(entity_files(long)) == len(entity_files(short))


@pytest.mark.parametrize("name", OPERATIONS)
def test_documented_numbers_are_those_counted(costs, name):
    row = re.search(rf"^\| {name} \|(.+)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None, f"docs/costs.md lacks a row `{name}`"
    documented = [int(cell.replace(",", "")) for cell in row[1].split("|")]
    requests = [costs[name, "commits", size].total for size in LENGTHS]
    requests += [costs[name, "ports", size].total for size in PORTS]
    assert requests == pytest.approx(documented, rel=0.1, abs=2)
