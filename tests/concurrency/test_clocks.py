"""Processes whose clocks are a day ahead or behind: no commit is lost, no writer is blocked."""

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from ulid import ULID

import omnigraph.graph as og
from omnigraph.commit import recovery
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.staged_commit import StagedCommit, new_commit_id
from omnigraph.errors import OmniError
from omnigraph.maintain.cleanup import cleanup
from tests.support.children import Place
from tests.support.clock import SkewedProcess
from tests.support.graphs import (
    NOTE,
    SCHEMA,
    Change,
    clean_at_once,
    dump,
    overwrite,
    prepare,
    publish_prepared,
    upsert,
)

DAY = timedelta(days=1)
SKEWS = pytest.mark.parametrize("skew", [DAY, -DAY], ids=["ahead", "behind"])


@pytest.fixture
def place(tmp_path):
    og.init(tmp_path / "graph", SCHEMA)
    return Place(str(tmp_path / "graph"))


@pytest.fixture
def any_place(graph_root):
    """A folder, and a bucket."""
    og.init(graph_root.uri, SCHEMA, storage_options=graph_root.options)
    return Place(graph_root.uri, graph_root.options)


# --- what the children do ----------------------------------------------------------------------


def write(graph, _, text):
    return graph.mutate("query q($t: String) { insert Note { text: $t } }", {"t": text}).commit.id


def stage(graph, kept, text):
    kept["prepared"] = prepare(graph, Change("overwrite", NOTE, {"n": {"text": text}}))


def publish(graph, kept):
    return publish_prepared(graph, kept["prepared"]).id


def clean(graph, _):
    cleanup(graph._manifest, keep=1, dry_run=False)


def texts(place, at="main"):
    return {row["text"] for row in dump(place.open(), at)[NOTE].values()}


def recover(graph, _):
    return [str(found.kind) for found in graph.recover()]


def begin_long(graph, kept, text):
    """Begin a long operation that has staged something its intent does not list yet."""
    kept["intents"] = IntentLog(graph._manifest.objects)
    empty = StagedCommit(id=new_commit_id(), operation="load")
    kept["intent"] = kept["intents"].begin("main", None, empty)
    change = Change("overwrite", NOTE, {"n": {"text": text}})
    kept["prepared"] = prepare(graph, change, commit_id=empty.id)


def end_long(graph, kept):
    staged = kept["prepared"].staged
    intent = kept["intents"].update(kept["intent"], staged, complete=True)
    made = publish_prepared(graph, kept["prepared"])
    kept["intents"].end(intent)
    return made.id


# --- cleanups and writers ----------------------------------------------------------------------


@SKEWS
def test_cleanup_by_a_skewed_machine_blocks_no_writer(any_place, skew):
    graph = any_place.open()
    graph.branches.create("side")
    staged = prepare(graph, Change("upsert", NOTE, {"n": {"text": "staged before"}}))
    with SkewedProcess(any_place, skew) as skewed:
        assert skewed.call(clean) is None
    publish_prepared(graph, staged)
    upsert(graph, NOTE, {"m": {"text": "staged after"}})
    upsert(any_place.open(), NOTE, {"m": {"text": "side"}}, branch="side")
    assert texts(any_place) == {"staged before", "staged after"}
    assert texts(any_place, "side") == {"side"}
    assert any_place.open().verify().ok


@SKEWS
def test_slow_writer_with_a_skewed_clock_publishes_nothing_cleanup_removed(any_place, skew):
    graph = any_place.open()
    overwrite(graph, NOTE, {"n": {"text": "first"}})
    with SkewedProcess(any_place, skew) as skewed:
        skewed.call(stage, "late")
        clean_at_once(graph, keep=1)
        assert skewed.call(publish) == "stage_expired"
        assert texts(any_place) == {"first"}
        assert skewed.call(write, "again") in {c.id for c in any_place.open().commits.list()}
    assert texts(any_place) == {"first", "again"}
    assert any_place.open().verify().ok


@SKEWS
def test_long_operation_of_a_skewed_machine_keeps_what_it_staged(any_place, skew):
    graph = any_place.open()
    overwrite(graph, NOTE, {"n": {"text": "first"}})
    with SkewedProcess(any_place, skew) as skewed:
        skewed.call(begin_long, "long")
        clean_at_once(graph, keep=1)
        assert skewed.call(end_long) == any_place.open().commits.list()[0].id
    assert texts(any_place) == {"long"}
    assert any_place.open().verify().ok


@SKEWS
def test_recovery_by_a_skewed_machine_leaves_operations_alone_that_live(place, skew):
    graph, kept = place.open(), {}
    begin_long(graph, kept, "mine")
    with SkewedProcess(place, skew) as skewed:
        assert skewed.call(recover) == []
    end_long(graph, kept)
    assert texts(place) == {"mine"}


@SKEWS
def test_operation_of_a_skewed_machine_is_taken_for_dead_by_the_time_of_the_store(
    place, skew, monkeypatch
):
    with SkewedProcess(place, skew) as skewed:
        skewed.call(begin_long, "left")
    graph = place.open()
    assert graph.recover() == []
    monkeypatch.setattr(recovery, "STALE_AFTER", timedelta(0))
    assert [str(found.kind) for found in graph.recover()] == ["RolledBack"]


