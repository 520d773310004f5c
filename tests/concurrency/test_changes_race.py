"""Eight processes change one graph at the same time; every rule holds, and nothing is lost.

`SOAK_SECONDS` lets them run longer; `SEED` repeats the luck of each, though not their timing.
"""

import os
import random
from collections import Counter
from itertools import pairwise

import pytest

import omnigraph.graph as og
from tests.support.change_workers import FIRST, SCHEMA, Shift, read_log, work
from tests.support.changes import is_generated, read_state
from tests.support.fork_server import process_pool
from tests.support.model import Model
from tests.support.surfaces import Lines, Wanted

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "0"))
PROCESSES = 8
KNOWN = {
    "expected_version_mismatch",
    "contention",
    *("unique", "endpoint", "cardinality", "key_conflict"),
}
"""Errors that a change concurrent with others may get."""


@pytest.mark.parametrize(
    ("fresh_place", "seconds"),
    [("local", SOAK_SECONDS or 3), ("s3", SOAK_SECONDS or 4)],
    indirect=["fresh_place"],
)
def test_changes_of_many_processes_are_as_if_one_came_after_the_other(
    fresh_place, seconds, tmp_path
):
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"SEED={seed}")
    place = fresh_place()
    graph = og.init(place.uri, SCHEMA, storage_options=place.options)
    assert not Lines().run(graph, Wanted(FIRST)).reported
    first = graph.snapshot().commit_id
    logs = [tmp_path / f"{number}.log" for number in range(PROCESSES)]
    with process_pool(PROCESSES) as pool:
        shifts = [Shift(place, str(log), seconds, seed + n) for n, log in enumerate(logs)]
        running = [pool.submit(work, shift) for shift in shifts]
        turns = [worker.result(timeout=10 * seconds + 60) for worker in running]
    attempts = [attempt for log in logs for attempt in read_log(log)]
    assert len(attempts) == sum(turns)
    refused = Counter(attempt.refused for attempt in attempts)
    print(f"{len(attempts)} attempts: {dict(refused)}")
    assert {word for codes in refused if codes for word in codes.split()} <= KNOWN

    graph = place.open()
    made = {attempt.commit: attempt for attempt in attempts if attempt.commit is not None}
    chain = [commit.id for commit in graph.commits.list()][::-1]
    assert chain.index(first) == 1, "created, then filled"
    assert set(chain[2:]) == set(made), "a commit was lost, or is there although refused"
    assert len(chain) == len(set(chain))
    assert len(made) > PROCESSES, "too few changes were made to mean something"
    for child, parent in pairwise(graph.commits.list()):
        assert child.parents == (parent.id,)
    replay(graph, [made[id_] for id_ in chain[2:]])
    assert graph.verify().ok, graph.verify().problems


def replay(graph, attempts):
    """Make the same changes one after the other, where every rule is checked in the open."""
    model = Model(graph.snapshot().catalog)
    assert not model.load(FIRST)
    for attempt in attempts:
        wanted = attempt.wanted
        if attempt.surface == "mutation":
            violations, *_ = model.mutate(wanted.steps)
        else:
            violations = model.load(wanted.steps, wanted.mode)
        assert not violations, (attempt, violations)
    assert without_ids(read_state(graph)) == without_ids(model.state)


def without_ids(state):
    """Return entities in an order in which generated ids play no part."""
    return {
        name: sorted(((None if is_generated(i) else i, row) for i, row in rows.items()), key=repr)
        for name, rows in state.items()
    }
