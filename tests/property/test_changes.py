"""What a graph tells of its changes is what dictionaries beside each other show, always.

`SOAK_SECONDS` asks for more, with new luck each time; `SEED` repeats it.
"""

import atexit
import copy
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
    precondition,
    rule,
    run_state_machine_as_test,
)

import omnigraph.graph as og
from omnigraph.changes import Limits, type_delta
from omnigraph.merge.conflicts import MergeConflicts
from tests.support.changes import Delete, Put, Where, read_state
from tests.support.differences import apply, difference, exactly, read_lines
from tests.support.effort import examples
from tests.support.model import Model
from tests.support.surfaces import Lines, Mutation, Wanted

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", "0"))
SCHEMA = """
node Thing {
  text: String?  flag: Bool?  mood: enum(calm, glad)?
  small: I32?  large: I64?  count: U32?  total: U64?  half: F32?  real: F64?
  day: Date?  moment: DateTime?  place: Vector(2)?  body: Blob?
  texts: [String]?  flags: [Bool]?  numbers: [I64]?  reals: [F64]?  days: [Date]?
  moments: [DateTime]?
}
node Named { name: String @key  note: String? }
edge Ties: Thing -> Named { since: Date?  weight: F64? }
edge Links: Named -> Named
"""
IDS, NAMES = ("t1", "t2", "t3", "ü", "T1"), ("a", "b", "\U0001f600", "\uffee")
"""Ids whose order by bytes is not that by UTF-16 or by case."""
POOLS = {
    "Thing": {
        "text": (None, "", "x", "null"),
        "flag": (None, False, True),
        "mood": (None, "calm", "glad"),
        "small": (None, 0, -1),
        "large": (None, 2**53 + 1, 2**53 + 2),
        "count": (None, 0, 2**32 - 1),
        "total": (None, 0, 2**63),
        "half": (None, 0.0, -0.0, 0.1),
        "real": (None, 0.0, -0.0, 0.1, 1),
        "day": (None, "2020-01-01", "1969-12-31"),
        "moment": (None, "2024-05-01T12:00:00.001Z", "2024-05-01T12:00:00.002Z"),
        "place": (None, [0.0, 1.0], [-0.0, 1.0], [0.1, 1.0]),
        "body": (None, "base64:", "base64:aGk=", "base64:aGo="),
        "texts": (None, [], [""], ["", ""], ["a", "b"], ["ab"]),
        "flags": (None, [], [True], [False]),
        "numbers": (None, [], [2**53 + 1], [2**53 + 2]),
        "reals": (None, [], [0.0], [-0.0]),
        "days": (None, [], ["2020-01-01"]),
        "moments": (None, [], ["2024-05-01T12:00:00.001Z"], ["2024-05-01T12:00:00.002Z"]),
    },
    "Named": {"note": (None, "", "n")},
    "Ties": {"since": (None, "2020-01-01"), "weight": (None, 0.5)},
    "Links": {},
}
FIRST = (
    *(Put("Thing", {"id": id_}) for id_ in IDS[:3]),
    *(Put("Named", {"name": name}) for name in NAMES[:3]),
    Put("Ties", {"id": "e1", "src": "t1", "dst": "a"}),
    Put("Links", {"id": "l1", "src": "a", "dst": "b"}),
)
FIXED = {
    "Thing": {"id": IDS},
    "Named": {"name": NAMES},
    "Ties": {"id": ("e1", "e2", "e3"), "src": IDS, "dst": NAMES},
    "Links": {"id": ("l1", "l2"), "src": NAMES, "dst": NAMES},
}
KINDS, TYPES, OPS = ("node", "edge"), tuple(POOLS), ("insert", "update", "delete")


@st.composite
def puts(draw):
    """Draw an entity, most of whose values are null."""
    name = draw(st.sampled_from(("Thing", "Thing", "Thing", "Named", "Ties", "Links")))
    values = {column: draw(st.sampled_from(pool)) for column, pool in FIXED[name].items()}
    if POOLS[name]:
        for column in draw(st.lists(st.sampled_from(tuple(POOLS[name])), max_size=3, unique=True)):
            values[column] = draw(st.sampled_from(POOLS[name][column]))
    return Put(name, values)


@st.composite
def deletes(draw):
    """Draw the delete of one entity and what hangs on it."""
    name = draw(st.sampled_from(TYPES))
    column = "name" if name == "Named" else "id"
    return Delete(name, (Where(column, "=", draw(st.sampled_from(FIXED[name][column]))),))


@st.composite
def scopes(draw):
    """Draw what somebody asks for."""
    return {
        name: draw(st.lists(st.sampled_from(pool), max_size=2))
        for name, pool in (("kinds", KINDS), ("types", TYPES), ("ops", OPS))
    }


