"""Changes that wait for a branch together land as if they had been made one after the other.

Each round holds the queue of the branch, lets several threads submit random changes, and releases
it, so that they form groups. Then a model of dictionaries repeats the changes in the order of the
commits: after each commit the graph at that commit and the model agree, also where the commit is
one of many of a manifest version. A refused change is refused by the model in one of the states
that were there meanwhile. In some rounds another process publishes changes between the preparation
of a group and its turn. `SOAK_SECONDS` asks for more, with new luck each time; `SEED` repeats it.
"""

import os
import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

import omnigraph.graph as og
from omnigraph.errors import ExpectedVersionMismatch, OmniError
from tests.property.test_writes import FIRST, NAMES, deletes, empty_graph, few, puts, updates
from tests.support.changes import Delete, Put, Where, read_state
from tests.support.effort import examples
from tests.support.graphs import clean_at_once
from tests.support.groups import make_together, other_durability, turn_of_another
from tests.support.indexes import index_ids
from tests.support.model import Model
from tests.support.surfaces import Inexpressible, Lines, Mutation, Verdict, Wanted

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "0"))

MUTATIONS = few(st.one_of(puts(ids=False), puts(ids=False), updates()), 2).map(Wanted)
DELETES = few(deletes(), 2).map(Wanted)
LOADS = st.builds(
    Wanted, few(puts(), 3), st.sampled_from(("merge", "merge", "append", "overwrite"))
)
PARTIAL_LOADS = st.builds(Wanted, few(puts(), 2), st.just("merge"), st.just(True))
# Rows that are often there already, with the same values.
REPEATS = st.builds(Wanted, few(st.one_of(puts(), st.sampled_from(FIRST)), 3), st.just("merge"))
CHANGES = st.one_of(MUTATIONS, MUTATIONS, MUTATIONS, DELETES, LOADS, PARTIAL_LOADS, REPEATS)


class Writer:
    """One change and its outcome."""

    def __init__(self, graph, wanted):
        self.graph, self.wanted = graph, wanted
        self.is_mutation = not all(isinstance(step, Put) for step in wanted.steps)
        self.verdict = self.error = None

    def __call__(self):
        surface = Mutation() if self.is_mutation else Lines()
        try:
            self.verdict = surface.run(self.graph, self.wanted)
        except Inexpressible:
            self.verdict = Verdict(Counter())
        except OmniError as error:
            self.error = error

    def repeat(self, model):
        """Make the same change in a model; return what is wrong with it."""
        if self.is_mutation:
            return model.mutate(self.wanted.steps)[0]
        return model.load(self.wanted.steps, self.wanted.mode, partial=self.wanted.partial)


