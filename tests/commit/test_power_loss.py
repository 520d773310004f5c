"""A power failure at any moment loses no acknowledged commit and leaves a graph that works.

A child process records what it synced and is killed at one of its steps; then contents and names
that it did not sync are lost, in several ways. `POWER_LOSSES=n` runs n losses of each scenario.
"""

import itertools
import os
import random
import shutil
import signal
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.errors import NotFound
from tests.support.children import drain, finish, start
from tests.support.group_writers import change, check_writers
from tests.support.power_loss import MODES, Disk, Unstable, find_unstable, lose
from tests.support.power_loss_runs import (
    LATER,
    SCENARIOS,
    SCHEMA,
    expected_states,
    run,
    start_graph,
    state,
)

LOSSES = int(os.environ.get("POWER_LOSSES") or 2)
"""Losses per scenario."""
LOSSES_PER_KILL = 1 if LOSSES < 20 else 3
SEED = int(os.environ.get("SEED") or 0)


@dataclass(frozen=True, slots=True)
class Remains:
    """What a process left: its folder, what is not stable there, and what it acknowledged.

    `steps` is the number of its steps, None if it was killed.
    """

    base: Path
    unstable: list[Unstable]
    acknowledged: list
    steps: int | None


class Lab:
    """Performs a scenario in processes that are killed, each in a new folder."""

    def __init__(self, folder, kind):
        self._folder, self._kind, self._count = folder, kind, 0
        self._template = self.new()
        self._template.mkdir()
        start_graph(f"{self._template}/graph", kind)

    def new(self):
        """Return a path that does not exist."""
        self._count += 1
        return self._folder / str(self._count)

    def copy(self):
        """Return a copy of what the scenario starts with."""
        target = self.new()
        shutil.copytree(self._template, target)
        return target

    def kill_at(self, step, durability="full", then=None):
        """Perform the scenario in a process that dies at a step; -1 lets it end.

        Another process performs the scenario `then` to its end.
        """
        base, shadow = self.copy(), self.new()
        shadow.mkdir()
        log = shadow / "log"
        log.touch()
        disk = Disk.of(base, shadow)
        where = (str(base), str(log), str(shadow))
        code, reports = perform(where, self._kind, step, durability)
        # The number of steps differs a little: folders that changed lately are synced more often.
        assert code in (0, -signal.SIGKILL), reports
        steps = reports.pop() if code == 0 else None
        if then is not None:
            assert perform(where, then, -1, durability)[0] == 0
        disk.apply(log)
        return Remains(base, list(find_unstable(base, disk, shadow)), reports, steps)

    def losses(self):
        """Yield graphs after a power failure, what was acknowledged before it, and what was lost.

        The first process has returned from all its calls; the others die at steps that are spread
        over the scenario.
        """
        chance = random.Random(f"{SEED} {self._kind}")
        remains, count = self.kill_at(-1), 0
        steps, kills = remains.steps, max(-(-LOSSES // LOSSES_PER_KILL) - 1, 1)
        for kill in itertools.count():
            modes = [*MODES, *(chance.randrange(10**6) for _ in MODES)]
            for mode in chance.sample(modes, LOSSES_PER_KILL):
                target = self.new()
                shutil.copytree(remains.base, target)
                lost = lose(target, remains.unstable, mode)
                yield f"{target}/graph", remains, (mode, lost)
                shutil.rmtree(target)
                count += 1
                if count == LOSSES:
                    return
            remains = self.kill_at(int((kill + chance.random()) * steps / kills))


def perform(where, kind, step, durability):
    """Perform a scenario in a process; return its exit code and its reports."""
    process, connection = start(run, where, kind, step, durability)
    code = finish(process)
    reports = drain(connection)
    connection.close()
    return code, reports


@pytest.mark.parametrize("kind", [kind for kind in SCENARIOS if kind != "later"])
def test_acknowledged_changes_survive_and_the_next_is_old_or_new(kind, tmp_path):
    lab = Lab(tmp_path, kind)
    states = expected_states(f"{lab.copy()}/graph", kind)
    for uri, remains, lost in lab.losses():
        done = len(remains.acknowledged)
        allowed = states[done : done + 2]
        assert state(og.open(uri, mode="ro")) in allowed, lost
        graph = og.open(uri)
        assert state(graph) in allowed, lost
        assert graph.verify().ok, (lost, graph.verify().problems)
        graph.recover(stale_after=timedelta(0))
        graph.mutate(LATER)
        after = state(og.open(uri))["branches"]["main"]
        assert '"later"' in "".join(after[1]), lost
        assert after[0] == state(graph)["branches"]["main"][0], lost


def test_acknowledged_commits_of_a_group_survive(tmp_path):
    for uri, remains, lost in Lab(tmp_path, "group").losses():
        graph = og.open(uri)
        assert check_writers(graph, remains.acknowledged), lost
        assert change(graph, "later", 0) == graph.snapshot().commit_id


def test_interrupted_creation_leaves_a_graph_or_none(tmp_path):
    for uri, remains, lost in Lab(tmp_path, "init").losses():
        try:
            graph = og.open(uri)
        except NotFound:
            assert not remains.acknowledged, lost
            graph = og.init(uri, SCHEMA)
        assert graph.verify().ok, (lost, graph.verify().problems)
        graph.mutate(LATER)
        assert len(state(og.open(uri))["branches"]["main"][1]) == 1


def test_interrupted_import_leaves_a_whole_graph_or_none(tmp_path):
    lab = Lab(tmp_path, "import")
    whole = lab.copy()
    og.import_archive(whole / "archive.tar", whole / "graph")
    expected = state(og.open(whole / "graph"))
    for uri, remains, lost in lab.losses():
        try:
            graph = og.open(uri)
        except NotFound:
            assert not remains.acknowledged, lost
            og.import_archive(Path(uri).with_name("archive.tar"), uri)
            graph = og.open(uri)
        assert state(graph) == expected, lost
        assert graph.verify().ok, (lost, graph.verify().problems)


def test_commit_on_a_version_that_a_dead_writer_did_not_sync_survives(tmp_path):
    """The process that published that version died before it could sync it."""
    lab = Lab(tmp_path, "one row")
    states = expected_states(f"{lab.copy()}/graph", "one row")
    steps = lab.kill_at(-1).steps
    stride = 1 if LOSSES > 3 else 9
    for step in range(SEED % stride, steps, stride):
        remains = lab.kill_at(step, then="later")
        lost = lose(remains.base, remains.unstable, ["names", "zeros", step][step % 3])
        graph = og.open(remains.base / "graph")
        assert graph.verify().ok, (step, lost, graph.verify().problems)
        count, rows = state(graph)["branches"]["main"]
        before = [row for row in rows if '"later"' not in row]
        assert len(before) == len(rows) - 1, (step, lost)
        done = len(remains.acknowledged)
        allowed = [one["branches"]["main"] for one in states[done : done + 2]]
        assert (count - 1, before) in allowed, (step, lost)


def test_relaxed_commit_is_lost_with_its_names(tmp_path):
    lab = Lab(tmp_path, "one row")
    states = expected_states(f"{lab.copy()}/graph", "one row")
    remains = lab.kill_at(-1, durability="relaxed")
    assert len(remains.acknowledged) == len(states) - 1
    lose(remains.base, remains.unstable, "names")
    assert state(og.open(remains.base / "graph")) == states[0]
