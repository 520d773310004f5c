"""Drivers on Spark that are killed at a step: what is left is resumed, aborted or recovered."""

import os
import shutil
import subprocess
import sys
import time
from datetime import timedelta

import pytest

from omnigraph.commit.intent_log import IntentLog
from omnigraph.pipeline.errors import RunStopped
from omnigraph.pipeline.runs.run import RunState
from omnigraph.storage.layout import IDS, POSITIONS, STAGED, VECTORS
from tests.support.changes import read_state
from tests.support.processes import LONG
from tests.support.spark_kills import (
    ENDS,
    GOOD,
    REJECTS,
    STEPS,
    killed,
    made,
    opened,
    rejected_rows,
)

SOAK = bool(os.environ.get("SOAK_SECONDS"))
ALL = list(STEPS)
SOME = ["staging", "prepared", "published"]
"""Rows are staged again, validated rows are published, a published run is completed."""
PUBLISHED = ALL[ALL.index("published") :]
SCRATCH = (POSITIONS, IDS, VECTORS, STAGED)
BEGUN = ALL[ALL.index("begun") :]
PIPELINES = ALL if SOAK else SOME
LOADS = ["staging", "staged", "prepared", "published"] if SOAK else ["staged"]


@pytest.fixture(scope="module")
def graves(tmp_path_factory):
    """Give the folder of drivers that were killed, and which files each found."""
    folder = tmp_path_factory.mktemp("killed")
    places = [*(f"load {step}" for step in LOADS), *(f"pipeline {step}" for step in PIPELINES)]
    before = {place: files(made(folder / place)) for place in places}
    killed(folder, places)
    return folder, before


def files(graph):
    """Return all files of rows, and those that runs need while they last."""
    listed = graph._manifest.objects.list
    paths = [info.path for folder in ("nodes", "edges", "__pipelines") for info in listed(folder)]
    return {path for path in paths if any(f"/{name}/" in path for name in ("data", *SCRATCH))}


def left(graph):
    """Return what only something in flight may leave behind."""
    found = {path for path in files(graph) if "/data/" not in path}
    return IntentLog(graph._manifest.objects).list(), found


def check_whole(graph, before):
    """Check that a graph has nothing of a run."""
    state = read_state(graph)
    assert (set(state["Person"]), state["Knows"]) == ({"old"}, {})
    assert graph.branches.list() == ["main"]
    assert left(graph) == ([], set())
    assert files(graph) == before
    assert graph.verify().ok


def check_loaded(graph, at="main"):
    """Check that a graph has all of a run, once."""
    state = read_state(graph, at)
    assert set(state["Person"]) == GOOD
    assert sorted((e["src"], e["dst"]) for e in state["Knows"].values()) == sorted(ENDS)
    assert graph.verify().ok


@pytest.mark.parametrize("step", PIPELINES)
def test_killed_pipeline_is_resumed_or_leaves_nothing(quick, graves, step):
    tmp_path, before = graves[0] / f"pipeline {step}", graves[1][f"pipeline {step}"]
    for copy in ("aborted", "recovered"):
        shutil.copytree(tmp_path / "graph", tmp_path / copy)
    graph = opened(tmp_path / "graph")
    if step not in BEGUN:
        check_whole(graph, before)
        assert graph.pipeline.status() == []
        return
    [run] = graph.pipeline.status()
    if step not in PUBLISHED:
        assert set(read_state(graph)["Person"]) == {"old"}
    assert graph.verify().ok
    graph.cleanup(keep=1, confirm=True)  # spares what is staged

    report = graph.pipeline.resume(run.id)
    assert (report.run, report.state, report.repeated) == (run.id, "finished", False)
    assert (report.given, report.accepted, report.rejected) == (8, 4, 4)
    assert rejected_rows(report.rejects) == REJECTS
    assert report.merge["branch_deleted"] is True
    check_loaded(graph)
    assert all(person["v"] for person in read_state(graph)["Person"].values())
    assert graph.branches.list() == ["main"]
    assert left(graph) == ([], set())
    [done] = graph.pipeline.status()
    assert done.driver is None
    for name, facts in run.stages.items():
        assert done.stages[name] == facts, f"{name} was done again"
    commits = [commit.operation for commit in graph.commits.list()]
    assert (commits.count("pipeline"), commits.count("embed")) == (1, 0)
    graph.cleanup(keep=1, confirm=True)
    check_loaded(opened(tmp_path / "graph"))
    if step == "published":
        head = graph.snapshot().commit_id
        assert graph.pipeline.run(tmp_path / "p.yaml").repeated  # though its branch is gone
        assert graph.snapshot().commit_id == head

    check_aborted(opened(tmp_path / "aborted"), run, before, step)
    # Recovery takes the run for dead; an abort after that keeps what is published.
    graph = opened(tmp_path / "recovered")
    graph.recover(stale_after=timedelta())
    state = graph.pipeline.abort(run.id).state
    assert state is (RunState.FINISHED if step in PUBLISHED else RunState.ABORTED)
    assert left(graph) == ([], set())
    if step in PUBLISHED:
        check_loaded(graph, "main" if step in ("merged", "branch deleted") else "load")
    assert graph.verify().ok


