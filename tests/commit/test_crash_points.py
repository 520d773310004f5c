"""A writer is killed, at every step of every protocol; what it leaves is old or new, and works."""

import itertools
from datetime import timedelta

import pytest

from omnigraph.commit.lineage import MAX_TAIL_FRAGMENTS
from omnigraph.errors import NotFound
from tests.commit.conftest import SOAK_SECONDS
from tests.support.children import run_to_step
from tests.support.graphs import PORT, Change, dump, insert, make_graph
from tests.support.intents import leave_in_flight
from tests.support.operations import (
    COMMITS,
    NAMES,
    Line,
    Operation,
    expected,
    observed,
    perform,
    populate,
)

KINDS = (*COMMITS, *NAMES, "branch of a branch", "branch of a commit", "compaction", "cleanup")
KINDS_ON_S3 = ("several", "branch", "tag")
"""A bucket is slow; `make soak` has the time for all kinds."""
STRIDE_ON_S3 = 1 if SOAK_SECONDS else 3
"""Of the steps in a bucket, every which one is a crash point; on disk every one is."""
MOST_STEPS = 60
EXPECTED = {
    "compaction": {"compaction: rows read", "compaction: done"},
    "cleanup": {"cleanup: announced", "cleanup: marked", "cleanup: files removed"},
    "branch": {"branch: lineage made", "swap: done"},
    "unbranch": {"branch: announced", "branch: closed", "branch: forgotten"},
    "untag": {"swap: old rows marked"},
}
"""Steps without which a kind would not show what it is here for."""


@pytest.mark.parametrize(
    ("fresh_place", "kind"),
    [
        *(("local", kind) for kind in KINDS),
        *(("s3", kind) for kind in (KINDS if SOAK_SECONDS else KINDS_ON_S3)),
    ],
    indirect=["fresh_place"],
)
def test_killed_at_any_step_leaves_the_old_or_the_new_state(kind, fresh_place, templates):
    def build(uri, options):
        graph = populate(make_graph(uri, options))
        operation = ready(graph, kind, 1)
        return operation, *outcomes(graph, operation)

    seen, steps = set(), set()
    for step, place in crash_points(fresh_place):
        key = ("crash points", kind)
        operation, before, after = templates.copy(key, build, place.uri, place.options)

        stopped_at = run_to_step(place, operation, step)
        steps.add(stopped_at)

        graph = place.open()
        state = observed(graph).known_as_new(before)
        assert state in (before, after), stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        seen |= {name for name, one in (("old", before), ("new", after)) if state == one}
        if stopped_at is None:
            break
        another = ready(graph, kind, 2)
        before, after = outcomes(graph, another)
        perform(graph, another)
        assert observed(place.open()).known_as_new(before) == after, stopped_at
    assert stopped_at is None, "the last child was not killed, so there are no more steps"
    assert step >= 3, "too few steps to mean something"
    assert seen == {"old", "new"}
    if STRIDE_ON_S3 == 1 or not place.options:
        assert steps >= EXPECTED.get(kind, set())


def crash_points(fresh_place):
    """Yield the numbers of the steps to be killed at, each with an empty place."""
    place = fresh_place()
    for step in range(0, MOST_STEPS, STRIDE_ON_S3 if place.options else 1):
        yield step, place
        place = fresh_place()


def ready(graph, kind, number):
    """Return an operation of this kind, after making what it needs."""
    name = f"branch/{number}"
    match kind:
        case "unbranch":
            perform(graph, Operation("branch", number))
            return Operation(kind, number, name)
        case "disown":
            perform(graph, Operation("branch", number))
            perform(graph, Operation("upsert", number, name))
            perform(graph, Operation("branch", -number, name, name))
            return Operation(kind, number, name)
        case "branch of a branch":
            perform(graph, Operation("branch", number))
            perform(graph, Operation("upsert", number, name))
            return Operation("branch", -number, name, name)
        case "branch of a commit":
            perform(graph, Operation("upsert", number))
            return Operation("branch", number, "main", graph.commits.list()[1].id)
        case "untag":
            perform(graph, Operation("tag", number))
            return Operation(kind, number, source=f"tag/{number}")
        case "compaction":
            fill = itertools.count(1_000 * number)
            while len(graph._manifest.main.state().handle.get_fragments()) <= MAX_TAIL_FRAGMENTS:
                perform(graph, Operation("upsert", next(fill)))
            return Operation("upsert", number)
        case "cleanup":
            for extra in range(2):
                perform(graph, Operation("upsert", 10 * number + extra))
            return Operation(kind, number)
        case _:
            return Operation(kind, number)


def outcomes(graph, operation):
    """Return the state as it is, and as the operation would make it."""
    before = observed(graph)
    fork = None
    if operation.kind == "branch" and operation.source not in before.branches:
        commits = before.branches[operation.branch].commits
        since = commits[commits.index(operation.source) :]
        fork = Line(operation.branch, since, dump(graph, operation.source))
    return before, expected(before, operation, fork=fork)


def test_killed_creator_leaves_nothing_that_blocks_the_next(fresh_place):
    for step, place in crash_points(fresh_place):
        stopped_at = run_to_step(place, Operation("init", 0), step)
        if stopped_at is None:
            break
        try:
            graph = place.open()
        except NotFound:
            graph = make_graph(place.uri, place.options)
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        populate(graph)
        assert len(observed(place.open()).branches["main"].commits) == 2
    assert stopped_at is None
    assert step >= 3, "too few steps to mean something"


@pytest.mark.parametrize("complete", [True, False])
def test_killed_recovery_is_finished_by_the_next(complete, fresh_place, templates):
    def build(uri, options):
        graph = populate(make_graph(uri, options))
        before = observed(graph)
        leave_in_flight(graph, Change("insert", PORT, {"q1": {"city": "Q"}}), complete=complete)
        return before

    for step, place in crash_points(fresh_place):
        before = templates.copy(("recovery", complete), build, place.uri, place.options)

        stopped_at = run_to_step(place, Operation("recover", 0), step)

        after = expected(before, Operation("intent", 1)) if complete else before
        graph = place.open()
        assert observed(graph).known_as_new(before) in (before, after), stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        graph.recover(stale_after=timedelta(0))
        assert observed(graph).known_as_new(before) == after, stopped_at
        assert [row["operation"] for row in graph.recoveries()] == ["load"], stopped_at
        assert not graph.verify().problems
        insert(place.open(), PORT, {"next": {"city": "N"}})
        if stopped_at is None:
            break
    assert stopped_at is None
    assert step >= 3, "too few steps to mean something"
