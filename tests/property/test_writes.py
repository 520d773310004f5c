"""Random writes of a graph and of a model that is nothing but dictionaries agree, always.

`SOAK_SECONDS` asks for more, with new luck each time; `SEED` repeats it.
"""

import atexit
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

import omnigraph.graph as og
from omnigraph.storage import row_lookup
from omnigraph.write import ids, staging
from tests.support.changes import Delete, Put, Set, Where, read_state
from tests.support.effort import examples
from tests.support.indexes import index_ids
from tests.support.model import Model
from tests.support.surfaces import Changes, Columns, Inexpressible, Lines, Mutation, Wanted

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "0"))
SCHEMA = """
node Person {
  name: String @key
  age: I32?
  mood: enum(calm, glad)?
  email: String? @unique
  born: Date?
  weight: F32? @unique
  @range(age, 0..9)
  @check(name, "^[a-z]")
  @unique(born, mood)
}
node Note { text: String  rank: I64? @unique  seen: DateTime?  tags: [String]? }
edge Knows: Person -> Person @card(0..2) { since: DateTime?  how: enum(kin, work)? }
edge Likes: Person -> Person { @unique(src, dst) }
edge Owns: Person -> Note @card(1..) { share: F64? }
edge About: Note -> Note
edge Rates: Person -> Note @card(0..3) @key(src, dst, stars) { stars: F32  why: String? @unique }
"""
NAMES, NOTES = ("a", "b", "c", "d"), ("n1", "n2", "n3")
POOLS = {
    "Person": {
        "name": NAMES,
        "age": (None, 0, 1, 9),
        "mood": (None, "calm", "glad"),
        "email": (None, None, "x", "y", "it's", "z", "w"),
        "born": (None, None, "2020-01-01", "2020-01-02", "2020-01-03"),
        "weight": (None, None, 0.0, -0.0, 0.1, 0.2, 5),
    },
    "Note": {
        "id": (None, *NOTES),
        "text": ("t", "u"),
        "rank": (None, None, 1, 2, 2**53 + 1, 2**53 + 2),
        "seen": (None, "2024-05-01T12:00:00.001Z", "2024-05-01T12:00:00.002Z"),
        "tags": (None, [], ["a", "b"]),
    },
    "Knows": {
        "id": (None, None, "e1", "e2", "e3"),
        "src": NAMES,
        "dst": NAMES,
        "since": (None, "2024-05-01T12:00:00.001Z"),
        "how": (None, "kin", "work"),
    },
    "Likes": {"id": (None, "l1", "l2"), "src": NAMES, "dst": NAMES},
    "Owns": {"id": (None, "o1", "o2"), "src": NAMES, "dst": NOTES, "share": (None, 0.5, 1)},
    "About": {"id": (None, "a1"), "src": NOTES, "dst": NOTES},
    "Rates": {"src": NAMES, "dst": NOTES, "stars": (0.0, -0.0, 0.5), "why": (None, "x", "y")},
}
"""Few values of each property, so that they meet."""
WRONG = {
    "Person": {"name": ("UP", None), "age": (10, -1), "mood": ("sad",)},
    "Note": {"text": (None,)},
    "Knows": {"src": ("z",), "how": ("luck",)},
    "Likes": {"dst": ("n1",)},
    "Owns": {"dst": ("n9",)},
    "About": {"src": ("a",)},
    "Rates": {"stars": (None,), "dst": ("n9",)},
}
"""Values that break a rule whatever else there is."""
SELDOM = 30
"""One put in so many is given a wrong value."""
FIRST = (
    *(Put("Person", {"name": name}) for name in NAMES[:3]),
    *(Put("Note", {"id": id_, "text": "t"}) for id_ in NOTES[:2]),
    Put("Owns", {"id": "o1", "src": "a", "dst": "n1"}),
    Put("Knows", {"id": "e1", "src": "a", "dst": "b"}),
)
KEPT = {"Person": ("name",), "Note": ("text",), "Knows": ("src", "dst"), "Likes": ("src", "dst")}
KEPT |= {"Owns": ("src", "dst"), "About": ("src", "dst"), "Rates": ("src", "dst", "stars")}
"""What a put always gives."""
SETTABLE = {
    "Person": ("age", "mood", "email", "born", "weight"),
    "Note": ("text", "rank", "seen", "tags"),
    "Knows": ("since", "how"),
    "Owns": ("share",),
    "Rates": ("why",),
}
TESTABLE = {
    "Person": ("name", "age", "mood", "email", "born", "weight"),
    "Note": ("id", "text", "rank", "seen"),
    "Knows": ("id", "src", "dst", "since", "how"),
    "Likes": ("id", "src", "dst"),
    "Owns": ("src", "dst", "share"),
    "About": ("id", "src", "dst"),
    "Rates": ("src", "dst", "stars", "why"),
}
OPERATORS = ("=", "=", "=", "!=", "<", "<=", ">", ">=")
TYPES = ("Person", "Person", "Person", "Note", "Note", "Knows", "Knows", "Likes", "Owns", "About")
TYPES += ("Rates", "Rates")


@st.composite
def puts(draw, ids=True):
    """Draw an entity; it lacks some values, and rarely has wrong ones."""
    name = draw(st.sampled_from(TYPES))
    values = {}
    for column, pool in POOLS[name].items():
        if column == "id" and not ids:
            continue
        if column in KEPT[name] or draw(st.booleans()):
            value = draw(st.sampled_from(pool))
            if column != "id" or value is not None:
                values[column] = value
    if draw(st.integers(0, SELDOM)) == SELDOM:
        column = draw(st.sampled_from(tuple(WRONG[name])))
        values[column] = draw(st.sampled_from(WRONG[name][column]))
    return Put(name, values)


