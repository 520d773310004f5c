"""Loads on Spark that die are resumed, those that lose a race try again; all leave whole graphs."""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

import omnigraph.graph as og
from omnigraph.commit.intents import Intents
from omnigraph.commit.recovery import recover
from omnigraph.errors import ExpectedVersionMismatch
from omnigraph.pipeline import reading
from omnigraph.pipeline.load import abort_run
from omnigraph.pipeline.runs import Runs, RunState
from omnigraph.pipeline.undertaking import Undertaking
from tests.support.changes import read_state
from tests.support.spark_loads import KNOWS, PEOPLE, SCHEMA, begin, knows, load, people

STEPS = ("pipeline: finished stage", "pipeline: prepared", "pipeline: published")
SOAK = bool(os.environ.get("SOAK_SECONDS"))


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "graph", SCHEMA)


def names(graph):
    state = read_state(graph)
    ends = sorted((row["src"], row["dst"]) for row in state["Knows"].values())
    return sorted(state["Person"]), ends


EVERYTHING = sorted(name for name, *_ in PEOPLE), sorted(KNOWS)


@pytest.mark.parametrize("step", STEPS if SOAK else STEPS[:1])
def test_a_killed_load_is_resumed_without_staging_again(spark, graph, monkeypatch, step):
    run = begin(graph)
    killed = subprocess.run(
        [sys.executable, "-m", "tests.support.spark_loads", graph.uri, run.id, step],
        check=False,
        timeout=600,
    )
    assert killed.returncode == -signal.SIGKILL
    graph = og.open(graph.uri)
    is_published = step == STEPS[-1]
    assert names(graph) == (EVERYTHING if is_published else ([], []))
    assert graph.verify().ok
    assert [i.staged.id for i in Intents(graph._manifest.objects).list()] == [run.commit_id]
    graph.cleanup(keep=1, confirm=True)  # spares what is staged

    def refuse(*_):
        raise AssertionError("it is staged already")

    monkeypatch.setattr(reading, "stage_rows", refuse)
    run = Runs(graph._manifest.objects).find(run.id)
    done = load(graph, [people(spark), knows(spark)], spark, run=run)
    assert done.commit.id == run.commit_id
    assert done.repeated == is_published
    assert names(og.open(graph.uri)) == EVERYTHING
    assert graph.verify().ok


class Dies(BaseException):
    """Ends a load where no handler is meant to help."""


def die_after_staging(graph, spark, run):
    def staged(name):
        if name == "pipeline: finished stage":
            raise Dies

    graph._manifest.datasets.observe = staged
    with pytest.raises(Dies):
        load(graph, [people(spark)], spark, run=run)
    graph._manifest.datasets.observe = lambda name: None
    return Runs(graph._manifest.objects).find(run.id)


def rows_files(graph):
    return {i.path for i in graph._manifest.objects.list("nodes") if "/data/" in i.path}


def test_a_load_that_fails_removes_what_it_staged(spark, graph):
    before = rows_files(graph)
    run = die_after_staging(graph, spark, begin(graph))
    assert run.state is RunState.FAILED
    assert rows_files(graph) == before
    assert not Intents(graph._manifest.objects).list()
    again = load(graph, [people(spark)], spark, run=run)
    assert again.commit.id != run.commit_id
    assert names(graph)[0] == EVERYTHING[0]


def test_an_aborted_run_leaves_nothing_and_a_recovered_one_starts_anew(spark, graph, monkeypatch):
    before = rows_files(graph)
    # What dies here is taken for a process that was killed.
    monkeypatch.setattr(Undertaking, "_give_up", lambda self, error: None)
    run = die_after_staging(graph, spark, begin(graph))
    assert run.state is RunState.RUNNING
    assert rows_files(graph) > before
    assert abort_run(graph._manifest, run).state is RunState.ABORTED
    assert rows_files(graph) == before

    run = die_after_staging(graph, spark, begin(graph))
    [recovered] = recover(graph._manifest, stale_after=timedelta())
    assert recovered.kind == "RolledBack"
    done = load(graph, [people(spark)], spark, run=run)
    assert done.commit.id != run.commit_id
    assert done.run.state is RunState.FINISHED
    assert names(graph)[0] == EVERYTHING[0]
    assert graph.verify().ok


def test_the_same_run_is_published_once(spark, graph):
    first = load(graph, [people(spark)], spark, run=begin(graph, key="k"))
    second = load(graph, [people(spark)], spark, run=begin(graph, key="k"))
    assert (first.repeated, second.repeated) == (False, True)
    assert second.commit.id == first.commit.id == graph.snapshot().commit_id
    third = load(graph, [people(spark)], spark, run=begin(graph, key="other"))
    assert third.types["node:Person"].counts.updated == len(PEOPLE)


def test_who_lost_a_race_validates_again_and_does_not_stage_again(spark, graph, monkeypatch):
    graph.load({"Person": [{"name": "p1", "age": 1}]})
    staged = []
    real = reading.stage_rows
    monkeypatch.setattr(reading, "stage_rows", lambda *a: staged.append(1) or real(*a))
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


def test_an_overwrite_that_lost_a_race_is_told(spark, graph):
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
    frame = people(spark).frame.select("name", "age", "@file", "@at").where("name = 'p1'")
    given = type(people(spark))("node:Person", frame.selectExpr("name", "age + 40 AS age"))
    load(graph, [given], spark, partial=True)
    assert read_state(graph)["Person"] == {"p1": {"name": "p1", "age": 41, "email": "new"}}
