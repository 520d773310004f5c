"""A server maintains its graphs: in one process of its own, visibly, until it stops."""

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.maintain.retention import Retention
from omnigraph.server.maintenance_worker import ServedGraphs
from omnigraph.server.settings import ServerSettings
from omnigraph.service import cluster
from tests.support.clusters import edit, write_cluster
from tests.support.serving import PATIENCE, make_graph, serving

FAST = ("--maintenance-interval=0.2", "--maintenance-cpu-share=1", "--unauthenticated")


@pytest.fixture
def graph(tmp_path):
    graph = og.open(make_graph(tmp_path / "g"))
    fill(graph)
    return graph


def fill(graph, prefix="p"):
    """Make compaction of a type due."""
    for number in range(16):
        graph.load({"Person": [{"name": f"{prefix}{number}"}]})


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def metrics(server):
    with server.client() as client:
        lines = client.get("/metrics").text.splitlines()
    samples = (line.rsplit(" ", 1) for line in lines if line.startswith("omnigraph_maintenance"))
    return {name.removeprefix("omnigraph_maintenance_"): float(value) for name, value in samples}


def fragments(graph):
    return next(
        t.counts.fragments for t in graph.maintenance.status().types if t.type_key == "node:Person"
    )


def children(pid):
    """Return the processes that a process started to maintain graphs."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"maintenance_worker" in _read(path)
        and f"\nPPid:\t{pid}\n".encode() in _read(path.with_name("status"))
    ]


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("workers", [1, 2])
def test_server_maintains_its_graphs_in_one_process_until_it_stops(graph, workers):
    before = list(graph.export())
    options = [*FAST, f"--workers={workers}"]
    with serving(f"--graph=g={graph.uri}", *options) as server:
        until(lambda: fragments(graph) == 1)
        until(lambda: metrics(server)['steps_total{task="compaction"}'] == 1)
        seen = metrics(server)
        assert seen["passes_total"] >= 1
        assert seen['graphs{state="served"}'] == 1
        assert (seen["failures_total"], seen["last_error_timestamp_seconds"]) == (0, 0)
        assert abs(seen["last_success_timestamp_seconds"] - time.time()) < PATIENCE
        [child] = children(server.process.pid)
        priority = os.getpriority(os.PRIO_PROCESS, server.process.pid)
        assert os.getpriority(os.PRIO_PROCESS, child) == min(priority + 10, 19)
        state = graph.maintenance.status().maintainer
        assert (state.running, state.state.pid) == (True, child)
        assert graph.maintenance.run().skipped
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 10
    assert not Path(f"/proc/{child}").exists()
    assert not graph.maintenance.status().maintainer.running
    assert list(graph.export()) == before


def test_killed_maintenance_process_is_replaced(graph):
    with serving(f"--graph=g={graph.uri}", *FAST) as server:
        until(lambda: graph.maintenance.status().maintainer.running)
        [first] = children(server.process.pid)
        os.kill(first, signal.SIGKILL)
        until(lambda: children(server.process.pid) not in ([], [first]))
        fill(graph, "later")
        until(lambda: fragments(graph) <= 2)
        assert any("the maintenance process ended with -9" in line for line in server.log)
        [second] = children(server.process.pid)
        server.process.kill()
        until(lambda: not Path(f"/proc/{second}").exists())
    assert not graph.maintenance.status().maintainer.running
    assert graph.verify().ok


def test_server_without_maintenance_changes_nothing(graph):
    head = graph.snapshot().commit_id
    with serving(f"--graph=g={graph.uri}", *FAST, "--no-maintenance") as server:
        time.sleep(1)
        assert children(server.process.pid) == []
        assert metrics(server) == {}
    assert graph.snapshot().commit_id == head


def test_retention_of_a_cluster_file_reaches_the_maintenance_of_its_server(tmp_path):
    folder = write_cluster(tmp_path / "config", str(tmp_path / "root"))
    edit(folder, "schema: ports.pg", "schema: ports.pg\n    retention: { keep: 2, older_than: 1h }")
    assert cluster.import_state(folder).ok
    assert cluster.apply(folder).ok
    served = ServedGraphs(ServerSettings(cluster=str(folder)))
    assert served.read() == {
        "people": (f"{tmp_path}/root/graphs/people.omni", None),
        "ports": (
            f"{tmp_path}/root/graphs/ports.omni",
            Retention(keep=2, older_than=timedelta(hours=1)),
        ),
    }
    edit(folder, "keep: 2", "keep: 3")
    plan = cluster.plan(folder)
    assert [(c["operation"], c["resource"]) for c in plan.facts["changes"]] == [
        ("update", "graph.ports")
    ]
    assert cluster.apply(folder).ok
    assert served.read()["ports"][1] == Retention(keep=3, older_than=timedelta(hours=1))


@pytest.mark.parametrize("value", ["5", "{}", "{ keep: -1 }", "{ older_than: soon }"])
def test_invalid_retention_of_a_cluster_file_is_reported_with_its_line(tmp_path, value):
    folder = write_cluster(tmp_path / "config", str(tmp_path / "root"))
    edit(folder, "schema: ports.pg", f"schema: ports.pg\n    retention: {value}")
    [found] = [d for d in cluster.validate(folder).findings if d.severity == "error"]
    assert (found.code, found.path) == ("retention_invalid", "graphs.ports.retention")
