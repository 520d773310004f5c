"""Keeps processes ready that run a function at the same moment, to see who wins.

The processes are started once for all tests, because that takes longer than a race. They end when
their connection closes, so none outlives the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Barrier
from typing import Any

from tests.support.fork_server import CONTEXT

TIMEOUT = 60
"""Seconds after which a racer that says nothing is a failure."""


@dataclass(frozen=True, slots=True)
class Racer:
    """What a racing function knows: which racer it is, and how to start with the others."""

    number: int
    barrier: Barrier

    def together(self) -> None:
        """Wait until every racer is here."""
        self.barrier.wait(TIMEOUT)


class Racers:
    """Processes that wait for something to do."""

    def __init__(
        self, members: list[tuple[ForkServerProcess, Connection]], barrier: Barrier
    ) -> None:
        self._members = members
        self._barrier = barrier

    def run(self, function: Callable[..., Any], *arguments: object) -> list[Any]:
        """Call `function(racer, *arguments)` in every process and return what each returned."""
        for _, connection in self._members:
            connection.send((function, arguments))
        answers = []
        for process, connection in self._members:
            assert connection.poll(TIMEOUT), f"racer {process.pid} does not answer"
            answers.append(connection.recv())
        failures = [answer for good, answer in answers if not good]
        if failures:
            self._barrier.reset()
            raise AssertionError(failures)
        return [answer for _, answer in answers]


@contextmanager
def racing(count: int) -> Iterator[Racers]:
    """Keep racers for as long as the block lasts."""
    barrier = CONTEXT.Barrier(count)
    members: list[tuple[ForkServerProcess, Connection]] = []
    try:
        for number in range(count):
            ours, theirs = CONTEXT.Pipe()
            racer = Racer(number, barrier)
            process = CONTEXT.Process(target=_serve, args=(theirs, racer), daemon=True)
            process.start()
            theirs.close()
            members.append((process, ours))
        yield Racers(members, barrier)
    finally:
        for process, connection in members:
            connection.close()
            process.join(5)
            if process.exitcode is None:
                process.kill()
                process.join()
            process.close()


def _serve(connection: Connection, racer: Racer) -> None:
    while True:
        try:
            function, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = (True, function(racer, *arguments))
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the test must hear of it
            answer = (False, f"racer {racer.number}: {error!r}")
            racer.barrier.abort()  # nobody need wait for this one
        connection.send(answer)
