"""What becomes of operations whose process died: the truth table, the fence and the audit."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.recovery import RecoveryKind, recover
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, StagedSchema, new_commit_id
from omnigraph.errors import Contention, StorageUnavailable
from tests.support.graphs import (
    NOTE,
    SHIP,
    Change,
    dump,
    insert,
    prepare,
    publish_prepared,
    upsert,
)
from tests.support.intents import age

NOW = timedelta(0)
NEW = Change("insert", NOTE, {"new": {"text": "n"}})
PUBLISHED, FORWARD, BACK, ORPHANED = (
    RecoveryKind.ALREADY_PUBLISHED,
    RecoveryKind.ROLLED_FORWARD,
    RecoveryKind.ROLLED_BACK,
    RecoveryKind.ORPHANED_BRANCH_DISCARDED,
)


class Killed(BaseException):
    """What stands for SIGKILL inside one process: nobody catches it."""


def left_behind(graph, *, complete, branch="main", **facts):
    """Leave an intent as a process does that dies before it publishes."""
    prepared = prepare(graph, NEW, branch=branch)
    staged = replace(prepared.staged, actor="act-ada", **facts)
    intents = IntentLog(graph._manifest.objects)
    intent = intents.begin(branch, prepared.lineage_id, staged)
    return prepared, intents.update(intent, staged, complete=complete)


def kinds(graph, **how):
    return [recovery.kind for recovery in graph.recover(**{"stale_after": NOW, **how})]


def move_schema(graph):
    document = graph.snapshot().schema.to_json()
    schema = StagedSchema("0" * 64, "// as before", document)
    staged = StagedCommit(id=new_commit_id(), operation="schema_apply", schema=schema)
    publish_prepared(graph, replace(prepare(graph), staged=staged))


# --- truth table -------------------------------------------------------------------------------

HEAD = {"if_commit": "head"}
TABLE = [
    ("nothing moved", True, {}, lambda g: None, FORWARD),
    ("another type moved", True, {}, lambda g: insert(g, SHIP, {"s": {"name": "A"}}), FORWARD),
    ("another branch moved", True, {}, lambda g: g.branches.create("side"), FORWARD),
    ("the same type moved", True, {}, lambda g: insert(g, NOTE, {"x": {}}), BACK),
    ("the schema moved", True, {}, move_schema, BACK),
    ("the head it asked for stands", True, HEAD, lambda g: None, FORWARD),
    ("the head it asked for moved", True, HEAD, lambda g: insert(g, SHIP, {"s": {}}), BACK),
    ("not all was staged", False, {}, lambda g: None, BACK),
    ("nothing was staged", False, {"datasets": ()}, lambda g: None, BACK),
]


@pytest.mark.parametrize(
    ("complete", "facts", "meanwhile", "kind"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_intent_is_finished_when_it_still_applies_and_undone_otherwise(
    graph, complete, facts, meanwhile, kind
):
    head = graph.snapshot().commit_id
    facts = {**facts, **({"if_commit": head} if facts == HEAD else {})}
    prepared, intent = left_behind(graph, complete=complete, **facts)
    meanwhile(graph)
    before = dump(graph)
    assert kinds(graph) == [kind]
    fresh = og.open(graph.uri)
    expected = {**before[NOTE], **({"new": {"text": "n"}} if kind is FORWARD else {})}
    assert dump(fresh) == {**before, NOTE: expected}
    assert fresh.verify().problems == []
    assert IntentLog(graph._manifest.objects).list() == []
    (audit,) = fresh.recoveries()
    assert (audit["recovery_kind"], audit["operation_id"]) == (kind, intent.id)
    if kind is FORWARD:
        assert fresh.commits.list()[0].id == prepared.staged.id
        assert fresh.commits.list()[0].actor == "act-ada"
    else:
        assert prepared.staged.id not in [commit.id for commit in fresh.commits.list()]


def test_intent_whose_commit_is_there_is_only_removed(graph):
    prepared, _ = left_behind(graph, complete=True)
    publish_prepared(graph, prepared)
    before = graph.snapshot()
    assert kinds(graph) == [PUBLISHED]
    assert graph.snapshot() == before


@pytest.mark.parametrize("complete", [True, False])
def test_intent_of_a_deleted_branch_is_discarded(graph, complete):
    graph.branches.create("side")
    left_behind(graph, complete=complete, branch="side")
    graph.branches.delete("side")
    assert kinds(graph) == [ORPHANED]
    assert graph.recoveries()[0]["branch"] == "side"
    assert graph.verify().ok


def test_intent_of_a_lineage_that_is_gone_is_discarded(graph):
    _, intent = left_behind(graph, complete=True)
    gone = replace(intent, lineage_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", branch="side")
    IntentLog(graph._manifest.objects).update(gone, gone.staged, complete=True)
    assert kinds(graph) == [ORPHANED]


def test_branch_deleted_while_rolling_forward_is_noticed(graph):
    graph.branches.create("side")
    left_behind(graph, complete=True, branch="side")
    rival = og.open(graph.uri)

    def race(step):
        if step == "swap: begun":
            graph._manifest.datasets.observe = lambda step: None
            rival.branches.delete("side")

    graph._manifest.datasets.observe = race
    assert kinds(graph) == [ORPHANED]


def test_intent_with_a_fresh_heartbeat_is_left_alone(graph):
    left_behind(graph, complete=True)
    assert kinds(graph, stale_after=timedelta(minutes=10)) == []
    assert recover(graph._manifest) == []
    assert len(IntentLog(graph._manifest.objects).list()) == 1
    (problem,) = graph.verify().problems
    assert (problem.harmless, problem.message) == (True, "load on branch main is in flight")


def test_several_intents_are_settled_each_by_itself(graph):
    left_behind(graph, complete=True)
    left_behind(graph, complete=False)
    left_behind(graph, complete=True)
    assert kinds(graph) == [FORWARD, BACK, BACK]
    assert kinds(graph) == []
    assert [row["recovery_kind"] for row in graph.recoveries()] == [FORWARD, BACK, BACK]


# --- the fence ---------------------------------------------------------------------------------


def test_slow_writer_cannot_publish_what_was_undone(graph):
    prepared, intent = left_behind(graph, complete=False)
    assert kinds(graph) == [BACK]
    with pytest.raises(Contention) as caught:
        publish_prepared(graph, replace(prepared, staged=intent.staged))
    assert caught.value.code == "commit_fenced"
    assert caught.value.details == {"commit_id": intent.staged.id}
    assert dump(graph)[NOTE] == {}


def test_slow_writer_that_publishes_before_the_fence_wins(graph):
    prepared, intent = left_behind(graph, complete=False)
    rival = og.open(graph.uri)

    def race(step):
        if step == "swap: begun":
            graph._manifest.datasets.observe = lambda step: None
            publish_prepared(rival, replace(prepared, staged=intent.staged))

    graph._manifest.datasets.observe = race
    assert kinds(graph) == [PUBLISHED]
    assert dump(og.open(graph.uri))[NOTE] == {"new": {"text": "n"}}


def test_fenced_intent_stays_undone(graph):
    _, intent = left_behind(graph, complete=False)
    assert kinds(graph) == [BACK]
    IntentLog(graph._manifest.objects).update(intent, intent.staged, complete=True)
    assert kinds(graph) == [BACK]
    assert len(graph.recoveries()) == 1
    assert dump(graph)[NOTE] == {}


def test_undoing_deletes_what_was_staged_and_nothing_else(graph, tmp_path):
    insert(graph, NOTE, {"a": {"text": "x"}})
    versions = sorted(tmp_path.rglob("d*.manifest"))
    _, intent = left_behind(graph, complete=False)
    (dataset,) = intent.staged.datasets
    assert any(path.stem == f"d{dataset.physical}" for path in tmp_path.rglob("d*.manifest"))
    assert kinds(graph) == [BACK]
    assert sorted(tmp_path.rglob("d*.manifest")) == versions


def test_undoing_an_intent_that_made_or_dropped_datasets_is_fine(graph):
    entry = graph.snapshot().entries()[NOTE]
    made = StagedDataset("node:New", 42, 43, expected=None, physical=1, location="nodes/x")
    dropped = StagedDataset(NOTE, *entry.key, expected=entry.physical, physical=None)
    left_behind(graph, complete=False, datasets=(made, dropped))
    assert kinds(graph) == [BACK]
    assert graph.verify().ok


# --- when it runs, and what it writes down -----------------------------------------------------


@pytest.mark.parametrize(("mode", "rows"), [("rw", {"new": {"text": "n"}}), ("ro", {})])
def test_opening_settles_stale_intents_unless_read_only(graph, mode, rows):
    _, intent = left_behind(graph, complete=True)
    age(graph, intent, timedelta(minutes=11))
    assert dump(og.open(graph.uri, mode))[NOTE] == rows


def test_audit_tells_everything_about_the_operation(graph):
    insert(graph, NOTE, {"a": {}})
    prepared, intent = left_behind(graph, complete=False)
    (dataset,) = prepared.staged.datasets
    before = datetime.now(UTC)
    kinds(graph)
    (row,) = og.open(graph.uri, "ro").recoveries()
    assert before <= row.pop("created_at") <= datetime.now(UTC)
    assert row == {
        "operation_id": intent.id,
        "graph_commit_id": intent.staged.id,
        "recovery_kind": "RolledBack",
        "recovery_for_actor": "act-ada",
        "operation": "load",
        "branch": "main",
        "per_table_outcomes": [
            {
                "table_key": NOTE,
                "from_version": str(dataset.physical),
                "to_version": str(dataset.expected),
            }
        ],
    }


def test_graph_that_never_recovered_has_an_empty_audit(graph):
    assert graph.recover() == []
    assert graph.recoveries() == []


@pytest.mark.parametrize(
    ("step", "complete", "kind"),
    [
        ("recovery: fenced", False, BACK),
        ("recovery: audited", False, BACK),
        ("recovery: audited", True, FORWARD),
        ("recovery: ended", True, FORWARD),
    ],
)
def test_recovery_that_dies_is_taken_up_again_and_audited_once(graph, step, complete, kind):
    left_behind(graph, complete=complete)

    def die(reached):
        if reached == step:
            raise Killed

    graph._manifest.datasets.observe = die
    with pytest.raises(Killed):
        graph.recover(stale_after=NOW)
    survivor = og.open(graph.uri)
    survivor.recover(stale_after=NOW)
    assert [row["recovery_kind"] for row in survivor.recoveries()] == [kind]
    assert dump(survivor)[NOTE] == ({"new": {"text": "n"}} if complete else {})
    assert survivor.verify().problems == []
    upsert(survivor, NOTE, {"next": {}})


def test_audit_that_cannot_be_written_keeps_the_intent(graph, monkeypatch):
    left_behind(graph, complete=True)

    def fail(path, rows):
        raise StorageUnavailable("appending: storage failed")

    monkeypatch.setattr(graph._manifest.datasets, "append", fail)
    with pytest.raises(StorageUnavailable):
        graph.recover(stale_after=NOW)
    assert len(IntentLog(graph._manifest.objects).list()) == 1
    assert [r.kind for r in og.open(graph.uri).recover(stale_after=NOW)] == [PUBLISHED]
