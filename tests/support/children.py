"""Run graph operations in child processes that may be killed at any moment.

A child is killed by SIGKILL, always: at a named step by its own hand, else by its parent.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

import omnigraph.graph as og
from omnigraph.commit.graph_creation import create_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.errors import OmniError
from omnigraph.storage import locate
from tests.support.fork_server import CONTEXT
from tests.support.graphs import SCHEMA
from tests.support.operations import COMMITS, Operation, perform

TIMEOUT = 180
"""Seconds after which a child that neither ends nor dies is a failure."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a graph is, as a child needs it."""

    uri: str
    options: Mapping[str, str] | None = None

    def open(self) -> og.Graph:
        """Open the graph with nothing cached."""
        return og.open(self.uri, storage_options=self.options)


def start(target: Callable[..., None], *arguments: Any) -> tuple[ForkServerProcess, Connection]:
    """Start a child; `target` gets a connection to talk through, then the arguments."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def finish(process: ForkServerProcess) -> int:
    """Wait for a child and return its exit code; a child that hangs is killed and a failure."""
    process.join(TIMEOUT)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
        raise AssertionError(f"child {process.pid} did not end within {TIMEOUT} s")
    process.close()
    return code


def drain(connection: Connection) -> list[Any]:
    """Return everything a child that is dead has said."""
    said = []
    try:
        while connection.poll(TIMEOUT):
            said.append(connection.recv())
    except (EOFError, ConnectionResetError):
        return said
    raise AssertionError("somebody keeps the connection of a dead child open")


def run_to_step(place: Place, operation: Operation, step: int) -> str | None:
    """Perform an operation in a child killed at its `step`-th step; return the step's name.

    None means that the child was done before it came that far.
    """
    process, connection = start(_child, place, operation, step)
    code = finish(process)
    said = drain(connection)
    connection.close()
    if code == 0:
        assert said[-1] == "done", said
        return None
    assert code == -signal.SIGKILL, f"the child failed: {said}"
    return str(said[-1])


def _child(connection: Connection, place: Place, operation: Operation, step: int) -> None:
    left = step

    def observe(name: str) -> None:
        nonlocal left
        if left == 0:
            connection.send(name)
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    if operation.kind == "init":
        manifest = Manifest(locate(place.uri, place.options))
        manifest.datasets.observe = observe
        create_graph(manifest, SCHEMA)
    else:
        graph = place.open()
        graph._manifest.datasets.observe = observe
        perform(graph, operation)
    connection.send("done")


def run_until_killed(place: Place, seed: int, first: int, delay: float) -> list[Any]:
    """Let a child perform random operations, kill it after a delay, and return what it said.

    It says `begin` before each operation, and after it, when its user would know, `done` with the
    commit id or `refused` with the error code. The delay counts from when it has opened the graph.
    """
    process, connection = start(_restless_child, place, seed, first)
    assert connection.poll(TIMEOUT), "the child did not start"
    assert connection.recv() == "ready"
    process.join(delay)
    process.kill()
    code = finish(process)
    said = drain(connection)
    connection.close()
    assert code == -signal.SIGKILL, f"the child ended with {code} before it was killed: {said}"
    return said


def _restless_child(connection: Connection, place: Place, seed: int, first: int) -> None:
    graph = place.open()
    connection.send("ready")
    chance = random.Random(seed)
    for number in range(first, first + 1_000):
        operation = choose(graph, chance, number)
        connection.send(("begin", operation, ""))
        try:
            connection.send(("done", operation, perform(graph, operation)))
        except OmniError as error:
            connection.send(("refused", operation, error.code))


def choose(graph: og.Graph, chance: random.Random, number: int) -> Operation:
    """Pick an operation that can succeed now, of any kind."""
    branches = graph.branches.list()
    branch = chance.choice(branches)
    kinds = [*COMMITS, *COMMITS, "branch", "fork", "tag", "recover", "cleanup"]
    if len(branches) > 2:
        kinds += ["disown"] * 4
    tags = [tag.name for tag in graph.tags.list()]
    if len(tags) > 1:
        kinds += ["untag"] * 2
    match chance.choice(kinds):
        case "branch" | "tag" as kind:
            return Operation(kind, number, branch, branch)
        case "fork":
            older = [c.id for c in graph.commits.list("main", limit=4) if c.operation != "init"]
            return Operation("branch", number, "main", chance.choice(older))
        case "disown":
            return Operation("disown", number, chance.choice([b for b in branches if b != "main"]))
        case "untag":
            return Operation("untag", number, source=chance.choice(tags))
        case kind:
            return Operation(kind, number, branch)
