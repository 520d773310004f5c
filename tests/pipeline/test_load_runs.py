"""Loads on Spark that end early are resumed, losers of a race try again; graphs stay whole."""

import os
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.model import Counts
from omnigraph.commit.recovery import recover
from omnigraph.errors import ExpectedVersionMismatch
from omnigraph.pipeline.errors import RunStopped
from omnigraph.pipeline.load import stage_tasks
from omnigraph.pipeline.load.model import TypeFrame
from omnigraph.pipeline.load.stage_tasks import stage_inputs
from omnigraph.pipeline.load.staged_load import merge_results
from omnigraph.pipeline.load.staging import StagingJob
from omnigraph.pipeline.runs import run_lease
from omnigraph.pipeline.runs.recovery import abort_run
from omnigraph.pipeline.runs.run import RunState, RunStore
from omnigraph.pipeline.runs.run_lease import RunLease
from omnigraph.write.load import WriteMode, find_start_snapshot
from tests.support.changes import read_state
from tests.support.spark_loads import FILES, KNOWS, PEOPLE, SCHEMA, begin, knows, load, people


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "graph", SCHEMA)


def names(graph):
    state = read_state(graph)
    ends = sorted((row["src"], row["dst"]) for row in state["Knows"].values())
    return sorted(state["Person"]), ends


LONG = 300
"""Seconds nobody waits for unless something hangs."""
KNOWS_TYPE = "`from` string, `to` string, `@file` int, `@at` long"
EVERYTHING = sorted(name for name, *_ in PEOPLE), sorted(KNOWS)


class Dies(BaseException):
    """Ends a load where no handler is meant to help."""


def die_after_staging(graph, spark, run, **options):
    def staged(name):
        if name == "pipeline: finished stage":
            raise Dies

    graph._manifest.datasets.observe = staged
    given = options.pop("inputs", None) or [people(spark)]
    with pytest.raises(Dies):
        load(graph, given, spark, run=run, **options)
    graph._manifest.datasets.observe = lambda name: None
    return RunStore(graph._manifest.objects).find(run.id)


def positions(graph):
    return sorted(Path(graph.uri, "__pipelines").glob("*/at/*"))


def rows_files(graph):
    return {i.path for i in graph._manifest.objects.list("nodes") if "/data/" in i.path}


def test_a_load_that_fails_removes_what_it_staged(spark, graph):
    before = rows_files(graph)
    run = die_after_staging(graph, spark, begin(graph))
    assert run.state is RunState.FAILED
    assert rows_files(graph) == before
    assert not IntentLog(graph._manifest.objects).list()
    again = load(graph, [people(spark)], spark, run=run)
    assert again.commit.id != run.commit_id
    assert names(graph)[0] == EVERYTHING[0]


def test_aborted_run_leaves_nothing_and_a_recovered_run_restarts(spark, graph, monkeypatch):
    before = rows_files(graph)
    # What dies here is taken for a process that was killed.
    monkeypatch.setattr(RunLease, "_abort", lambda self, error: None)
    run = die_after_staging(graph, spark, begin(graph))
    assert run.state is RunState.RUNNING
    assert [i.resume_window for i in IntentLog(graph._manifest.objects).list()] == [
        run_lease.RESUME_WINDOW
    ]
    assert rows_files(graph) > before
    assert abort_run(graph._manifest, run).state is RunState.ABORTED
    assert rows_files(graph) == before

    run = die_after_staging(graph, spark, begin(graph))
    [recovered] = recover(graph._manifest, stale_after=timedelta())
    assert recovered.kind == "RolledBack"
    assert positions(graph) != []
    for path in positions(graph):
        os.utime(path, (0, 0))
    graph.cleanup(keep=1, confirm=True)
    assert positions(graph) == []
    done = load(graph, [people(spark)], spark, run=run)
    assert done.commit.id != run.commit_id
    assert done.run.state is RunState.FINISHED
    assert names(graph)[0] == EVERYTHING[0]
    assert graph.verify().ok


def test_the_same_run_is_published_once_and_is_too_late_to_abort(spark, graph):
    first = load(graph, [people(spark)], spark, run=begin(graph, key="k"))
    assert abort_run(graph._manifest, first.run).state is RunState.FINISHED
    assert names(og.open(graph.uri))[0] == EVERYTHING[0]
    second = load(graph, [people(spark)], spark, run=begin(graph, key="k"))
    assert (first.repeated, second.repeated) == (False, True)
    assert second.commit.id == first.commit.id == graph.snapshot().commit_id
    third = load(graph, [people(spark)], spark, run=begin(graph, key="other"))
    found = third.types["node:Person"]
    assert (found.accepted, found.counts, third.commit.counts) == (len(PEOPLE), Counts(), {})


