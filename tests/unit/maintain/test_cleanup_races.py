"""Cleanup beside others: whatever they begin, finish or sleep through, nothing shown is hollow."""

from datetime import timedelta

import pytest

import omnigraph.graph as og
from omnigraph.commit import cleanup_lease, publish
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.staged_commit import StagedCommit, new_commit_id
from omnigraph.errors import Contention, NotFound, OmniError, VersionReclaimed
from omnigraph.maintain import cleanup as module
from omnigraph.storage.layout import dataset_path
from omnigraph.storage.scan import count_ids
from tests.support.graphs import (
    NOTE,
    SHIP,
    Change,
    clean_at_once,
    dump,
    insert,
    overwrite,
    prepare,
    publish_prepared,
    upsert,
)

FLOOR = timedelta(0)


def run_cleanup(graph, keep=1, **more):
    return clean_at_once(graph, keep=keep, **more)


def at_step(graph, step, action):
    """Do something when a step is reached, the first time it is."""

    def observe(reached):
        if reached == step:
            graph._manifest.datasets.observe = lambda step: None
            action()

    graph._manifest.datasets.observe = observe


def attempt(action, *arguments):
    """Do something that may be refused; return the code of the error, if any."""
    try:
        action(*arguments)
    except OmniError as error:
        return error.code
    return None


def check(graph):
    """Everything that is named reads completely, and writing goes on."""
    fresh = og.open(graph.uri)
    names = [*fresh.branches.list(), *(tag.name for tag in fresh.tags.list())]
    found = {name: dump(fresh, name) for name in names}
    assert [p for p in fresh.verify().problems if not p.harmless] == []
    for branch in fresh.branches.list():
        upsert(fresh, SHIP, {"s": {"name": branch}}, branch=branch)
    assert og.open(graph.uri).verify().ok
    return found


@pytest.fixture
def commits(graph):
    return [overwrite(graph, NOTE, {"n": {"text": str(number)}}) for number in range(4)]


STEPS = ("cleanup: announced", "cleanup: marked", "cleanup: files removed", "cleanup: swept nodes")


@pytest.fixture(autouse=True)
def _file_by_file(monkeypatch):
    monkeypatch.setattr(module, "DELETE_BATCH_FILES", 1)


@pytest.fixture(autouse=True)
def _retries_without_pauses(monkeypatch):
    """No other process runs, so that a retry finds what the attempt before it found."""
    monkeypatch.setattr(publish, "_FIRST_BACKOFF_SECONDS", 0)


# --- names given meanwhile ---------------------------------------------------------------------


@pytest.mark.parametrize("what", ["branches", "tags"])
@pytest.mark.parametrize("step", STEPS)
def test_name_for_an_old_commit_is_refused_while_it_may_be_removed(graph, commits, step, what):
    other, errors = og.open(graph.uri), []
    old = commits[1].id
    at_step(graph, step, lambda: errors.append(attempt(getattr(other, what).create, "late", old)))
    run_cleanup(graph)
    assert errors in (["cleanup_running"], ["version_reclaimed"])
    check(graph)
    with pytest.raises(VersionReclaimed):
        getattr(og.open(graph.uri), what).create("late", old)


@pytest.mark.parametrize("what", ["branches", "tags"])
@pytest.mark.parametrize("step", STEPS)
def test_name_for_a_head_may_be_given_while_cleanup_runs(graph, commits, step, what):
    other = og.open(graph.uri)
    graph.branches.create("side", from_=commits[2].id)

    def give():
        for branch in ("main", "side"):
            getattr(other, what).create(f"late/{branch}", branch)
            upsert(other, NOTE, {"n": {"text": "moved on"}}, branch=branch)

    at_step(graph, step, give)
    run_cleanup(graph)
    texts = {name: rows[NOTE]["n"]["text"] for name, rows in check(graph).items()}
    assert (texts["late/main"], texts["late/side"]) == ("3", "2")


@pytest.mark.parametrize("what", ["branches", "tags"])
def test_name_whose_commit_was_removed_since_it_was_found_is_refused(graph, commits, what):
    other = og.open(graph.uri)
    at_step(graph, "swap: begun", lambda: run_cleanup(other))
    error = attempt(getattr(graph, what).create, "late", commits[1].id)
    assert error == "version_reclaimed"
    check(graph)


