"""Report to a metrics system how commits go: waits for other writers, groups, lost swaps."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class CommitEvent(StrEnum):
    """What happened, and what its value is."""

    QUEUE_WAIT = "queue_wait"
    """Seconds that a change waited for changes of this process."""
    TURN_WAIT = "turn_wait"
    """Seconds that a group waited for other processes of the machine."""
    PUBLISHED = "published"
    """Changes that one swap published."""
    LOST_SWAP = "lost_swap"
    """The number of the attempt, from 1, that another writer was faster than."""


class CommitObserver(Protocol):
    """Called by threads that commit; it returns at once and raises nothing."""

    def __call__(self, event: CommitEvent, value: float) -> None:
        """Take note of an event."""


_observers: list[CommitObserver] = []


def observe_commits(observer: CommitObserver) -> None:
    """Call an observer with every event of this process."""
    _observers.append(observer)


def ignore_commits(observer: CommitObserver) -> None:
    """Stop calling an observer."""
    _observers.remove(observer)


def report(event: CommitEvent, value: float) -> None:
    """Pass an event to all observers."""
    for observer in _observers:
        observer(event, value)
