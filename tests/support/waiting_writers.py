"""Processes that wait for the turn of a branch, which the test holds, with a prepared group."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import omnigraph.graph as og
from omnigraph.commit.commit_queue import TurnLocks
from omnigraph.errors import OmniError
from tests.support.children import Place
from tests.support.groups import LONG, Caller

SCHEMA = """
node Part { slug: String @key
  version: I64? }
node Label { slug: String @key
  code: I64? @unique }
edge Labelled: Part -> Label
"""
QUERIES = """
query part($slug: String, $version: I64?) { insert Part { slug: $slug, version: $version } }
query label($slug: String, $code: I64?) { insert Label { slug: $slug, code: $code } }
query both($slug: String) {
  insert Part { slug: $slug }
  insert Label { slug: $slug }
  insert Labelled { from: $slug, to: $slug }
}
query link($part: String, $label: String) { insert Labelled { from: $part, to: $label } }
query unlabel($slug: String) { delete Label where slug = $slug }
"""
Call = tuple[str, dict[str, Any]]
"""The name of a query, and its parameters."""


def call(graph: og.Graph, change: Call, timeout: float | None = None) -> str:
    """Run one of the queries; return its commit."""
    name, parameters = change
    result = graph.mutate(QUERIES, parameters, name=name, message=f"{name} made", timeout=timeout)
    assert result.commit is not None, "every query changes something"
    return result.commit.id


def write(
    connection: Connection,
    place: Place,
    changes: list[Call],
    step: int | None,
    branch: str = "main",
) -> None:
    """Make changes side by side, as one group; be killed at a step, if given."""
    graph, left = place.open().branch(branch), step
    graph.snapshot()

    def observe(name: str) -> None:
        nonlocal left
        if left is not None:
            if left == 0:
                connection.send(("killed", name))
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    graph._manifest.datasets.observe = observe
    callers = [Caller(partial(call, graph, change)) for change in changes]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(LONG)
    for caller in callers:
        if isinstance(caller.error, OmniError):
            connection.send(("refused", caller.error.code))
        else:
            connection.send(("done", caller.result) if caller.result else repr(caller.error))


class HeldTurn:
    """The turn of a branch in a graph on disk, with the files of groups that wait for it."""

    def __init__(self, place: Place, lineage: str = "main") -> None:
        self._locks = Path(place.uri) / "_locks"
        self._lineage = lineage
        self.folder = self._locks / f"{lineage}.prepared"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the turn."""
        with TurnLocks(self._locks, self._lineage).turn(time.monotonic() + LONG):
            yield

    def names(self) -> list[str]:
        """Return the files of groups."""
        return sorted(os.listdir(self.folder)) if self.folder.exists() else []

    def wait_for_line(self) -> None:
        """Wait until a writer is the first in line."""
        until = time.monotonic() + LONG
        with (self._locks / f"{self._lineage}.line").open("rb") as file:
            while True:
                assert time.monotonic() < until, "no writer waits"
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    return
                fcntl.flock(file, fcntl.LOCK_UN)
                time.sleep(0.002)

    def take(self) -> None:
        """Take the only group, as a process that has the turn does."""
        [name] = self.names()
        (self.folder / name).rename(self.folder / name.replace(".ready", ".taken"))

    def wait_for(self, count: int) -> None:
        """Wait until processes have left that many groups."""
        until = time.monotonic() + LONG
        while len([name for name in self.names() if name.endswith(".ready")]) < count:
            assert time.monotonic() < until, f"only {self.names()}"
            time.sleep(0.002)
