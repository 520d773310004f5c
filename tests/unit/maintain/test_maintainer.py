"""Maintenance that runs by itself: what is due is done, once, by one process, within its share."""

import os
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import Contention, InvalidInput, StorageUnavailable
from omnigraph.maintain import maintainer as module
from omnigraph.maintain.maintainer import Maintainer
from omnigraph.maintain.maintainer_lock import read_maintainer
from omnigraph.maintain.maintenance_steps import MaintainerSettings, MaintenancePass, StepRunner
from omnigraph.maintain.retention import Retention
from omnigraph.query import topology

SCHEMA = "node A { name: String @key  x: I64? @index }\nedge E: A -> A"
FAST = MaintainerSettings(interval=0.05, cpu_share=1.0)
EAGER = MaintainerSettings(
    interval=0.05, cpu_share=1.0, cleanup_interval=timedelta(0), age_floor=timedelta(0)
)


@pytest.fixture
def graph(tmp_path):
    """A graph whose nodes have many fragments and no index."""
    graph = og.init(tmp_path / "g", SCHEMA)
    for part in range(16):
        graph.load({"A": [{"name": f"a{part}-{n}", "x": n} for n in range(64)]})
    return graph


def files(graph):
    return {str(path): path.stat().st_mtime_ns for path in Path(graph.uri).rglob("*")}


def type_status(graph, key="node:A", branch="main"):
    return next(t for t in graph.maintenance.status(branch).types if t.type_key == key)


def test_pass_does_what_is_due_and_the_next_one_nothing(graph):
    before = list(graph.export())
    worker = Maintainer(graph._manifest, FAST, actor="upkeep")
    done = worker.run()
    assert done.actions == [
        "compacted node:A: fragments 16 -> 1",
        "indexed node:A: id:btree, x:btree",
    ]
    assert list(graph.export()) == before
    assert [(c.operation, c.actor) for c in graph.commits.list(limit=2)] == [
        ("optimize", "upkeep"),
        ("optimize", "upkeep"),
    ]
    status = type_status(graph)
    assert (status.counts.fragments, status.indexed, status.counts.rows) == (1, 1024, 1024)
    assert worker.run().actions == []
    assert graph.verify().ok


def test_idle_graph_costs_one_probe_and_no_write(graph):
    worker = Maintainer(graph._manifest, FAST)
    while worker.run().actions:
        pass
    before, steps = files(graph), []
    graph._manifest.datasets.observe = steps.append
    assert worker.run().actions == []
    assert steps == ["maintain: probed", "maintain: recorded"]
    after = files(graph)
    assert {path for path in after if after[path] != before.get(path)} <= {
        f"{graph.uri}/_locks/maintainer.json"
    }
    assert after.keys() == before.keys()


def test_small_changes_are_not_due(graph):
    worker = Maintainer(graph._manifest, FAST)
    worker.run()
    graph.load({"A": [{"name": f"late{n}"} for n in range(10)]})
    head = graph.snapshot().commit_id
    assert worker.run().actions == []
    assert graph.snapshot().commit_id == head


def test_branch_is_maintained_where_it_differs_from_main(graph):
    graph.branches.create("side")
    for part in range(16):
        graph.load({"E": [{"from": "a0-0", "to": f"a0-{part}"}]}, branch="side")
    shared = graph.snapshot("side").entry("node:A")
    done = Maintainer(graph._manifest, FAST).run()
    assert "compacted edge:E on side: fragments 16 -> 1" in done.actions
    assert type_status(graph, "edge:E", "side").counts.fragments == 1
    assert graph.snapshot("side").entry("node:A") == shared
    assert graph.verify().ok


def test_many_branches_are_read_in_turns(graph, monkeypatch):
    monkeypatch.setattr(module, "BRANCHES_PER_PASS", 2)
    for name in "abc":
        graph.branches.create(name)
        for part in range(16):
            graph.load({"E": [{"from": "a0-0", "to": f"a0-{part}"}]}, branch=name)
    worker = Maintainer(graph._manifest, FAST)
    compacted = [[a for a in worker.run().actions if "edge:E" in a] for _ in range(2)]
    assert [len(actions) for actions in compacted] == [2, 1]
    counts = [type_status(graph, "edge:E", name).counts.fragments for name in "abc"]
    assert counts == [1, 1, 1]


def test_deleted_branches_are_forgotten(graph):
    worker = Maintainer(graph._manifest, FAST)
    for name in ("a", "b"):
        graph.branches.create(name)
        graph.insert("A", [{"name": name}], branch=name)
    worker.run()
    worker.run()
    kept = graph.branches.list()
    assert len(worker._clean) == len(kept) == 1 + len(worker._forks) == 3
    graph.branches.delete("a")
    worker.run()
    lineage = graph._manifest.branch("b").lineage_id
    assert (worker._clean.keys(), worker._forks.keys()) == ({None, lineage}, {lineage})


def test_cleanup_follows_the_retention_and_needs_one(graph):
    graph.tags.create("old", graph.commits.list()[8].id)
    tagged = list(graph.export("old"))
    graph.maintenance.run(FAST)
    size = graph.maintenance.status().bytes
    assert graph.maintenance.run(EAGER).actions == []
    assert graph.maintenance.status().bytes == size
    graph.maintenance.set_retention(keep=1)
    [action] = graph.maintenance.run(EAGER).actions
    assert action.startswith("removed ")
    assert graph.maintenance.status().bytes < size
    assert list(graph.export("old")) == tagged
    assert graph.verify().ok
    assert graph.maintenance.run(EAGER).actions == []


