"""Operations on history read as much of a long history as of a short one."""

import re
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit.lineage import MAX_TAIL_FRAGMENTS
from tests.support.counting_s3 import counting_server
from tests.support.graphs import NOTE, SHIP, make_graph, upsert
from tests.support.history import grow

SIZES = (100, 10_000)
RECENT = 10
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "costs.md"
OPERATIONS = {
    "log of the newest commit": lambda graph, marks: graph.commits.list(limit=1),
    "log of the newest 20 commits": lambda graph, marks: graph.commits.list(limit=20),
    "poll of 10 commits": lambda graph, marks: graph.changes.poll(start=f"after:{marks['recent']}"),
    "snapshot at a recent time": lambda graph, marks: graph.snapshot(marks["recent time"]),
    "snapshot at an old time": lambda graph, marks: graph.snapshot(marks["old time"]),
    "snapshot of an old commit": lambda graph, marks: graph.snapshot(marks["old"]),
    "merge base": lambda graph, marks: graph.commits.merge_base("main", "side"),
    "merge of 10 updates": lambda graph, marks: graph.merge("side"),
    "branch delete": lambda graph, marks: graph.branches.delete("side"),
    "tag create": lambda graph, marks: graph.tags.create("v1"),
    "tag create at an old commit": lambda graph, marks: graph.tags.create("v1", marks["old"]),
}
FAR = {
    "poll of 10 commits",
    "snapshot at an old time",
    "snapshot of an old commit",
    "tag create at an old commit",
}
"""Operations that may read pages of the long history beyond the newest."""
REQUESTS_PER_PAGE = 14
BYTES_PER_PAGE = 350_000


@pytest.fixture(scope="module")
def costs(tmp_path_factory):
    """Return the requests of each operation by size, each by a process new to the graph."""
    found = {}
    with counting_server() as server:
        folder = tmp_path_factory.mktemp("cost") / "graph"
        graph = make_graph(str(folder))
        upsert(graph, SHIP, {f"s{number}": {"name": "Aurora"} for number in range(RECENT)})
        for size in SIZES:
            grow(graph, NOTE, size, versions=0)
            graph = og.open(folder)
            for number in range(2 * MAX_TAIL_FRAGMENTS):
                upsert(graph, NOTE, {"n": {"text": str(number)}})
            graph.branches.create("side")
            changed = {f"s{number}": {"name": f"at {size}"} for number in range(RECENT)}
            upsert(graph, SHIP, changed, branch="side")
            for number in range(RECENT):
                upsert(graph, NOTE, {"n": {"text": f"{size}-{number}"}})
            commits = graph.commits.list()
            marks = {
                "recent": commits[RECENT].id,
                "recent time": commits[RECENT].created_at,
                "old": commits[-20].id,
                "old time": commits[-20].created_at,
            }
            for number, (name, act) in enumerate(OPERATIONS.items()):
                uri = server.load(folder, f"graph-{size}-{number}")
                reader = og.open(uri, storage_options=server.options)
                reader.snapshot()
                with server.counted() as requests:
                    act(reader, marks)
                found[name, size] = requests
            graph.branches.delete("side")
    return found


@pytest.mark.parametrize("name", OPERATIONS)
def test_cost_does_not_grow_with_history(costs, name):
    """Binary search in the longer history reads a few pages more; IDs are searched one by one."""
    short, long = (costs[name, size] for size in SIZES)
    pages = 8 if name in FAR else 1
    assert long.total <= short.total + REQUESTS_PER_PAGE * pages, (short.kinds, long.kinds)
    read = long.bytes.total() - short.bytes.total()
    assert read <= BYTES_PER_PAGE * pages, (read, short.bytes, long.bytes)


def test_newest_commit_is_read_alone(costs):
    assert {costs["log of the newest commit", size].total for size in SIZES} == {3}


@pytest.mark.parametrize("name", OPERATIONS)
def test_documented_numbers_are_those_counted(costs, name):
    row = re.search(rf"^\| {name} \|(.+)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None, f"docs/costs.md lacks a row `{name}`"
    documented = [int(cell.replace(",", "")) for cell in row[1].split("|")]
    requests = [costs[name, size].total for size in SIZES]
    kilobytes = [round(costs[name, size].bytes.total() / 1000) for size in SIZES]
    assert documented == pytest.approx([*requests, *kilobytes], rel=0.1, abs=2)
