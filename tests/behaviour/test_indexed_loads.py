"""A large load indexes IDs and endpoints in its own commit, and changes no answer by that."""

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.write import staging

SCHEMA = """
node Port { code: String @key  name: String }
edge Route: Port -> Port { km: I32 }
"""
SMALL = 1_200  # more than a commit may have that is made with others
ROWS = 2 * SMALL


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "INDEXED_LOAD_ROWS", SMALL)
    return og.init(tmp_path / "g", SCHEMA)


def ports(first, count):
    codes = [f"p{number:05d}" for number in range(first, first + count)]
    return {"Port": pa.table({"code": codes, "name": codes})}


def routes(first, count):
    ends = [f"p{number:05d}" for number in range(first, first + count)]
    return {"Route": pa.table({"from": ends, "to": ends[::-1], "km": pa.array(range(count))})}


def covered(graph):
    """Return the rows that each index covers, of how many."""
    return {
        f"{status.type_key} {status.column}": (status.covered, status.rows)
        for status in graph.indexes.status()
    }


def test_a_large_load_indexes_ids_and_endpoints_as_one_commit(graph):
    before = len(graph.commits.list())
    graph.load({**ports(0, ROWS), **routes(0, ROWS)})
    assert len(graph.commits.list()) == before + 1
    assert covered(graph) == {
        "edge:Route dst": (ROWS, ROWS),
        "edge:Route id": (ROWS, ROWS),
        "edge:Route src": (ROWS, ROWS),
        "node:Port id": (ROWS, ROWS),
    }
    text = "query q($c: String) { match { $p: Port { code: $c }  $p route $q } return { $q.code } }"
    assert graph.query(text, {"c": "p00003"}).rows == [{"q.code": f"p{ROWS - 4:05d}"}]
    assert graph.verify(deep=True).ok


def test_a_small_load_leaves_indexes_to_maintenance(graph):
    graph.load(ports(0, SMALL))
    assert covered(graph)["node:Port id"] == (0, SMALL)


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_each_mode_indexes_what_it_writes_and_what_was_not_indexed(graph, mode):
    graph.load(ports(0, 5))
    first = 100 if mode == "append" else 3
    graph.load(ports(first, ROWS), mode=mode)
    total = {"append": ROWS + 5, "merge": ROWS + 3, "overwrite": ROWS}[mode]
    assert covered(graph)["node:Port id"] == (total, total)
    codes = [row["p.code"] for row in graph.query("match { $p: Port } return { $p.code }")]
    old = [] if mode == "overwrite" else [f"p{number:05d}" for number in range(5)]
    new = [f"p{number:05d}" for number in range(first, first + ROWS)]
    assert sorted(codes) == sorted({*old, *new})
    assert graph.entity_at("Port", "p00104")["name"] == "p00104"


def test_indexes_of_many_segments_are_left_to_maintenance(graph):
    for number in range(9):
        graph.load(ports(number * ROWS, ROWS), mode="append")
    (rows, total) = covered(graph)["node:Port id"]
    assert (rows, total) == (8 * ROWS, 9 * ROWS)
    graph.optimize()
    assert covered(graph)["node:Port id"] == (9 * ROWS, 9 * ROWS)
