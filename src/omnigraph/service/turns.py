"""This module lets changes of one branch go one after the other instead of against each other.

Writers may race: one wins, the others prepare their change anew. Within a process that is wasted
work, so they wait for each other, in the order they came. Nothing relies on it: whoever has waited
long enough goes ahead and races.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock

PATIENCE = 5.0
"""Seconds a change waits for those before it."""


@dataclass(slots=True)
class Turns:
    """Who waits for which branch; the first of each has its turn."""

    patience: float = PATIENCE
    _waiting: dict[str, deque[Event]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def take(self, branch: str) -> Iterator[None]:
        """Wait for a turn, and have it as long as the change lasts."""
        turn = Event()
        with self._lock:
            waiting = self._waiting.setdefault(branch, deque())
            waiting.append(turn)
            if waiting[0] is turn:
                turn.set()
        turn.wait(self.patience)
        try:
            yield
        finally:
            self._leave(branch, turn)

    def _leave(self, branch: str, turn: Event) -> None:
        with self._lock:
            waiting = self._waiting[branch]
            waiting.remove(turn)
            if waiting:
                waiting[0].set()
            else:
                del self._waiting[branch]