@st.composite
def asked(draw, name):
    """Draw what an update or delete asks for."""
    columns = draw(st.lists(st.sampled_from(TESTABLE[name]), min_size=1, max_size=2, unique=True))
    return tuple(
        Where(column, draw(st.sampled_from(OPERATORS)), draw(st.sampled_from(POOLS[name][column])))
        for column in columns
    )


@st.composite
def updates(draw):
    """Draw an update."""
    name = draw(st.sampled_from(tuple(SETTABLE)))
    columns = draw(st.lists(st.sampled_from(SETTABLE[name]), min_size=1, max_size=2, unique=True))
    values = {column: draw(st.sampled_from(POOLS[name][column])) for column in columns}
    return Set(name, values, draw(asked(name)))


@st.composite
def deletes(draw):
    """Draw a delete."""
    name = draw(st.sampled_from(tuple(TESTABLE)))
    return Delete(name, draw(asked(name)))


def few(step, most):
    return st.lists(step, min_size=1, max_size=most).map(tuple)


@cache
def empty_graph():
    """Return the folder of a graph without entities, to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="writes-"))
    atexit.register(shutil.rmtree, folder)
    og.init(folder / "graph", SCHEMA)
    return folder / "graph"


class Writes(RuleBasedStateMachine):
    """A graph beside a model of each of its branches."""

    outcomes: ClassVar[Counter[str]] = Counter()

    @initialize(large=st.booleans())
    def start(self, large):
        """Begin with a few entities; `large` does what is done when there are many."""
        self.patches = pytest.MonkeyPatch()
        if large:
            self.patches.setattr(row_lookup, "LOOKUP_CHUNK", 0)
            self.patches.setattr(row_lookup, "SCAN_FACTOR", 1_000_000)
            self.patches.setattr(ids, "JOIN_MIN_IDS", 0)
            self.patches.setattr(staging, "PARALLEL_MIN_ROWS", 0)
        self.folder = Path(tempfile.mkdtemp(prefix="writes-"))
        shutil.copytree(empty_graph(), self.folder / "graph")
        self.graph = og.open(self.folder / "graph")
        self.models = {"main": Model(self.graph.snapshot().catalog)}
        self.branch = "main"
        self.heads = {"main": self.graph.snapshot().commit_id}
        self.states = {"main": read_state(self.graph)}
        self.load(FIRST, "merge", Lines())

    def teardown(self):
        if hasattr(self, "folder"):
            assert self.graph.verify().ok
            shutil.rmtree(self.folder)
            self.patches.undo()

    @property
    def model(self):
        return self.models[self.branch]

    @rule(steps=few(st.one_of(puts(ids=False), puts(ids=False), updates()), 4))
    def mutate(self, steps):
        self._mutate(steps)

    @rule(steps=few(deletes(), 3))
    def remove(self, steps):
        self._mutate(steps)

    def _mutate(self, steps):
        verdict = Mutation().run(self.graph, Wanted(steps), self.branch)
        reported, *affected = self.model.mutate(steps)
        assert verdict.reported == reported, verdict.messages
        if not reported:
            assert verdict.affected == tuple(affected)
        self._landed(not reported and any(affected))

    @rule(
        given=few(puts(), 6),
        mode=st.sampled_from(("merge", "merge", "append", "overwrite")),
        surface=st.sampled_from((Lines(), Columns(), Changes())),
    )
    def load(self, given, mode, surface):
        self._load(Wanted(given, mode), surface)

    @rule(given=few(puts(), 3), surface=st.sampled_from((Lines(), Columns())))
    def patch(self, given, surface):
        self._load(Wanted(given, partial=True), surface)

    def _load(self, wanted, surface):
        try:
            verdict = surface.run(self.graph, wanted, self.branch)
        except Inexpressible:
            return
        reported = self.model.load(wanted.steps, wanted.mode, partial=wanted.partial)
        assert verdict.reported == reported, verdict.messages
        self._landed(not reported)

    def _landed(self, did):
        """Compare the graph with the model; there is a commit exactly when there was a change."""
        self.outcomes["made" if did else "not made"] += 1
        found = read_state(self.graph, self.branch)
        self.model.adopt(found)
        assert found == self.model.state
        for name in set(self.models) - {self.branch}:
            assert self.graph.snapshot(name).commit_id == self.heads[name]
        head = self.graph.snapshot(self.branch).commit_id
        changed = did and found != self.states[self.branch]
        assert (head != self.heads[self.branch]) == changed
        self.heads[self.branch], self.states[self.branch] = head, found

    @rule()
    def index(self):
        self.heads[self.branch] = index_ids(self.graph, self.branch).id
        self._landed(False)

    @rule()
    def reopen(self):
        self.graph = og.open(self.graph.uri)

    @rule(number=st.integers(0, 2))
    def switch(self, number):
        """Go to another branch, made when there are few."""
        name = f"branch{number}" if number else "main"
        if name not in self.models:
            self.graph.branches.create(name, self.branch)
            self.models[name] = self.model.copy()
            self.heads[name] = self.heads[self.branch]
            self.states[name] = self.states[self.branch]
        self.branch = name
        self._landed(False)


BOUNDED = settings(
    max_examples=examples(10),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_random_writes_agree_with_a_model_of_dictionaries():
    run_state_machine_as_test(Writes, settings=BOUNDED)
    first = int(os.environ.get("SEED", random.randrange(1 << 32)))
    end, number = time.monotonic() + SOAK_SECONDS, first
    while time.monotonic() < end:
        print(f"SEED={number}: {dict(Writes.outcomes)}")
        luck = settings(BOUNDED, derandomize=False, database=None, max_examples=50)
        run_state_machine_as_test(seed(number)(Writes), settings=luck)
        number += 1