@SKEWS
def test_recent_head_is_kept_whatever_the_clock_of_its_successor(place, skew):
    graph = place.open()
    first = overwrite(graph, NOTE, {"n": {"text": "first"}})
    with SkewedProcess(place, skew) as skewed:
        skewed.call(stage, "second")
        skewed.call(publish)
    for file in Path(place.uri, "nodes").rglob("*.*"):  # old, unlike what is reported of the states
        os.utime(file, (0, 0))
    cleanup(graph._manifest, keep=1, dry_run=False)
    assert texts(place, first.id) == {"first"}


@SKEWS
def test_old_commit_of_a_skewed_machine_gets_no_name_while_it_is_removed(place, skew):
    graph, answers = place.open(), []
    with SkewedProcess(place, skew) as skewed:
        skewed.call(stage, "old")
        old = skewed.call(publish)
    overwrite(graph, NOTE, {"n": {"text": "new"}})

    def name_it(reached):
        if reached == "cleanup: marked":
            answers.append(refusal(place.open().tags.create, "late", old))

    graph._manifest.datasets.observe = name_it
    clean_at_once(graph, keep=1)
    assert answers == ["cleanup_running"]
    assert refusal(place.open().tags.create, "late", old) == "version_reclaimed"
    assert place.open().verify().ok


def refusal(action, *arguments):
    with pytest.raises(OmniError) as caught:
        action(*arguments)
    return caught.value.code


def test_time_of_commits_grows_along_first_parents(place):
    with SkewedProcess(place, DAY) as ahead, SkewedProcess(place, -DAY) as behind:
        for process, text in ((behind, "1"), (ahead, "2"), (behind, "3")):
            process.call(write, text)
    upsert(place.open(), NOTE, {"n": {"text": "4"}})
    graph = place.open()
    made = [commit.created_at for commit in graph.commits.list()]
    assert made == sorted(set(made), reverse=True)
    assert [len(dump(graph, at)[NOTE]) for at in made] == [4, 3, 2, 1, 0]


# --- what a wrong clock left behind ------------------------------------------------------------


def announce_ahead(graph):
    """Leave in all heads what a cleanup of release 0.1 left that died on a machine a day ahead."""
    tomorrow = datetime.now(UTC) + DAY
    for lineage_id in (None, graph._manifest.branch("side").lineage_id):
        lineage = graph._manifest.lineage(lineage_id)
        state = lineage.state()
        until = int(tomorrow.timestamp() * 1000)
        dead = str(ULID.from_datetime(tomorrow))
        sweeping = {} if lineage_id else {dead: until}
        lineage.swap(
            state,
            replace(state.head, cleanup_cutoff=until, last_cleanup=dead, active_cleanups=sweeping),
        )


def test_announcement_ahead_of_time_blocks_no_new_change_and_repair_withdraws_it(place):
    graph = place.open()
    first = overwrite(graph, NOTE, {"n": {"text": "first"}})
    overwrite(graph, NOTE, {"n": {"text": "second"}})
    graph.branches.create("side")
    before = prepare(graph, Change("upsert", NOTE, {"m": {"text": "early"}}))
    announce_ahead(graph)
    graph = place.open()
    for branch in ("main", "side"):
        graph.mutate('query q() { insert Note { text: "third" } }', branch=branch)
    assert refusal(publish_prepared, graph, before) == "expected_version_mismatch"
    assert refusal(graph.tags.create, "old", first.id) == "cleanup_running"
    with pytest.raises(OmniError, match="omnigraph repair --confirm"):
        publish_prepared(graph, prepare(graph, Change("upsert", NOTE, {"m": {"text": "fourth"}})))
    graph.repair(confirm=True)
    graph = place.open()
    graph.tags.create("old", first.id)
    for branch in ("main", "side"):
        change = Change("upsert", NOTE, {"m": {"text": "fifth"}})
        publish_prepared(graph, prepare(graph, change, branch=branch))
        assert texts(place, branch) == {"second", "third", "fifth"}
    assert texts(place, "old") == {"first"}
    assert place.open().verify().ok
    heads = [graph._manifest.main.state().head, graph.snapshot("side").head]
    assert all(
        head.cleanup_cutoff / 1000 <= time.time() + 2 and not head.active_cleanups for head in heads
    )


def test_cleanup_stops_when_the_clock_of_the_store_goes_back(place, monkeypatch):
    graph = place.open()
    for text in ("first", "second"):
        overwrite(graph, NOTE, {"n": {"text": text}})
    objects = graph._manifest.objects
    true_now = objects.now

    def step_back(reached):
        if reached == "cleanup: marked":
            monkeypatch.setattr(objects, "now", lambda: true_now() - timedelta(minutes=1))

    graph._manifest.datasets.observe = step_back
    report = clean_at_once(graph, keep=1)
    assert "the clock of the storage was set back" in (report.datasets[0].error or "")
    assert len(place.open().commits.list()) == 3
    assert texts(place, graph.commits.list()[1].id) == {"first"}