def asks_for(scope, change):
    """Return whether a change, as JSON, is asked for."""
    asked = {"kind": scope["kinds"], "type": scope["types"], "op": scope["ops"]}
    return all(not wanted or change[name] in wanted for name, wanted in asked.items())


limits = st.builds(
    lambda changes, size, commits: Limits(changes=changes, bytes=size, commits=commits),
    st.sampled_from((1, 2, 3, 1000)),
    st.sampled_from((1, 400, 4_000_000)),
    st.sampled_from((1, 2, 128)),
)


@cache
def empty_graph():
    """Return the folder of a graph without entities, to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="changes-"))
    atexit.register(shutil.rmtree, folder)
    og.init(folder / "graph", SCHEMA)
    return folder / "graph"


class Reader:
    """Keeps a copy of a branch from a baseline and the changes after it."""

    def __init__(self, graph, branch):
        self.branch = branch
        baseline = graph.changes.baseline(branch=branch)
        self.state = read_lines(baseline.lines, graph.snapshot().catalog)
        self.commit = baseline.snapshot_commit_id
        self.cursor = baseline.resume_cursor

    def poll(self, graph, sizes):
        """Read up to a cursor; return whether that is the head."""
        page = graph.changes.poll(branch=self.branch, cursor=self.cursor, limits=sizes)
        return self.read(graph, page, sizes)

    def read(self, graph, page, sizes):
        """Read a page and those that belong to it."""
        while True:
            assert (page.cursor is None) == (page.next_page_token is not None)
            for block in page.blocks:
                apply(self.state, block.changes)
                self.commit = block.commit.id
            if page.cursor is not None:
                self.cursor = page.cursor
                return page.caught_up
            token = page.next_page_token
            page = graph.changes.poll(branch=self.branch, page_token=token, limits=sizes)


class Changes(RuleBasedStateMachine):
    """A graph beside a model of every state it ever had."""

    outcomes: ClassVar[Counter[str]] = Counter()

    @initialize(large=st.booleans())
    def start(self, large):
        """Begin with a few entities; `large` does what is done when many were rewritten."""
        self.patches = pytest.MonkeyPatch()
        if large:
            self.patches.setattr(type_delta, "REWRITTEN_ROWS_THRESHOLD", 0)
        self.patches.setattr(type_delta, "ENTITY_BATCH", 3)
        self.patches.setattr(type_delta, "BLOB_ENTITY_BATCH", 2)
        self.folder = Path(tempfile.mkdtemp(prefix="changes-"))
        shutil.copytree(empty_graph(), self.folder / "graph")
        self.graph = og.open(self.folder / "graph")
        self.catalog = self.graph.snapshot().catalog
        self.models = {"main": Model(self.catalog)}
        self.branch = "main"
        self.states, self.readers, self.written = {}, [], False
        self._note()
        self.load(FIRST, "merge")

    def teardown(self):
        if hasattr(self, "folder"):
            for reader in self.readers:
                self._read(reader, Limits())
            for branch in self.models:
                self._replay(branch)
            shutil.rmtree(self.folder)
            self.patches.undo()

    def _replay(self, branch):
        """Follow a branch from its beginning in small pages; compare all it was with its head."""
        first, reader = min(self.states), Reader(self.graph, branch)
        reader.state, reader.commit = copy.deepcopy(self.states[first]), first
        page = self.graph.changes.poll(branch=branch, start="beginning", limits=Limits(commits=1))
        reader.read(self.graph, page, Limits(changes=2))
        self._read(reader, Limits(changes=2))
        head = self.graph.snapshot(branch).commit_id
        for commit_id in self.states:
            self._compare(commit_id, head)

    def _note(self):
        """Remember what the state of the branch should be."""
        head = self.graph.snapshot(self.branch).commit_id
        if head not in self.states:
            self.states[head] = copy.deepcopy(self.models[self.branch].state)

    @rule(
        given=st.lists(puts(), min_size=1, max_size=5), mode=st.sampled_from(("merge", "overwrite"))
    )
    def load(self, given, mode):
        given = {(put.type, put.values.get("id") or put.values["name"]): put for put in given}
        wanted = Wanted(tuple(given.values()), mode)
        verdict = Lines().run(self.graph, wanted, self.branch)
        reported = self.models[self.branch].load(wanted.steps, mode)
        assert verdict.reported == reported, verdict.messages
        self.outcomes["refused" if reported else "loaded"] += 1
        self.written = True
        self._note()

    @rule(given=st.lists(puts(), min_size=1, max_size=2))
    def change(self, given):
        self.load(given, "merge")

    @rule(steps=st.lists(deletes(), min_size=1, max_size=2).map(tuple))
    def remove(self, steps):
        Mutation().run(self.graph, Wanted(steps), self.branch)
        self.models[self.branch].mutate(steps)
        self._note()

    @precondition(lambda self: self.written)
    @rule(compacting=st.booleans())
    def upkeep(self, compacting):
        on = {"branch": self.branch}
        made = self.graph.optimize(**on) if compacting else self.graph.indexes.ensure(**on)
        self.outcomes["optimized" if made.commit else "all was well"] += 1
        self.written = False
        self._note()

    @rule()
    def reopen(self):
        self.graph = og.open(self.graph.uri)

    @rule(number=st.integers(0, 2), data=st.data())
    def switch(self, number, data):
        """Go to another branch, made at any state there was."""
        name = f"branch{number}" if number else "main"
        if name not in self.models:
            commit_id = data.draw(st.sampled_from(sorted(self.states)))
            self.graph.branches.create(name, commit_id)
            self.models[name] = Model(self.catalog, copy.deepcopy(self.states[commit_id]))
        self.branch = name

    @precondition(lambda self: len(self.models) > 1)
    @rule(data=st.data())
    def merge(self, data):
        """Merge another branch, which wins; what that comes to is the business of other tests."""
        source = data.draw(st.sampled_from(sorted(set(self.models) - {self.branch})))
        try:
            made = self.graph.merge(source, self.branch, resolve="source")
        except MergeConflicts:
            self.outcomes["not merged"] += 1
            return
        self.outcomes[str(made.outcome)] += 1
        self.models[self.branch].state = read_state(self.graph, self.branch)
        self._note()

    @rule(data=st.data(), scope=scopes())
    def compare(self, data, scope):
        """Compare any two states, in both directions."""
        one, other = (data.draw(st.sampled_from(sorted(self.states))) for _ in range(2))
        self._compare(one, other)
        self._compare(other, one)
        expected = difference(self.catalog, self.states[one], self.states[other])
        some = [c.to_json() for c in self.graph.diff(one, other, **scope)]
        assert exactly(some) == exactly([c for c in expected if asks_for(scope, c)])
        self.outcomes["changes" if expected else "no change"] += 1

    def _compare(self, one, other):
        old, new = self.states[one], self.states[other]
        forth = list(self.graph.diff(one, other))
        expected = difference(self.catalog, old, new)
        assert exactly([c.to_json() for c in forth]) == exactly(expected)
        copied = copy.deepcopy(old)
        apply(copied, forth)
        assert exactly(copied) == exactly(new)

    @rule(data=st.data(), scope=scopes(), sizes=limits)
    def commit(self, data, scope, sizes):
        """Read what a commit changed, in pages of any size."""
        commit = self.graph.commits.get(data.draw(st.sampled_from(sorted(self.states))))
        if not commit.parents:
            return
        found, token = [], None
        while True:
            page = self.graph.commits.changes(commit.id, **scope, page_token=token, limits=sizes)
            assert 1 <= len(page.changes) <= sizes.changes or not found
            found += page.changes
            token = page.next_page_token
            if token is None:
                break
        assert [self._order(c) for c in found] == sorted(self._order(c) for c in found)
        old, new = self.states[commit.parents[0]], self.states[commit.id]
        expected = difference(self.catalog, old, new)
        reported = sorted(exactly({**c.to_json(), "type": c.type}) for c in found)
        assert reported == sorted(exactly(c) for c in expected if asks_for(scope, c))

    @staticmethod
    def _order(change):
        return change.kind == "edge", change.type_id, change.id.encode()

    @rule()
    def baseline(self):
        """Let another reader begin, here and now."""
        reader = Reader(self.graph, self.branch)
        assert exactly(reader.state) == exactly(self.states[reader.commit])
        self.readers.append(reader)

    @rule(data=st.data(), sizes=limits)
    def poll(self, data, sizes):
        """Let a reader go on; it sees exactly the states there were."""
        if self.readers:
            reader = data.draw(st.sampled_from(self.readers))
            caught_up = reader.poll(self.graph, sizes)
            assert exactly(reader.state) == exactly(self.states[reader.commit])
            head = self.graph.snapshot(reader.branch).commit_id
            assert caught_up == (reader.commit == head)

    def _read(self, reader, sizes):
        while not reader.poll(self.graph, sizes):
            pass
        assert exactly(reader.state) == exactly(self.models[reader.branch].state)


BOUNDED = settings(
    max_examples=examples(10),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_changes_reported_are_those_dictionaries_show():
    run_state_machine_as_test(Changes, settings=BOUNDED)
    first = int(os.environ.get("SEED", random.randrange(1 << 32)))
    end, number = time.monotonic() + SOAK_SECONDS, first
    while time.monotonic() < end:
        print(f"SEED={number}: {dict(Changes.outcomes)}")
        luck = settings(BOUNDED, derandomize=False, database=None, max_examples=50)
        run_state_machine_as_test(seed(number)(Changes), settings=luck)
        number += 1