def test_load_that_lost_a_race_validates_again_and_does_not_stage_again(spark, graph, monkeypatch):
    graph.load({"Person": [{"name": "p1", "age": 1}]})
    staged = []
    real = stage_tasks.stage_rows
    monkeypatch.setattr(stage_tasks, "stage_rows", lambda *a: staged.append(1) or real(*a))
    others = iter([{"name": "p2", "age": 99}, {"name": "other", "email": "x"}])

    def meddle(name):
        if name == "pipeline: prepared":
            row = next(others, None)
            if row is not None:
                og.open(graph.uri).load({"Person": [row]})

    graph._manifest.datasets.observe = meddle
    done = load(graph, [people(spark), knows(spark)], spark)
    # One look at the columns of each frame happens here; partitions are staged by workers.
    assert len(staged) == 2
    assert done.types["node:Person"].counts.updated == 2
    state = read_state(graph)["Person"]
    assert sorted(state) == sorted([*EVERYTHING[0], "other"])
    assert state["p2"]["age"] == 2
    assert graph.verify().ok


def test_overwrite_that_lost_a_race_raises(spark, graph):
    def meddle(name):
        if name == "pipeline: prepared":
            og.open(graph.uri).load({"Person": [{"name": "other"}]})

    graph._manifest.datasets.observe = meddle
    with pytest.raises(ExpectedVersionMismatch):
        load(graph, [people(spark)], spark, mode="overwrite")
    assert names(graph) == (["other"], [])
    assert graph.verify().ok


def test_a_partial_load_that_lost_a_race_keeps_what_the_winner_wrote(spark, graph):
    graph.load({"Person": [{"name": "p1", "age": 1, "email": "old"}]})

    def meddle(name):
        graph._manifest.datasets.observe = lambda name: None
        og.open(graph.uri).load({"Person": [{"name": "p1", "email": "new"}]})

    graph._manifest.datasets.observe = meddle
    load(graph, [ages(spark)], spark, partial=True)
    assert read_state(graph)["Person"] == {"p1": {"name": "p1", "age": 41, "email": "new"}}


def ages(spark):
    """Return a frame that gives one person an age, and nothing else."""
    frame = people(spark).frame.where("name = 'p1'").selectExpr("name", "age + 40 AS age")
    return type(people(spark))("node:Person", frame)


def test_a_partial_load_that_is_resumed_keeps_what_was_written_since(spark, graph, monkeypatch):
    graph.load({"Person": [{"name": "p1", "age": 1, "email": "old"}]})
    monkeypatch.setattr(RunLease, "_abort", lambda self, error: None)
    run = die_after_staging(graph, spark, begin(graph), inputs=[ages(spark)], partial=True)
    og.open(graph.uri).load({"Person": [{"name": "p1", "email": "new"}]})
    load(graph, [ages(spark)], spark, partial=True, run=run)
    assert read_state(graph)["Person"] == {"p1": {"name": "p1", "age": 41, "email": "new"}}


def test_a_load_that_is_aborted_elsewhere_stops_amid_its_job(spark, graph, monkeypatch, tmp_path):
    monkeypatch.setattr(run_lease, "WATCH_SECONDS", 0.1)
    before, begun = rows_files(graph), tmp_path / "begun"

    def wait(batches):
        begun.touch()
        time.sleep(LONG)
        yield from batches

    def abort(run):
        while not begun.exists():
            time.sleep(0.05)
        abort_run(og.open(graph.uri)._manifest, run)

    run = begin(graph)
    threading.Thread(target=abort, args=[run], daemon=True).start()
    slow = type(people(spark))("edge:Knows", knows(spark).frame.mapInArrow(wait, KNOWS_TYPE))
    with pytest.raises(RunStopped, match="was aborted: nothing was published") as stopped:
        load(graph, [people(spark), slow], spark, run=run)
    assert stopped.value.code == "run_aborted"
    assert RunStore(graph._manifest.objects).find(run.id).state is RunState.ABORTED
    assert rows_files(graph) == before
    assert not IntentLog(graph._manifest.objects).list()
    assert names(graph) == ([], [])


def test_all_types_are_staged_in_one_job(spark, tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    inputs = [people(spark), TypeFrame("node:Town", spark.sql("select 'x' as name")), knows(spark)]
    source = find_start_snapshot(graph._manifest, "main", None)[0]
    run = begin(graph)
    job = StagingJob(
        graph._manifest.location, source, WriteMode.MERGE, partial=False, folder=run.folder
    )
    spark.sparkContext.setJobGroup("staging", "staging")
    results, _ = stage_inputs(job, inputs)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("staging")
    assert len(jobs) == 1
    staged = merge_results(results, FILES)
    rows = {key: (type_.given, type_.rows) for key, type_ in staged.types.items()}
    assert rows == {"node:Person": (20, 20), "node:Town": (1, 1), "edge:Knows": (19, 19)}
