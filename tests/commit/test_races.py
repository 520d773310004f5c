"""Processes that meet at one exact moment: the observer of one lets the other act."""

from datetime import timedelta

import pytest

from omnigraph.commit.recovery import RecoveryKind, abort_intent
from omnigraph.errors import AlreadyExists, Contention, NotFound
from tests.support.graphs import (
    NOTE,
    PORT,
    Change,
    Prepared,
    dump,
    insert,
    make_graph,
    prepare,
    publish_prepared,
)
from tests.support.intents import leave_in_flight

ROUNDS = {"local": 10, "s3": 2}


@pytest.fixture
def both(fresh_place):
    """Return one graph as two processes see it."""
    place = fresh_place()
    return make_graph(place.uri, place.options), place.open()


def at(graph, step, action):
    """Let something happen when a graph comes to a step, the first time it does."""
    waiting = [action]

    def observe(name):
        if name == step and waiting:
            waiting.pop()()

    graph._manifest.datasets.observe = observe


def create(racer, place):
    racer.together()
    try:
        make_graph(place.uri, place.options)
    except AlreadyExists:
        return False
    return True


def test_of_racing_creators_one_wins_and_its_graph_stays(fresh_place, racers, request):
    for _ in range(ROUNDS[request.node.callspec.params["fresh_place"]]):
        place = fresh_place()
        assert sorted(racers.run(create, place)) == [False, False, False, True]
        graph = place.open()
        assert graph.snapshot().manifest_version == 1
        assert graph.verify().ok
        insert(graph, NOTE, {"n": {}})


def test_publisher_that_slept_through_a_deletion_is_refused_for_good(both):
    one, other = both
    one.branches.create("x")
    prepared = prepare(other, Change("insert", NOTE, {"n": {}}), branch="x")
    at(other, "swap: begun", lambda: one.branches.delete("x"))
    for _ in range(2):
        with pytest.raises(NotFound, match="branch 'x' does not exist"):
            publish_prepared(other, prepared)
    assert other.branches.list() == ["main"]


def test_publisher_that_slept_through_a_new_branch_of_that_name_is_refused(both):
    one, other = both
    one.branches.create("x")
    prepared = prepare(other, Change("insert", NOTE, {"n": {}}), branch="x")
    at(other, "swap: begun", lambda: (one.branches.delete("x"), one.branches.create("x")))
    with pytest.raises(NotFound, match="branch 'x' does not exist"):
        publish_prepared(other, prepared)
    insert(other, NOTE, {"m": {}}, branch="x")
    assert list(dump(one, "x")[NOTE]) == ["m"]


def test_name_means_the_branch_that_has_it_now(both):
    one, other = both
    one.branches.create("x")
    insert(other, NOTE, {"old": {}}, branch="x")
    one.branches.delete("x")
    made = one.branches.create("x")
    assert other.branches.get("x") == made
    assert not dump(other, "x")[NOTE]
    other.branches.delete("x")
    assert one.branches.list() == ["main"]


def test_writer_that_withdraws_cannot_be_finished_by_recovery(both):
    one, other = both
    intent = leave_in_flight(one, Change("insert", PORT, {"q": {"city": "Q"}}), complete=True)
    # Recovery has read the intent and is about to publish when the writer gives up.
    at(other, "swap: begun", lambda: abort_intent(one._manifest, intent))
    (done,) = other.recover(stale_after=timedelta(0))
    assert done.kind is RecoveryKind.ROLLED_BACK
    assert not dump(one)[PORT]
    assert one.verify().ok


def test_writer_that_withdraws_too_late_has_succeeded(both):
    one, other = both
    intent = leave_in_flight(one, Change("insert", PORT, {"q": {"city": "Q"}}), complete=True)
    at(one, "swap: begun", lambda: other.recover(stale_after=timedelta(0)))
    assert abort_intent(one._manifest, intent) is RecoveryKind.ALREADY_PUBLISHED
    assert list(dump(one)[PORT]) == ["q"]
    assert not one.verify().problems


def test_writer_that_was_taken_for_dead_is_told(both):
    one, other = both
    change = Change("insert", PORT, {"q": {"city": "Q"}})
    intent = leave_in_flight(one, change, complete=False)
    other.recover(stale_after=timedelta(0))
    with pytest.raises(Contention, match="aborted by recovery"):
        publish_prepared(one, Prepared("main", None, intent.staged))
    assert not dump(other)[PORT]