class SerialOrder(RuleBasedStateMachine):
    """A graph that several threads write, beside a model."""

    outcomes: ClassVar[Counter[str]] = Counter()

    @initialize()
    def start(self):
        """Begin with a few entities."""
        self.folder = Path(tempfile.mkdtemp(prefix="serial-"))
        shutil.copytree(empty_graph(), self.folder / "graph")
        self.graph = og.open(self.folder / "graph")
        Lines().run(self.graph, Wanted(FIRST))
        self.model = Model(self.graph.snapshot().catalog, read_state(self.graph))

    def teardown(self):
        if hasattr(self, "folder"):
            report = self.graph.verify()
            assert report.ok, report
            shutil.rmtree(self.folder)

    @rule(changes=st.lists(CHANGES, min_size=2, max_size=6))
    def write_some_together(self, changes):
        self.write_together(changes)

    @rule(changes=st.lists(MUTATIONS, min_size=4, max_size=10))
    def insert_many_together(self, changes):
        self.write_together(changes)

    def write_together(self, changes):
        writers = [Writer(self.graph, wanted) for wanted in changes]
        before = self.graph.snapshot().commit_id
        for caller in make_together(self.graph, *writers):
            assert caller.error is None, caller.error
        self._check(before, writers)

    @rule(
        changes=st.lists(CHANGES, min_size=1, max_size=5),
        foreign=st.lists(CHANGES, min_size=1, max_size=3),
    )
    def write_while_another_process_publishes(self, changes, foreign):
        self.write_beside(changes, foreign)

    @rule(
        changes=st.lists(REPEATS, min_size=1, max_size=2),
        names=st.lists(st.sampled_from(NAMES[:3]), min_size=2, max_size=4),
    )
    def repeat_rows_while_another_process_deletes_them(self, changes, names):
        wheres = [Where("name", "=", name) for name in names]
        self.write_beside(changes, [Wanted((Delete("Person", (where,)),)) for where in wheres])

    def write_beside(self, changes, foreign):
        other = og.open(self.graph.uri, durability=other_durability(self.graph))
        writers = [Writer(self.graph, wanted) for wanted in changes]
        others = [Writer(other, wanted) for wanted in foreign]
        before = self.graph.snapshot().commit_id
        waiting = list(others)
        with turn_of_another(self.graph, waiting):
            for caller in make_together(self.graph, *writers):
                assert caller.error is None, caller.error
        self.outcomes["published by another process meanwhile"] += len(others) - len(waiting)
        for writer in waiting:
            writer()
        self._check(before, [*writers, *others])

    def _check(self, before, writers):
        commits = []
        for commit in self.graph.commits.list(limit=len(writers) + 1):
            if commit.id == before:
                break
            commits.insert(0, commit)
        by_commit = {w.verdict.commit: w for w in writers if w.verdict and w.verdict.commit}
        assert [c.id for c in commits] == [c.id for c in commits if c.id in by_commit]
        assert len(commits) == len(by_commit)
        states = [self.model.copy()]
        for commit in commits:
            reported = by_commit[commit.id].repeat(self.model)
            assert not reported, (commit, reported)
            found = read_state(self.graph, commit.id)
            self.model.adopt(found)
            assert found == self.model.state
            states.append(self.model.copy())
        groups = Counter(commit.manifest_version for commit in commits)
        self.outcomes.update(f"group of {size}" for size in groups.values())
        for writer in writers:
            if writer.error is not None:
                self._check_conflict(writer, commits)
            elif writer.verdict.reported:
                self.outcomes["refused"] += 1
                assert any(
                    writer.repeat(state.copy()) == writer.verdict.reported for state in states
                )

    def _check_conflict(self, writer, commits):
        """A change that may not be repeated was refused because another commit landed."""
        self.outcomes["conflict"] += 1
        assert isinstance(writer.error, ExpectedVersionMismatch), writer.error
        is_insert = all(isinstance(step, Put) for step in writer.wanted.steps)
        assert commits
        assert not is_insert or writer.wanted.mode == "overwrite"

    @rule()
    def optimize(self):
        index_ids(self.graph, "main")

    @rule()
    def compact(self):
        self.graph.optimize()

    @rule()
    def clean_up(self):
        clean_at_once(self.graph, keep=3)

    @rule()
    def reopen(self):
        self.graph = og.open(self.graph.uri)


BOUNDED = settings(
    max_examples=examples(7),
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_changes_made_together_land_in_a_serial_order():
    run_state_machine_as_test(SerialOrder, settings=BOUNDED)
    first = int(os.environ.get("SEED", random.randrange(1 << 32)))
    end, number = time.monotonic() + SOAK_SECONDS, first
    while time.monotonic() < end:
        print(f"SEED={number}: {dict(SerialOrder.outcomes)}")
        luck = settings(BOUNDED, derandomize=False, database=None, max_examples=50)
        run_state_machine_as_test(seed(number)(SerialOrder), settings=luck)
        number += 1
    groups = [name for name in SerialOrder.outcomes if name.startswith("group")]
    assert len(groups) > 2, SerialOrder.outcomes
    assert SerialOrder.outcomes["published by another process meanwhile"]
