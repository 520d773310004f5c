"""Queue of writes per branch: changes of one branch run one after the other.

Writers may race: one wins, the others prepare their change again. Within a server that is wasted
work, so they wait for each other, in a process in the order they came, and processes for each
other. Nothing relies on it: a writer that has waited long enough goes ahead and races.
"""

from __future__ import annotations

import fcntl
import hashlib
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import IO

WAIT_SECONDS = 30.0
"""Seconds a change waits for those before it."""
_LOCK_POLL_SECONDS = 0.001


@dataclass(slots=True)
class WriteQueue:
    """Who waits for which branch; the first of each has its turn.

    Processes that serve the same graph share a folder, in which each locks files for its turn.
    """

    wait_seconds: float = WAIT_SECONDS
    folder: Path | None = None
    _waiting: dict[str, deque[Event]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def turn_for(self, branch: str) -> Iterator[None]:
        """Wait for a turn, and have it as long as the change lasts."""
        turn = Event()
        with self._lock:
            waiting = self._waiting.setdefault(branch, deque())
            waiting.append(turn)
            if waiting[0] is turn:
                turn.set()
        turn.wait(self.wait_seconds)
        try:
            with self._among_processes(branch):
                yield
        finally:
            self._leave(branch, turn)

    @contextmanager
    def _among_processes(self, branch: str) -> Iterator[None]:
        """Stand in line, reach for the turn as the first, and leave the line to the next.

        Without the line, a process that is busy would give every turn to itself.
        """
        if self.folder is None:
            yield
            return
        until = time.monotonic() + self.wait_seconds
        # Few names for any number of branches: the files stay as long as the server.
        name = hashlib.sha256(branch.encode()).hexdigest()[:3]
        with (self.folder / f"{name}.turn").open("ab") as turn:
            with (self.folder / f"{name}.line").open("ab") as line:
                _lock_file(line, until)
                _lock_file(turn, until)
            yield

    def _leave(self, branch: str, turn: Event) -> None:
        with self._lock:
            waiting = self._waiting[branch]
            waiting.remove(turn)
            if waiting:
                waiting[0].set()
            else:
                del self._waiting[branch]


def _lock_file(file: IO[bytes], until: float) -> None:
    """Lock a file until it is closed, or do without when that takes too long."""
    while time.monotonic() < until:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_POLL_SECONDS)
        else:
            return
