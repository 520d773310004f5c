"""Makes several changes of a branch at once, so that they are published as one group."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import omnigraph.graph as og
from omnigraph.commit.commit_queue import QueuedChange, Turn
from omnigraph.storage.durability import Durability
from omnigraph.write import group_commit
from omnigraph.write.transaction import commit_queue

LONG = 60.0
QUEUE_SECONDS = 0.2
"""How long to wait for a change to queue; a large one prepares first."""


class Caller(threading.Thread):
    """Calls a function and keeps its result or its error."""

    def __init__(self, act: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._act = act
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Call the function."""
        try:
            self.result = self._act()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error


def make_together(
    graph: og.Graph,
    *changes: Callable[[], Any],
    branch: str = "main",
    seconds: float = QUEUE_SECONDS,
) -> list[Caller]:
    """Call functions that change a branch while its queue is held, in order; then release it.

    `seconds` is how long to wait for each to queue.
    """
    lineage_id = graph.snapshot(branch).lineage_id
    queue = commit_queue(graph._manifest, lineage_id)
    callers = [Caller(change) for change in changes]
    with queue.turn(QueuedChange(time.monotonic() + LONG, alone=True)):
        for number, caller in enumerate(callers, 2):
            caller.start()
            until = time.monotonic() + seconds
            while len(queue._waiting) < number and caller.is_alive() and time.monotonic() < until:
                time.sleep(0.0005)
    for caller in callers:
        caller.join(LONG)
        assert not caller.is_alive()
    return callers


def publish_together(
    graph: og.Graph, *changes: Callable[[], Any], branch: str = "main"
) -> list[Any]:
    """Make changes as one group; return their results, and fail if one was refused."""
    with patch.object(group_commit, "MAX_SECONDS", LONG):  # on a busy machine, too
        callers = make_together(graph, *changes, branch=branch, seconds=LONG)
    for caller in callers:
        if caller.error is not None:
            raise caller.error
    versions = {caller.result.commit.manifest_version for caller in callers}
    assert len(versions) == 1, "the changes were not one group"
    return [caller.result for caller in callers]


def other_durability(graph: og.Graph) -> str:
    """Return a durability whose handles have another queue, as those of another process do."""
    is_full = graph._manifest.location.durability is Durability.FULL
    return "relaxed" if is_full else "full"


class LateTurn(Turn):
    """A turn that another process has, which changes the graph meanwhile."""

    def __init__(self, waiting: list[Callable[[], Any]]) -> None:
        self.waiting = waiting

    @property
    def is_held(self) -> bool:
        """Whether this process has the turn."""
        return False

    def wait(self, until: Callable[[], bool] = lambda: False, *, seconds: float = 0.0) -> None:
        """Let the other process act, and then have the turn."""
        if self.waiting:
            self.waiting.pop(0)()


@contextmanager
def turn_of_another(graph: og.Graph, waiting: list[Callable[[], Any]]) -> Iterator[None]:
    """Let each turn of a graph begin after another process has done the next action."""
    queue: Any = commit_queue(graph._manifest, None)
    queue._turn_of_process = lambda deadline: nullcontext(LateTurn(waiting))
    try:
        yield
    finally:
        del queue._turn_of_process
