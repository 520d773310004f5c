"""Merges by processes that die, and by many that merge, write, compact and clean up at once."""

import os
import random
import time
from contextlib import suppress
from datetime import timedelta

import pytest

import omnigraph.graph as og
from omnigraph.errors import Contention, ExpectedVersionMismatch
from tests.concurrency.test_changes_crash import BOTH, MORE, MOST_STEPS, SOAK, outcomes
from tests.concurrency.test_changes_race import without_ids
from tests.support.change_workers import FIRST, SCHEMA, run_to_step
from tests.support.changes import Put, read_state
from tests.support.fork_server import process_pool
from tests.support.surfaces import Lines, Wanted

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "0"))
ELSEWHERE = Wanted((Put("Person", {"name": "p2", "age": 77}),))


@pytest.mark.parametrize(
    ("fresh_place", "moved"),
    [("local", False), ("local", True), *([("s3", True)] if SOAK else [])],
    indirect=["fresh_place"],
)
def test_killed_while_merging_leaves_the_old_or_the_new_state(fresh_place, moved, templates):
    def build(uri, options):
        graph = og.init(uri, SCHEMA, storage_options=options)
        assert not Lines().run(graph, Wanted((*FIRST, *MORE))).reported
        graph.branches.create("side")
        assert not Lines().run(graph, Wanted(BOTH), "side").reported
        if moved:
            assert not Lines().run(graph, ELSEWHERE).reported
        return outcomes(graph, "ndjson", Wanted(BOTH))

    seen = set()
    for step in range(MOST_STEPS):
        place = fresh_place()
        before, after = templates.copy(("merges", moved), build, place.uri, place.options)

        stopped_at = run_to_step(place, "merge", Wanted(BOTH), step)

        graph = place.open()
        state = without_ids(read_state(graph))
        assert state in (before, after), stopped_at
        assert graph.verify().ok, (stopped_at, graph.verify().problems)
        seen |= {word for word, one in (("old", before), ("new", after)) if state == one}
        outcome = graph.merge("side").outcome
        assert (outcome == "already_up_to_date") == (state == after), stopped_at
        assert without_ids(read_state(place.open())) == after
        if stopped_at is None:
            break
    assert stopped_at is None, "the last child was not killed, so there are no more steps"
    assert step >= 4, "too few steps to mean something"
    assert seen == {"old", "new"}


def agent(place, number, seconds, seed):
    """Work on branches of its own and merge them; return the people that surely are in main."""
    graph, chance = place.open(), random.Random(seed)
    end, made, turn = time.monotonic() + seconds, {}, 0
    while not made or time.monotonic() < end:
        turn += 1
        branch = f"agent-{number}-{turn}"
        name, email = f"a{number}-{turn}", f"a{number}-{turn}@x"
        try:
            graph.branches.create(branch)
            graph.load({"Person": [{"name": name, "email": email}]}, branch=branch)
            if made and chance.random() < 0.3:
                old = chance.choice(sorted(made))
                graph.load(
                    {"Person": [{"name": old, "email": made[old], "age": turn}]}, branch=branch
                )
            if graph.merge(branch, delete_branch=True).commit is not None:
                made[name] = email
        except (Contention, ExpectedVersionMismatch):
            continue
    return made


def writer(place, seconds):
    """Insert into main directly."""
    graph, end, made = place.open(), time.monotonic() + seconds, {}
    while not made or time.monotonic() < end:
        name = f"w{len(made)}"
        graph.load({"Person": [{"name": name, "email": name}]})
        made[name] = name
    return made


def keeper(place, seconds):
    """Compact and clean up all the time."""
    graph, end, rounds = place.open(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with suppress(Contention, ExpectedVersionMismatch):
            graph.optimize()
            graph.cleanup(keep=3, older_than=timedelta(seconds=1), confirm=True)
        rounds += 1
    return {f"round {number}": "" for number in range(rounds)}


def test_agents_merge_concurrently_with_writers_and_maintenance(tmp_path, fresh_local):
    place, seconds = fresh_local(), SOAK_SECONDS or 6
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"SEED={seed}")
    graph = og.init(place.uri, SCHEMA)
    assert not Lines().run(graph, Wanted(FIRST)).reported
    with process_pool(5) as pool:
        agents = [pool.submit(agent, place, n, seconds, seed + n) for n in range(3)]
        others = [pool.submit(job, place, seconds) for job in (writer, keeper)]
        made = [job.result(timeout=10 * seconds + 60) for job in (*agents, *others)]
    graph = place.open()
    people = read_state(graph)["Person"]
    for name, email in (item for people_of in made[:4] for item in people_of.items()):
        assert people[name]["email"] == email
    assert all(made), "a process did nothing"
    assert graph.verify().ok, graph.verify().problems
    assert graph.branches.list() == ["main"] or all(
        name.startswith("agent-") for name in graph.branches.list() if name != "main"
    )
    print({n: len(m) for n, m in enumerate(made)})
