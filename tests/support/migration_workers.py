"""Apply schemas in child processes: some are killed, some run beside writers."""

from __future__ import annotations

import os
import pickle
import random
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import omnigraph.graph as og
from omnigraph.errors import OmniError
from tests.support.children import Place, drain, finish, start

FIRST = """
node Person { name: String @key  age: I32?  city: String? }
node Team { name: String @key }
edge In: Person -> Team { since: I32? }
"""
MANY = """
node Human @rename_from("Person") {
  name: String @key
  years: I64? @rename_from("age") @range(years, 0..)
  level: I32 @default(1)
  note: String?
}
node Place { name: String @key }
edge At: Human -> Place
"""
"""Every kind of step that writes something: columns, datasets, tombstones, rows of the manifest."""

ROUND = (
    FIRST,
    FIRST.replace("age: I32?", "age: I32?  extra: String?"),
    FIRST.replace("city: String?", 'town: String? @rename_from("city")  level: I32 @default(1)'),
    FIRST.replace("city: String?", "town: String?"),
)
"""Schemas that can follow one another round and round; each lets `name` and `age` be written."""


def fill(graph: og.Graph) -> None:
    """Give a graph of the first schema some entities."""
    people = [{"name": f"p{n}", "age": n, "city": f"c{n}"} for n in range(5)]
    edges = [{"id": f"e{n}", "from": f"p{n}", "to": "t", "since": n} for n in range(3)]
    graph.load({"Person": people, "Team": [{"name": "t"}], "In": edges})


def run_to_step(place: Place, text: str, step: int, *, allow_data_loss: bool) -> str | None:
    """Apply a schema in a child killed at its `step`-th step; return the step's name.

    None means that the child was done before it came that far.
    """
    process, connection = start(_child, place, text, step, allow_data_loss)
    code = finish(process)
    said = drain(connection)
    connection.close()
    if code == 0:
        assert said[-1] == "done", said
        return None
    assert code == -signal.SIGKILL, f"the child failed: {said}"
    return str(said[-1])


def _child(
    connection: Connection, place: Place, text: str, step: int, allow_data_loss: bool
) -> None:
    left = step

    def observe(name: str) -> None:
        nonlocal left
        if left == 0:
            connection.send(name)
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    graph = place.open()
    graph._manifest.datasets.observe = observe
    assert graph.schema.apply(text, allow_data_loss=allow_data_loss).applied
    connection.send("done")


# --- beside writers ----------------------------------------------------------------------------


def migrate(place: Place, log: str, seconds: float, seed: int) -> int:
    """Apply the schemas of the round until time is up and one was applied."""
    graph, end, turns, made = place.open(), time.monotonic() + seconds, seed, 0
    with Path(log).open("wb") as out:
        while made < 1 or time.monotonic() < end:
            turns += 1
            try:
                done = graph.schema.apply(ROUND[turns % len(ROUND)])
                made += done.applied
                pickle.dump(("schema", done.commit.id if done.commit else None, None), out)
            except OmniError as error:
                pickle.dump(("schema", None, error.code), out)
    return turns


def write(place: Place, log: str, seconds: float, seed: int) -> int:
    """Insert, load and update people; write down what was acknowledged.

    It ends when time is up and two writes were, so that a slow machine still proves something.
    """
    graph, chance = place.open(), random.Random(seed)
    end, turns, made = time.monotonic() + seconds, 0, 0
    with Path(log).open("wb") as out:
        while made < 2 or time.monotonic() < end:
            turns += 1
            name, age = f"w{seed}-{turns}", chance.randrange(99)
            try:
                if chance.random() < 0.5:
                    text = f'query q() {{ insert Person {{ name: "{name}", age: {age} }} }}'
                    commit = graph.mutate(text).commit
                else:
                    commit = graph.load({"Person": [{"name": name, "age": age}]}).commit
                pickle.dump((name, age, commit.id if commit else None), out)
                made += 1
            except OmniError as error:
                pickle.dump((None, error.code, None), out)
    return turns


def read_log(path: Path) -> list[tuple[object, object, object]]:
    """Return what one process did."""
    found = []
    with path.open("rb") as log:
        while log.peek(1):
            found.append(pickle.load(log))
    return found