@pytest.mark.parametrize("what", ["branches", "tags"])
def test_name_given_before_is_seen_by_cleanup(graph, commits, what):
    other = og.open(graph.uri)
    at_step(graph, "swap: begun", lambda: getattr(other, what).create("early", commits[1].id))
    run_cleanup(graph)
    assert check(graph)["early"][NOTE]["n"]["text"] == "1"


def test_commit_another_process_removed_is_missed_although_its_versions_are_cached(graph, commits):
    other = og.open(graph.uri)
    snapshots = [other.snapshot(commit.id) for commit in commits]
    assert [dump(other, at)[NOTE]["n"]["text"] for at in snapshots] == ["0", "1", "2", "3"]
    run_cleanup(graph)
    for create in (other.branches.create, other.tags.create):
        with pytest.raises(VersionReclaimed, match="version 3 of node:Note has been cleaned up"):
            create("late", snapshots[1])


def test_reader_whose_version_is_removed_gets_version_reclaimed(graph, commits):
    other = og.open(graph.uri)
    entry = other.snapshot(commits[1].id).entry(NOTE)
    path = dataset_path("node", *entry.key)
    handle = other._manifest.datasets.at(path, entry.physical)
    run_cleanup(graph)
    with pytest.raises(VersionReclaimed), other._manifest.reading(NOTE, entry):
        count_ids(handle)


def test_commit_of_a_branch_deleted_meanwhile_cannot_be_a_source(graph, commits):
    other = og.open(graph.uri)
    graph.branches.create("side", from_=commits[1].id)
    upsert(graph, NOTE, {"n": {"text": "side"}}, branch="side")
    graph.branches.create("child", from_="side")
    upsert(graph, NOTE, {"n": {"text": "child"}}, branch="child")
    upsert(graph, NOTE, {"n": {"text": "last"}}, branch="side")
    source = graph.snapshot("side")
    other.branches.delete("side", force=True)
    for create in (graph.branches.create, graph.tags.create):
        with pytest.raises(NotFound):
            create("late", source)
    run_cleanup(other)
    check(graph)


