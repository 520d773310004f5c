"""Eight processes write one branch by the public API; its history is a serial order of it all."""

import json
import os
import random
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import omnigraph.graph as og
from tests.commit.conftest import SOAK_SECONDS
from tests.support.children import Place
from tests.support.fork_server import process_pool
from tests.support.group_history import SCHEMA, Assignment, replay, work

PROCESSES = 8
SKEWS = [timedelta(), timedelta(days=1), timedelta(days=-1), timedelta(hours=5)]
SAMPLE = 25
"""Number of commits in the middle of the history whose state is compared."""


@pytest.mark.parametrize("seconds", [5 * SOAK_SECONDS or 5])
def test_history_is_a_serial_order_of_what_was_acknowledged(seconds, tmp_path):
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"SEED={seed}")
    place = Place(str(tmp_path / "graph"))
    og.init(place.uri, SCHEMA)
    assignments = [
        Assignment(
            place=place,
            log=str(tmp_path / f"{number}.log"),
            number=number,
            seconds=seconds,
            seed=seed + number,
            skew=SKEWS[number % len(SKEWS)],
        )
        for number in range(PROCESSES)
    ]
    with process_pool(PROCESSES) as pool:
        running = [pool.submit(work, assignment) for assignment in assignments]
        attempts = sum(process.result(timeout=10 * seconds + 120) for process in running)
    logs = [
        [json.loads(line) for line in Path(assignment.log).read_text().splitlines()]
        for assignment in assignments
    ]
    changes = {entry["commit"]: entry for log in logs for entry in log if entry.get("commit")}
    outcomes = Counter(
        entry.get("refused") or ("committed" if entry["commit"] else "nothing changed")
        for log in logs
        for entry in log
    )
    print(f"{attempts} attempts: {dict(outcomes)}")
    assert attempts == sum(outcomes.values())
    check(place.open(), changes, random.Random(seed))


def check(graph, changes, chance):
    report = graph.verify()
    assert report.ok, report.problems
    chain = graph.commits.list()[::-1]
    for parent, child in pairwise(chain):
        assert child.parents == (parent.id,)
        assert child.created_at > parent.created_at
    written = [commit for commit in chain[1:] if commit.operation != "optimize"]
    assert {commit.id for commit in written} == changes.keys()
    recent = {commit.id for commit in chain[-40:]}
    shown = set(chance.sample(sorted(recent), min(SAMPLE, len(recent)))) | {chain[-1].id}
    model = {"Part": {}, "Label": {}, "Labelled": {}}
    for commit in chain:
        if commit.id in changes:
            replay(model, changes[commit.id])
        if commit.id in shown:
            assert state(graph, commit.id) == model, commit.id


def state(graph, at):
    found = {"Part": {}, "Label": {}, "Labelled": {}}
    for line in map(json.loads, graph.export(at)):
        if "edge" in line:
            found["Labelled"][line["from"]] = line["to"]
        else:
            data = line["data"]
            found[line["type"]][data["slug"]] = data.get("version", data.get("code"))
    return found
