"""A maintainer is killed at every step; the graph is whole, and another maintainer goes on."""

import pytest

from omnigraph.maintain.due import MIN_LOOSE_FRAGMENTS
from tests.commit.conftest import SOAK_SECONDS
from tests.support.graphs import CALLS_AT, PORT, SHIP, dump, insert, make_graph
from tests.support.maintainer_children import maintain_in_child, maintain_to_step

MOST_STEPS = 120
STRIDE, STRIDE_ON_S3 = (1, 1) if SOAK_SECONDS else (7, 40)
"""Of the steps on disk and in a bucket, every which one is a crash point; `make soak` has time."""
EXPECTED = {
    "maintain: probed",
    "maintenance: staged",
    "swap: begun",
    "swap: done",
    "maintain: topology stored",
    "cleanup: announced",
    "cleanup: marked",
    "cleanup: files removed",
    "cleanup: concluded",
    "maintain: recorded",
}
"""Steps without which the test would not show what it is here for."""


def build(uri, options):
    """Make a graph for which all of maintenance is due."""
    graph = make_graph(uri, options)
    insert(graph, PORT, {f"p{n}": {"city": "P"} for n in range(4)})
    for part in range(MIN_LOOSE_FRAGMENTS):
        insert(graph, SHIP, {f"s{part}-{n}": {"name": "S"} for n in range(3)})
    calls = {f"c{n}": {"src": f"s{n % 16}-0", "dst": f"p{n % 4}"} for n in range(40)}
    insert(graph, CALLS_AT, calls)
    graph.tags.create("v1", graph.commits.list()[5].id)
    graph.maintenance.set_retention(keep=2)
    return dump(graph), dump(graph, "v1")


@pytest.mark.parametrize("fresh_place", ["local", "s3"], indirect=True)
def test_killed_at_any_step_leaves_a_whole_graph_to_the_next_maintainer(fresh_place, templates):
    steps, step = set(), 0
    while step < MOST_STEPS:
        place = fresh_place()
        before = templates.copy(("maintainer", "kills"), build, place.uri, place.options)

        stopped_at = maintain_to_step(place, step)
        steps.add(stopped_at)

        graph = place.open()
        assert (dump(graph), dump(graph, "v1")) == before, stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        assert not graph.maintenance.status().maintainer.running, "the lock died with its holder"

        done = maintain_in_child(place)
        assert (done.skipped, done.errors, done.lost_races) == (False, [], 0), stopped_at
        graph = place.open()
        assert (dump(graph), dump(graph, "v1")) == before, stopped_at
        ships = next(t for t in graph.maintenance.status().types if t.type_key == SHIP)
        assert (ships.counts.fragments, ships.indexed) == (1, 3 * MIN_LOOSE_FRAGMENTS), stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        if stopped_at is None:
            break
        step += STRIDE_ON_S3 if place.options else STRIDE
    assert stopped_at is None, "the last child was not killed, so there are no more steps"
    if STRIDE == 1:
        assert steps >= EXPECTED