def test_cleanup_that_died_is_in_the_way_of_old_commits_only_and_not_for_ever(
    graph, commits, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(cleanup_lease.CleanupLease, "release", lambda lease: None)
        patch.setattr(module, "_mark_and_sweep", lambda *arguments: None)
        run_cleanup(graph)
    survivor = og.open(graph.uri)
    assert attempt(survivor.branches.create, "late", commits[1].id) == "cleanup_running"
    survivor.branches.create("head")
    upsert(survivor, NOTE, {"n": {"text": "new"}})
    with monkeypatch.context() as patch:
        patch.setattr(cleanup_lease, "LEASE_TIMEOUT", FLOOR)
        survivor.branches.create("late", commits[2].id)
    run_cleanup(survivor)
    check(survivor)
    assert len(survivor._manifest.main.state().head.active_cleanups) == 1


def test_cleanup_that_was_taken_for_dead_gives_up(graph, commits, monkeypatch):
    def take_for_dead():
        with monkeypatch.context() as patch:
            patch.setattr(cleanup_lease, "LEASE_TIMEOUT", FLOOR)
            run_cleanup(og.open(graph.uri), keep=9)
        monkeypatch.setattr(cleanup_lease, "LEASE_RENEWAL", FLOOR)

    at_step(graph, "cleanup: marked", take_for_dead)
    with pytest.raises(Contention, match="lease of this cleanup expired; run it again"):
        run_cleanup(graph)
    assert [dump(graph, commit.id)[NOTE]["n"]["text"] for commit in commits] == list("0123")
    run_cleanup(graph)
    check(graph)


def test_cleanup_that_takes_long_renews_its_announcement(graph, commits, monkeypatch):
    monkeypatch.setattr(cleanup_lease, "LEASE_RENEWAL", FLOOR)
    seen = set()

    def observe(step):
        if step == "cleanup: files removed":
            seen.update(og.open(graph.uri)._manifest.main.state().head.active_cleanups)

    graph._manifest.datasets.observe = observe
    run_cleanup(graph)
    assert len(seen) > 2
    assert graph._manifest.main.state().head.active_cleanups == {}
    check(graph)


# --- what was staged long ago ------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["main", "side"])
@pytest.mark.parametrize("step", STEPS)
def test_what_was_staged_too_long_ago_is_refused_while_it_may_be_removed(
    graph, commits, step, branch
):
    graph.branches.create("side")
    other, errors = og.open(graph.uri), []
    prepared = prepare(other, Change("upsert", NOTE, {"n": {"text": "late"}}), branch=branch)
    at_step(graph, step, lambda: errors.append(attempt(publish_prepared, other, prepared)))
    run_cleanup(graph)
    assert errors == ["stage_expired"]
    assert attempt(publish_prepared, other, prepared) == "stage_expired"
    assert check(graph)[branch][NOTE]["n"]["text"] == "3"


@pytest.mark.parametrize("branch", ["main", "side"])
def test_cleanup_between_the_checks_and_the_swap_of_a_publisher_is_noticed(graph, commits, branch):
    graph.branches.create("side")
    other = og.open(graph.uri)
    prepared = prepare(graph, Change("upsert", NOTE, {"n": {"text": "late"}}), branch=branch)
    at_step(graph, "swap: new rows written", lambda: run_cleanup(other))
    with pytest.raises(Contention, match="stage it again") as caught:
        publish_prepared(graph, prepared)
    assert caught.value.code == "stage_expired"
    check(graph)


def test_change_that_was_staged_before_a_cleanup_is_refused_or_whole(graph, commits):
    other = og.open(graph.uri)
    at_step(graph, "staged node", lambda: run_cleanup(other))
    error = attempt(graph.mutate, 'query q() { insert Note { text: "late" } }')
    texts = {row["text"] for row in check(graph)["main"][NOTE].values()}
    assert (error, texts) in (("stage_expired", {"3"}), (None, {"3", "late"}))


def test_what_was_published_before_cleanup_marked_stays(graph, commits):
    other = og.open(graph.uri)
    prepared = prepare(other, Change("upsert", NOTE, {"n": {"text": "in time"}}))
    at_step(graph, "swap: begun", lambda: publish_prepared(other, prepared))
    run_cleanup(graph)
    assert check(graph)["main"][NOTE]["n"]["text"] == "in time"


def test_what_was_staged_within_the_floor_is_published(graph, commits):
    prepared = prepare(graph, Change("upsert", NOTE, {"n": {"text": "young"}}))
    run_cleanup(og.open(graph.uri), age_floor=timedelta(minutes=1))
    publish_prepared(graph, prepared)
    assert check(graph)["main"][NOTE]["n"]["text"] == "young"


def test_long_operation_under_an_intent_keeps_all_it_wrote_since_it_began(graph, commits):
    intents = IntentLog(graph._manifest.objects)
    commit_id = new_commit_id()
    intent = intents.begin("main", None, StagedCommit(id=commit_id, operation="load"))
    prepared = prepare(graph, Change("upsert", NOTE, {"n": {"text": "long"}}), commit_id=commit_id)
    run_cleanup(og.open(graph.uri))  # the intent does not list yet what is staged
    intents.update(intent, prepared.staged, complete=True)
    publish_prepared(graph, prepared)
    intents.end(intent)
    assert check(graph)["main"][NOTE]["n"]["text"] == "long"


def test_new_branch_knows_what_cleanup_removed_before_it_was_made(graph, commits):
    prepared = prepare(graph, Change("upsert", NOTE, {"n": {"text": "late"}}))
    run_cleanup(graph)
    branch = graph.branches.create("side")
    staged = type(prepared)("side", branch.lineage_id, prepared.staged)
    assert attempt(publish_prepared, graph, staged) == "stage_expired"
    check(graph)


@pytest.mark.parametrize("step", ["branch: lineage made"])
def test_cleanup_while_a_branch_is_being_made_leaves_it_whole_or_unmade(graph, commits, step):
    other = og.open(graph.uri)
    prepared = prepare(other, Change("upsert", NOTE, {"n": {"text": "late"}}))
    at_step(graph, step, lambda: run_cleanup(other))
    assert attempt(graph.branches.create, "side") == "stage_expired"
    assert graph.branches.list() == ["main"]
    made = graph.branches.create("side")
    staged = type(prepared)("side", made.lineage_id, prepared.staged)
    assert attempt(publish_prepared, other, staged) == "stage_expired"
    check(graph)


def test_closed_branches_and_damaged_ones_do_not_stop_an_announcement(graph, commits):
    graph.branches.create("side")
    insert(graph, SHIP, {"s": {"name": "x"}}, branch="side")
    graph.tags.create("kept", at="side")
    graph.branches.delete("side")
    run_cleanup(graph)
    assert check(graph)["kept"][SHIP] == {"s": {"name": "x", "tons": None}}
