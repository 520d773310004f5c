"""Maintenance beside writing processes: nothing is lost, and neither side fails or starves."""

import json
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.maintain.maintenance_steps import MaintainerSettings
from tests.support import maintenance_soak
from tests.support.fork_server import process_pool

WRITERS, TURNS = 8, 20
NO_WAIT = MaintainerSettings(cpu_share=1.0)
SCHEMA = "node Note { name: String @key  turn: I64? }"
PUT = "query m($name: String, $turn: I64) { insert Note { name: $name, turn: $turn } }"
SET = "query m($name: String, $turn: I64) { update Note set { turn: $turn } where name = $name }"
DROP = "query m($name: String) { delete Note where name = $name }"


def write(uri, number):
    """Insert, update and delete notes; return what must be there."""
    graph, notes = og.open(uri), {}
    for turn in range(TURNS):
        name = f"{number}-{turn}"
        graph.mutate(PUT, {"name": name, "turn": turn})
        notes[name] = turn
        if turn % 3 == 1:
            older = f"{number}-{turn - 1}"
            graph.mutate(SET, {"name": older, "turn": -turn})
            notes[older] = -turn
        if turn % 5 == 4:
            graph.mutate(DROP, {"name": f"{number}-{turn - 3}"})
            del notes[f"{number}-{turn - 3}"]
    return notes


def maintain(uri, stop):
    """Optimize, and run passes, until a file exists; return the number of commits."""
    graph, commits = og.open(uri), 0
    while not Path(stop).exists():
        commits += graph.optimize().commit is not None
        result = graph.maintenance.run(NO_WAIT)
        assert (result.errors, result.lost_races) == ([], 0)
        commits += len(result.actions)
    return commits


def test_eight_writers_and_a_maintainer_do_not_hinder_each_other(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load({"Note": [{"name": f"first{n}"} for n in range(2_000)]})
    with process_pool(WRITERS + 1) as pool:
        maintaining = pool.submit(maintain, graph.uri, str(tmp_path / "stop"))
        writing = [pool.submit(write, graph.uri, n) for n in range(WRITERS)]
        try:
            notes = [one.result(timeout=120) for one in writing]
        finally:
            (tmp_path / "stop").touch()
        commits = maintaining.result(timeout=120)
    print(f"{commits} commits of maintenance")
    expected = {f"first{n}": None for n in range(2_000)}
    for one in notes:
        expected |= one
    stored = [json.loads(line)["data"] for line in og.open(graph.uri).export()]
    assert {row["name"]: row["turn"] for row in stored} == expected
    assert commits >= 1, "maintenance came to its turn"
    assert graph.verify().ok


@pytest.mark.parametrize("seconds", [6.0])
def test_graph_under_constant_writing_with_maintenance_loses_nothing(fresh_local, seconds):
    result = maintenance_soak.run(fresh_local(), seconds)
    assert not result.errors
    assert len(result.samples) == maintenance_soak.SAMPLES