def test_cleanup_is_not_repeated_within_its_interval(graph):
    hourly = MaintainerSettings(cpu_share=1.0, age_floor=timedelta(0))
    graph.maintenance.run(FAST)
    worker = Maintainer(graph._manifest, hourly, retention=Retention(keep=1))
    assert len(worker.run().actions) == 1
    graph.load({"A": [{"name": "late"}]})
    assert worker.run().actions == []
    assert Maintainer(graph._manifest, hourly, retention=Retention(keep=1)).run().skipped
    worker.close()
    assert graph.maintenance.run(EAGER).actions == [], "the retention of the caller is not stored"


def test_topology_files_are_there_before_a_reader_needs_them(graph, monkeypatch):
    monkeypatch.setattr(topology, "MIN_STORED_EDGES", 100)
    edges = [{"from": f"a{n % 16}-{n % 64}", "to": f"a0-{n % 50}"} for n in range(200)]
    graph.load({"E": edges})
    done = graph.maintenance.run(FAST)
    assert "stored the topology of E" in done.actions
    reader = og.open(graph.uri, mode="ro")
    found = reader.query(
        "query q() { match { $a: A  $b: A  $a e $b } return { count($a) as n } }"
    ).rows
    assert found == [{"n": 200}]
    snapshot = reader.snapshot()
    store = reader._engine.store
    tables = tuple(
        store.table(snapshot, kind, name)
        for kind, name in (("edge", "E"), ("node", "A"), ("node", "A"))
    )
    assert reader._engine.topologies.find(tables) is not None
    assert reader._engine.topologies.built == 0
    assert graph.maintenance.run(FAST).actions == []


def test_second_maintainer_waits_and_takes_over(graph):
    first, second = (Maintainer(og.open(graph.uri)._manifest, FAST) for _ in range(2))
    assert not first.run().skipped
    assert second.run() == MaintenancePass(skipped=True)
    info = read_maintainer(graph._manifest.location)
    assert (info.running, info.state.pid, info.state.passes) == (True, os.getpid(), 1)
    assert info.state.done == {"compaction": 1, "index": 1}
    first.close()
    assert not read_maintainer(graph._manifest.location).running
    assert not second.run().skipped
    second.close()


def test_watch_goes_on_until_it_is_stopped(graph):
    stop, passes = threading.Event(), []
    thread = threading.Thread(
        target=graph.maintenance.watch, args=(stop, FAST, lambda result: passes.append(result))
    )
    thread.start()
    deadline = time.monotonic() + 30
    while len(passes) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert graph.maintenance.run(FAST).skipped
    began = time.monotonic()
    stop.set()
    thread.join(10)
    assert time.monotonic() - began < 1
    assert [bool(result.actions) for result in passes[:3]] == [True, False, False]
    assert not graph.maintenance.status().maintainer.running


def test_stopped_pass_ends_after_the_step_under_way(graph):
    stop = threading.Event()
    graph._manifest.datasets.observe = lambda step: stop.set() if "probed" in step else None
    worker = Maintainer(graph._manifest, FAST)
    done = worker.run(stop)
    assert (done.actions, done.stopped) == ([], True)
    assert len(worker.run().actions) == 2


@pytest.mark.parametrize(
    ("error", "races", "errors"),
    [
        (Contention("another writer was first"), 1, []),
        (StorageUnavailable("no answer"), 0, ["compaction: no answer"]),
        (RuntimeError("a bug"), 0, ["compaction: RuntimeError: a bug"]),
    ],
)
def test_failure_is_reported_and_tried_again_with_backoff(graph, monkeypatch, error, races, errors):
    def fail(*_):
        raise error

    worker = Maintainer(graph._manifest, FAST)
    with monkeypatch.context() as patched:
        patched.setattr(module, "optimize", fail)
        patched.setattr(module.TypeCounts, "index_due", False)
        pauses = []
        for _ in range(6):
            done = worker.run()
            assert (done.lost_races, done.errors) == (races, errors)
            pauses.append(worker.pause / FAST.interval)
    assert pauses == [2, 4, 8, 16, 16, 16]
    state = graph.maintenance.status().maintainer.state
    assert state.last_error == (errors[0] if errors else None)
    assert state.failures == 6 * len(errors)
    assert len(worker.run().actions) == 2
    assert worker.pause == FAST.interval
    assert graph.maintenance.status().maintainer.state.last_error is None


def test_cpu_share_is_kept_by_waiting_after_each_step():
    result, began = MaintenancePass(), time.monotonic()

    def busy():
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass

    StepRunner(0.25, threading.Event(), result).run("work", busy)
    assert time.monotonic() - began >= 0.38


@pytest.mark.parametrize("options", [{"interval": 0}, {"cpu_share": 0}, {"cpu_share": 1.5}])
def test_settings_out_of_range_are_refused(options):
    with pytest.raises(InvalidInput) as refused:
        MaintainerSettings(**options)
    assert refused.value.code == "maintenance_invalid"


def test_status_shows_sizes_and_what_is_due(graph):
    facts = graph.maintenance.status().to_json()
    stored = [
        path
        for path in Path(graph.uri).rglob("*")
        if path.is_file() and path.parent.name != "_locks"
    ]
    assert facts["files"] == len(stored)
    assert facts["bytes"] == sum(path.stat().st_size for path in stored)
    [edges, nodes] = facts["types"]
    assert (edges["type_key"], edges["rows"], edges["compaction_due"]) == ("edge:E", 0, False)
    assert {key: nodes[key] for key in ("rows", "fragments", "indexed_rows", "deleted_rows")} == {
        "rows": 1024,
        "fragments": 16,
        "indexed_rows": 0,
        "deleted_rows": 0,
    }
    assert (nodes["compaction_due"], nodes["index_due"]) == (True, True)
    assert (facts["retention"], facts["maintainer"]) == (
        None,
        {"running": False, "last_pass_at": None},
    )
