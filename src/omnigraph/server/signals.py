"""Signals of a server process: SIGTERM and SIGINT stop it, SIGHUP reloads its files."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP = (signal.SIGINT, signal.SIGTERM)
RELOAD = signal.SIGHUP


@contextmanager
def stopping_normally() -> Iterator[None]:
    """End this process with exit code 0 at a stop signal, also before it handles requests.

    A reload signal stays pending until `accept_reload`.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [RELOAD])
    before = {number: signal.signal(number, _leave) for number in STOP}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def accept_reload() -> None:
    """Deliver reload signals from now on, and one that is pending."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [RELOAD])


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Start processes with signals blocked: none ends them before they can handle it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [*STOP, RELOAD])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
