"""What many processes change in one graph at once, and what they write down.

They share few names, so that they meet: some insert edges to nodes that others delete, some fight
for one unique value or one key. A worker that got a commit writes it down with its
commit; replaying those in the order of the commits must give the graph.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier, Event

import omnigraph.graph as og
from omnigraph.errors import OmniError
from tests.support.changes import Delete, Put, Set, Step, Where, read_state
from tests.support.children import Place, drain, finish, start
from tests.support.surfaces import Columns, Lines, Mutation, Surface, Verdict, Wanted, record

SCHEMA = """
node Person { name: String @key  email: String? @unique  age: I32? }
node Team { name: String @key  motto: String? @unique }
edge Member: Person -> Team @card(0..2) { slot: I32? @unique }
edge Knows: Person -> Person { @unique(src, dst) }
edge Leads: Person -> Team @card(1..2)
"""
PATIENCE = 600
PEOPLE = tuple(f"p{number}" for number in range(12))
TEAMS = tuple(f"t{number}" for number in range(4))
EMAILS = tuple(f"e{number}" for number in range(6))
FIRST = (
    *(Put("Person", {"name": name, "age": 0}) for name in PEOPLE),
    *(Put("Team", {"name": name}) for name in TEAMS),
)


class Forking(Lines):
    """Lines that are loaded into a branch they create."""

    name = "fork"

    def run(self, graph: og.Graph, wanted: Wanted, branch: str = "side") -> Verdict:
        """Load lines into another branch."""
        lines = [record(graph.snapshot().catalog, put) for put in wanted.puts]
        made = graph.load("\n".join(lines).encode(), branch=branch, from_="main")
        return Verdict(Counter(), commit=None if made.commit is None else made.commit.id)


class Merging(Lines):
    """The merge of a branch that has the change already."""

    name = "merge"

    def run(self, graph: og.Graph, wanted: Wanted, branch: str = "main") -> Verdict:
        """Merge the branch `side`."""
        made = graph.merge("side", into=branch)
        return Verdict(Counter(), commit=made.commit.id if made.commit is not None else None)


SURFACES: dict[str, Surface] = {
    s.name: s for s in (Mutation(), Lines(), Columns(), Forking(), Merging())
}


@dataclass(frozen=True)
class Attempt:
    """One change, the surface it goes through, and what became of it: a commit, or a code."""

    surface: str
    wanted: Wanted
    commit: str | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Shift:
    """What one process needs to know: where, how long, with which luck."""

    place: Place
    log: str
    seconds: float
    seed: int


def work(shift: Shift) -> int:
    """Change the graph at random until time is up and two commits were made; return how often."""
    graph, chance = shift.place.open(), random.Random(shift.seed)
    end, turns, commits = time.monotonic() + shift.seconds, 0, 0
    with Path(shift.log).open("wb") as log:
        while commits < 2 or time.monotonic() < end:
            outcome = attempt(graph, *choose(chance))
            pickle.dump(outcome, log)
            turns += 1
            commits += outcome.commit is not None
    return turns


def read_log(path: Path) -> list[Attempt]:
    """Return what one process did."""
    found = []
    with path.open("rb") as log:
        while log.peek(1):
            found.append(pickle.load(log))
    return found


def attempt(graph: og.Graph, surface: str, wanted: Wanted) -> Attempt:
    """Try one change."""
    try:
        verdict = SURFACES[surface].run(graph, wanted)
    except OmniError as error:
        return Attempt(surface, wanted, refused=error.code)
    rules = sorted({rule for rule, *_ in verdict.reported})
    return Attempt(surface, wanted, verdict.commit, " ".join(rules) or None)


def choose(chance: random.Random) -> tuple[str, Wanted]:
    """Draw a change."""
    job = chance.choice(JOBS)
    return job(chance)


def _insert(chance: random.Random) -> tuple[str, Wanted]:
    return "mutation", Wanted(_some(chance, (_person, _member, _knows, _leads)))


def _load(chance: random.Random) -> tuple[str, Wanted]:
    steps = _some(chance, (_person, _person, _member, _knows))
    return chance.choice(("ndjson", "columns")), Wanted(steps)


def _append(chance: random.Random) -> tuple[str, Wanted]:
    """Fight for a key that is free from time to time."""
    puts = (Put("Person", {"name": chance.choice(PEOPLE), "age": chance.randrange(99)}),)
    return chance.choice(("ndjson", "columns")), Wanted(puts, "append")


def _update(chance: random.Random) -> tuple[str, Wanted]:
    test = Where("name", "=", chance.choice(PEOPLE))
    return "mutation", Wanted((Set("Person", {"email": chance.choice(EMAILS)}, (test,)),))


def _delete(chance: random.Random) -> tuple[str, Wanted]:
    name, names = chance.choice((("Person", PEOPLE), ("Person", PEOPLE), ("Team", TEAMS)))
    return "mutation", Wanted((Delete(name, (Where("name", "=", chance.choice(names)),)),))


def _part(chance: random.Random) -> tuple[str, Wanted]:
    name = chance.choice(("Member", "Knows", "Leads"))
    return "mutation", Wanted((Delete(name, (Where("src", "=", chance.choice(PEOPLE)),)),))


def _replace(chance: random.Random) -> tuple[str, Wanted]:
    """Give a whole type anew, now and then without a team that others need."""
    teams = TEAMS if chance.random() < 0.7 else TEAMS[1:]
    puts = tuple(Put("Team", {"name": n, "motto": chance.choice((None, n))}) for n in teams)
    return "columns", Wanted(puts, "overwrite")


JOBS: Sequence[Callable[[random.Random], tuple[str, Wanted]]] = (
    *(_insert, _insert, _insert, _load, _load, _append, _update, _update),
    *(_delete, _delete, _part, _replace),
)


def _some(
    chance: random.Random, makers: Sequence[Callable[[random.Random], Put]]
) -> tuple[Step, ...]:
    made = [chance.choice(makers)(chance) for _ in range(chance.randrange(1, 4))]
    by_key = {(p.type, p.values.get("name", n)): p for n, p in enumerate(made)}
    return tuple(by_key.values())


def _person(chance: random.Random) -> Put:
    email = chance.choice((None, None, *EMAILS))
    return Put("Person", {"name": chance.choice(PEOPLE), "email": email})


def _member(chance: random.Random) -> Put:
    slot = chance.choice((None, 1, 2, 3, 4, 5))
    return Put("Member", {"src": chance.choice(PEOPLE), "dst": chance.choice(TEAMS), "slot": slot})


def _knows(chance: random.Random) -> Put:
    return Put("Knows", {"src": chance.choice(PEOPLE), "dst": chance.choice(PEOPLE)})


def _leads(chance: random.Random) -> Put:
    return Put("Leads", {"src": chance.choice(PEOPLE), "dst": chance.choice(TEAMS)})


# --- killed writers ----------------------------------------------------------------------------


def run_to_step(place: Place, surface: str, wanted: Wanted, step: int) -> str | None:
    """Make a change in a child killed at its `step`-th step; return the step's name.

    None means that the child was done before it came that far.
    """
    process, connection = start(_child, place, surface, wanted, step)
    code = finish(process)
    said = drain(connection)
    connection.close()
    if code == 0:
        assert said[-1] == "done", said
        return None
    assert code == -signal.SIGKILL, f"the child failed: {said}"
    return str(said[-1])


def _child(connection: Connection, place: Place, surface: str, wanted: Wanted, step: int) -> None:
    left = step

    def observe(name: str) -> None:
        nonlocal left
        if left == 0:
            connection.send(name)
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    graph = place.open()
    graph._manifest.datasets.observe = observe
    done = attempt(graph, surface, wanted)
    assert done.commit is not None, done
    connection.send("done")


def insert_people(
    uri: str, number: int, begun: Barrier, over: Event
) -> tuple[dict[str, str], set[str]]:
    """Insert people one after the other until all is over; return what was acknowledged or not."""
    graph, made, refused = og.open(uri), dict[str, str](), set[str]()
    begun.wait(PATIENCE)
    while not over.is_set():
        name = f"w{number}-{len(made)}"
        text = f'query q() {{ insert Person {{ name: "{name}", age: {number} }} }}'
        try:
            commit = graph.mutate(text).commit
            assert commit is not None, "it inserts"
            made[name] = commit.id
        except OmniError as error:
            refused.add(error.code)
    return made, refused


def see_loads(uri: str, loads: int, begun: Barrier, over: Event) -> set[tuple[int, int]]:
    """Look at a graph until all is over; return how many people of each load were ever seen."""
    seen = set[tuple[int, int]]()
    begun.wait(PATIENCE)
    while not over.is_set():
        names = [*read_state(og.open(uri))["Person"]]
        seen |= {(n, sum(name.startswith(f"l{n}-") for name in names)) for n in range(loads)}
    return seen
