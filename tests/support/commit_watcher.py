"""Watch a graph whose writers are killed at random moments.

It knows what every writer received before it died, so it knows what the graph must show.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta

import omnigraph.graph as og
from tests.support.children import Place, run_until_killed
from tests.support.graphs import Dump, make_graph
from tests.support.operations import (
    Line,
    Operation,
    State,
    difference,
    expected,
    observed,
    perform,
    populate,
)

KILLS_PER_GRAPH = 25
ALLOWED = ("version_reclaimed", "cleanup_running")
"""Why an old commit cannot be branched: a cleanup removed it, or died before it said what stays."""


def kill_writers(places: Sequence[Place], seed: int, kills: int, longest_life: float) -> int:
    """Kill one writer after the other and check each time; return how many commits survived.

    A writer lives for `longest_life` seconds at most, once it has opened its graph.
    """
    chance = random.Random(seed)
    survived = 0
    for first, place in zip(range(0, kills, KILLS_PER_GRAPH), places, strict=True):
        graph = Watched(place)
        for _ in range(first, min(first + KILLS_PER_GRAPH, kills)):
            graph.kill_once(chance.getrandbits(32), chance.uniform(0, longest_life))
        survived += len(graph.rows_at)
    return survived


class Watched:
    """A graph, and the results that its writers received."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.rows_at: dict[str, Dump] = {}
        self.number = 1
        self._believe(observed(populate(make_graph(place.uri, place.options))))

    def kill_once(self, seed: int, delay: float) -> None:
        """Let a writer work and die, and check everything."""
        unanswered: Operation | None = None
        for word, operation, answer in run_until_killed(self.place, seed, self.number, delay):
            unanswered = operation if word == "begin" else None
            self.number = operation.number + 1
            if word == "done":
                self._believe(self._after(operation, answer))
            assert word != "refused" or answer in ALLOWED, (operation, answer)
        graph = self.place.open()
        self._check(graph, unanswered)
        self._write(graph)
        if unanswered is not None and unanswered.kind == "intent":
            graph.recover(stale_after=timedelta(0))
            self._check(graph, unanswered)

    def _believe(self, state: State) -> None:
        """Take a state as the present one, and remember what its heads showed."""
        self.state = state
        self.rows_at |= {line.commits[0]: line.rows for line in state.branches.values()}

    def _after(self, operation: Operation, commit_id: str = "new") -> State:
        """Return what an operation makes of the present state."""
        if operation.kind != "branch" or operation.source in self.state.branches:
            return expected(self.state, operation, commit_id)
        commits = self.state.branches[operation.branch].commits
        since = commits[commits.index(operation.source) :]
        fork = Line(None, since, self.rows_at[operation.source])
        return expected(self.state, operation, fork=fork)

    def _check(self, graph: og.Graph, unanswered: Operation | None) -> None:
        """Compare the graph with what was said; one operation more may have landed."""
        found = observed(graph)
        wrong = difference(found, self.state)
        if unanswered is not None and wrong:
            landed = difference(found.known_as_new(self.state), self._after(unanswered))
            wrong = landed and [*wrong, f"and, had {unanswered} landed:", *landed]
        assert not wrong, "\n".join(wrong)
        verification = graph.verify()
        assert verification.ok, (unanswered, verification.problems)
        self._believe(found)

    def _write(self, graph: og.Graph) -> None:
        """Write as if nothing had happened."""
        operation = Operation("upsert", self.number)
        self.number += 1
        self._believe(self._after(operation, perform(graph, operation)))