def check_aborted(graph, run, before, step):
    """Abort a run; what is published stays, everything else is gone."""
    state = graph.pipeline.abort(run.id).state
    assert left(graph) == ([], set())
    if step in PUBLISHED:
        assert state is RunState.FINISHED
        check_loaded(graph, "main" if step in ("merged", "branch deleted") else "load")
        return
    assert state is RunState.ABORTED
    if step == "branched":  # killed before anybody could know whose branch it is
        graph.branches.delete("load")
    check_whole(graph, before)
    with pytest.raises(RunStopped, match="was aborted") as refused:
        graph.pipeline.resume(run.id)
    assert refused.value.code == "run_aborted"


@pytest.mark.parametrize("step", LOADS)
def test_killed_load_is_aborted_and_the_next_load_succeeds(quick, graves, step):
    place, before = graves[0] / f"load {step}", graves[1][f"load {step}"]
    graph = opened(place / "graph")
    [run] = graph.pipeline.status()
    is_published = step in PUBLISHED
    done = graph.pipeline.abort(run.id)
    assert done.state is (RunState.FINISHED if is_published else RunState.ABORTED)
    assert left(graph) == ([], set())
    assert is_published or files(graph) == before
    again = graph.load({"Person": place / "more.csv"}, engine="spark")
    assert again.total == len(GOOD)
    assert set(read_state(graph)["Person"]) == GOOD
    assert graph.verify().ok


SLOW = """version: 1
sources:
  people: {csv: people.csv}
  slow:
    sql: select name, java_method('java.lang.Thread', 'sleep', 600000L) as email from people
nodes: {Person: {source: slow}}
on_violation: reject
spark: {master: "local[1]", memory: 512m}
"""


@pytest.mark.skipif(not SOAK, reason="only a soak has the time")
def test_a_driver_that_is_at_work_stops_when_its_run_is_aborted_from_another_process(tmp_path):
    graph = made(tmp_path / "there")
    before = files(graph)
    file = tmp_path / "there" / "p.yaml"
    file.write_text(SLOW)
    words = [sys.executable, "-m", "omnigraph.cli", "pipeline"]
    run = [*words, "run", str(file), "--uri", graph.uri]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        deadline = time.monotonic() + LONG
        while not left(graph)[0]:
            assert driver.poll() is None, driver.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        [found] = graph.pipeline.status()
        resumed, aborted = (
            subprocess.run(
                [*words, what, found.id, "--uri", graph.uri], capture_output=True, text=True
            )
            for what in ("resume", "abort")
        )
        _, said = driver.communicate(timeout=LONG)
    assert resumed.returncode == 1
    assert f"run {found.id} is still running in process {driver.pid}" in resumed.stderr
    assert (aborted.returncode, aborted.stdout) == (0, f"run {found.id} is aborted\n")
    assert driver.returncode == 1
    assert f"run {found.id} was aborted: nothing was published" in said
    check_whole(opened(tmp_path / "there" / "graph"), before)
