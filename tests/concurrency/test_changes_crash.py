"""A process dies at every step of a mutation and of a load; what it leaves is old or new."""

import os
from functools import partial

import pytest

import omnigraph.graph as og
from tests.concurrency.test_changes_race import without_ids
from tests.support.change_workers import FIRST, SCHEMA, TEAMS, run_to_step
from tests.support.changes import Delete, Put, Set, Where, put, read_state
from tests.support.model import Model
from tests.support.surfaces import Lines, Mutation, Wanted

MOST_STEPS = 60
MORE = (
    Put("Member", {"src": "p1", "dst": "t1"}),
    Put("Leads", {"src": "p1", "dst": "t1"}),
    Put("Knows", {"src": "p1", "dst": "p2"}),
)
BOTH = (
    Put("Person", {"name": "new", "email": "n"}),
    Put("Member", {"src": "new", "dst": "t1", "slot": 7}),
    Put("Person", {"name": "p1", "age": 5}),
)
CHANGES = {
    "insert": ("mutation", Wanted(BOTH)),
    "update": ("mutation", Wanted((Set("Person", {"age": 9}, (Where("age", "=", 0),)),))),
    "delete": ("mutation", Wanted((Delete("Person", (Where("name", "=", "p1"),)),))),
    "merge": ("ndjson", Wanted(BOTH)),
    "append": ("columns", Wanted((*BOTH[:1], Put("Knows", {"src": "new", "dst": "p3"})), "append")),
    "overwrite": (
        "columns",
        Wanted(tuple(put("Team", name=n, motto=n) for n in TEAMS), "overwrite"),
    ),
}
SOAK = bool(os.environ.get("SOAK_SECONDS"))
IN_A_BUCKET = tuple(CHANGES) if SOAK else ("delete", "merge")
"""A bucket is slow; `make soak` has the time for all."""


@pytest.mark.parametrize(
    ("fresh_place", "kind"),
    [*(("local", kind) for kind in CHANGES), *(("s3", kind) for kind in IN_A_BUCKET)],
    indirect=["fresh_place"],
)
def test_killed_at_any_step_leaves_the_old_or_the_new_state(fresh_place, kind, templates):
    surface, wanted = CHANGES[kind]
    build = partial(build_graph, surface, wanted)
    seen = set()
    for step in range(MOST_STEPS):
        place = fresh_place()
        before, after = templates.copy(("changes", kind), build, place.uri, place.options)

        stopped_at = run_to_step(place, surface, wanted, step)

        graph = place.open()
        state = without_ids(read_state(graph))
        assert state in (before, after), stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        assert len(graph.commits.list()) == (3 if state == after else 2), stopped_at
        seen |= {word for word, one in (("old", before), ("new", after)) if state == one}
        if stopped_at is None:
            break
        next_one = Wanted((Put("Person", {"name": "next"}),))
        assert not Mutation().run(graph, next_one).reported, stopped_at
        assert place.open().entity_at("Person", "next") is not None
    assert stopped_at is None, "the last child was not killed, so there are no more steps"
    assert step >= 4, "too few steps to mean something"
    assert seen == {"old", "new"}


@pytest.mark.parametrize("fresh_place", ["local", *(["s3"] if SOAK else [])], indirect=True)
def test_killed_while_forking_and_loading_leaves_main_alone(fresh_place, templates):
    wanted = Wanted(BOTH)
    build = partial(build_graph, "fork", wanted)
    for step in range(MOST_STEPS):
        place = fresh_place()
        before, after = templates.copy(("changes", "fork"), build, place.uri, place.options)

        stopped_at = run_to_step(place, "fork", wanted, step)

        graph = place.open()
        assert without_ids(read_state(graph)) == before, stopped_at
        if "side" in graph.branches.list():
            assert without_ids(read_state(graph, "side")) in (before, after), stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        if stopped_at is None:
            break
        graph.branches.create("next")
        assert not Lines().run(graph, wanted, "next").reported
        assert without_ids(read_state(graph, "next")) == after, stopped_at
    assert stopped_at is None, "the last child was not killed, so there are no more steps"
    assert step >= 4, "too few steps to mean something"


def build_graph(surface, wanted, uri, options):
    """Create and fill a graph; return its state, and the state that the change would make."""
    graph = og.init(uri, SCHEMA, storage_options=options)
    assert not Lines().run(graph, Wanted((*FIRST, *MORE))).reported
    return outcomes(graph, surface, wanted)


def outcomes(graph, surface, wanted):
    """Return the state as it is, and as the change would make it."""
    before = read_state(graph)
    model = Model(graph.snapshot().catalog, read_state(graph))
    if surface == "mutation":
        violations, *_ = model.mutate(wanted.steps)
    else:
        violations = model.load(wanted.steps, wanted.mode)
    assert not violations
    return without_ids(before), without_ids(model.state)
