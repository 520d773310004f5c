"""Lost races and lost answers: three outcomes, and each means what it says."""

import pytest

import omnigraph.graph as og
from omnigraph.commit import publish as module
from omnigraph.commit.publish import PUBLISHER_RETRY_BUDGET, retry_swap
from omnigraph.errors import (
    Contention,
    ExpectedVersionMismatch,
    GraphCorrupt,
    NotFound,
    OutcomeUnknown,
    StorageUnavailable,
)
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

NEW = Change("insert", NOTE, {"new": {"text": "n"}})
LOST = StorageUnavailable("publishing: storage failed")
BEHIND = Contention("publishing: another writer was first")


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Do not wait, but remember for how long one would have."""
    waited = []
    monkeypatch.setattr(module, "sleep", waited.append)
    return waited


class Storage:
    """A swap that fails as configured: `landing` failures happen after the swap took effect."""

    def __init__(self, lineage, failures=(), *, landing=False):
        self.attempts = 0
        self._failures = list(failures)
        self._swap, self._landing = lineage.swap, landing
        lineage.swap = self

    def __call__(self, *arguments):
        self.attempts += 1
        failure = self._failures.pop(0) if self._failures else None
        if failure is None:
            return self._swap(*arguments)
        if self._landing:
            self._swap(*arguments)
        raise failure


def unreachable(lineage, after):
    """Let a lineage answer a number of questions, then no more."""
    ask, asked = lineage.state, []

    def state():
        asked.append(1)
        if len(asked) > after:
            raise StorageUnavailable("probing the manifest: storage failed")
        return ask()

    lineage.state = state


def fresh(graph):
    found = og.open(graph.uri, "ro")
    return found.snapshot().manifest_version, dump(found)[NOTE]


@pytest.mark.parametrize("failure", [LOST, BEHIND, NotFound("gone", code="storage_not_found")])
def test_failure_that_changed_nothing_is_tried_again(graph, failure, pauses):
    prepared = prepare(graph, NEW)
    storage = Storage(graph._manifest.main, [failure, failure])
    assert publish_prepared(graph, prepared).manifest_version == 2
    assert (storage.attempts, len(pauses)) == (3, 2)
    assert fresh(graph) == (2, {"new": {"text": "n"}})


@pytest.mark.parametrize("failure", [LOST, BEHIND], ids=["answer lost", "repeated below us"])
def test_swap_that_landed_without_its_answer_is_recognised(graph, failure):
    prepared = prepare(graph, NEW)
    storage = Storage(graph._manifest.main, [failure], landing=True)
    made = publish_prepared(graph, prepared)
    assert storage.attempts == 1
    assert made.id == prepared.staged.id
    assert fresh(graph) == (2, {"new": {"text": "n"}})
    assert [commit.id for commit in graph.commits.list()].count(made.id) == 1


def test_last_attempt_that_landed_is_recognised_too(graph):
    prepared = prepare(graph, NEW)
    lineage = graph._manifest.main
    Storage(lineage, [LOST], landing=True)
    storage = Storage(lineage, [LOST] * PUBLISHER_RETRY_BUDGET)
    made = publish_prepared(graph, prepared)
    assert storage.attempts == PUBLISHER_RETRY_BUDGET + 1
    assert made.id == prepared.staged.id
    assert fresh(graph) == (2, {"new": {"text": "n"}})


@pytest.mark.parametrize("failure", [LOST, BEHIND])
def test_spent_budget_raises_the_failure_and_nothing_changed(graph, failure, pauses):
    prepared = prepare(graph, NEW)
    storage = Storage(graph._manifest.main, [failure] * 100)
    before = fresh(graph)
    with pytest.raises(type(failure)) as caught:
        publish_prepared(graph, prepared)
    assert caught.value is failure
    assert storage.attempts == PUBLISHER_RETRY_BUDGET + 1 == 6
    assert fresh(graph) == before
    assert len(pauses) == 6


def test_storage_that_stops_answering_leaves_the_outcome_unknown(graph):
    prepared = prepare(graph, NEW)
    Storage(graph._manifest.main, [LOST] * 100)
    unreachable(graph._manifest.main, after=1)
    with pytest.raises(OutcomeUnknown) as caught:
        publish_prepared(graph, prepared)
    assert caught.value.commit_id == prepared.staged.id
    assert caught.value.category == "outcome_unknown"
    assert "look it up before retrying" in caught.value.message


def test_unknown_outcome_is_settled_by_publishing_the_same_id_again(graph):
    prepared = prepare(graph, NEW)
    Storage(graph._manifest.main, [LOST], landing=True)
    unreachable(graph._manifest.main, after=1)
    with pytest.raises(OutcomeUnknown):
        publish_prepared(graph, prepared)
    other = og.open(graph.uri)
    assert other.commits.get(prepared.staged.id).id == prepared.staged.id


def test_storage_that_does_not_answer_at_first_surely_changed_nothing(graph):
    prepared = prepare(graph, NEW)
    unreachable(graph._manifest.main, after=0)
    with pytest.raises(StorageUnavailable):
        publish_prepared(graph, prepared)
    assert fresh(graph) == (1, {})


def test_every_check_is_run_again_after_a_lost_race(graph):
    prepared = prepare(graph, NEW)
    rival = og.open(graph.uri)

    def race(step):
        if step == "swap: begun":
            graph._manifest.datasets.observe = lambda step: None
            upsert(rival, NOTE, {"rival": {"text": "r"}})

    graph._manifest.datasets.observe = race
    with pytest.raises(ExpectedVersionMismatch):
        publish_prepared(graph, prepared)
    assert fresh(graph) == (2, {"rival": {"text": "r"}})


def test_lost_race_about_another_type_is_won_on_the_next_attempt(graph):
    prepared = prepare(graph, NEW)
    rival = og.open(graph.uri)

    def race(step):
        if step == "swap: begun":
            graph._manifest.datasets.observe = lambda step: None
            insert(rival, SHIP, {"s": {"name": "Aurora"}})

    graph._manifest.datasets.observe = race
    made = publish_prepared(graph, prepared)
    assert made.manifest_version == 3
    assert made.parents == (rival.commits.list()[1].id,)
    assert fresh(graph) == (3, {"new": {"text": "n"}})


@pytest.mark.parametrize("failure", [LOST, BEHIND, GraphCorrupt("x"), NotFound("gone")])
def test_failed_maintenance_does_not_fail_a_commit(graph, failure):
    def fail():
        raise failure

    graph._manifest.main.compact = fail
    assert insert(graph, NOTE, {"a": {}}).manifest_version == 2


# --- small swaps -------------------------------------------------------------------------------


def test_small_swap_is_repeated_until_it_is_not_preempted():
    failures = [BEHIND] * 3

    def attempt():
        if failures:
            raise failures.pop()

    retry_swap(attempt)
    assert failures == []


def test_small_swap_gives_up_when_its_budget_is_spent(pauses):
    def attempt():
        raise BEHIND

    with pytest.raises(Contention):
        retry_swap(attempt, budget=3)
    assert len(pauses) == 3


def test_pauses_grow_and_differ(monkeypatch, pauses):
    for attempt in (0, 3, 0, 3):
        module._back_off(attempt)
    short, long = pauses[::2], pauses[1::2]
    assert max(short) < min(long)
    assert short[0] != short[1]
