"""Limits of a server process: open files, memory arenas, signals."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import pyarrow as pa

_M_ARENA_MAX = -8
"""The option's number in glibc's malloc.h."""


def prepare_process() -> None:
    """Prepare this process, before it starts threads."""
    _raise_file_limit()
    _limit_malloc_arenas()


def _raise_file_limit() -> None:
    """Let this process open as many files as it may: connections and datasets take one each."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems say that there is no limit and then refuse to take it at its word.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _limit_malloc_arenas() -> None:
    """Let threads share what they freed.

    Arrow's own allocator keeps a heap for each thread that ever made an array, and glibc eight
    for each core. Under many short requests both hold many times what is in use, and grow for
    hours.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only glibc has it
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, os.cpu_count() or 1)


# ----------------------------------------------------------------------
# Signals of a server process: SIGTERM and SIGINT stop it, SIGHUP reloads its files.


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
RELOAD_SIGNAL = signal.SIGHUP


@contextmanager
def exit_on_stop_signals() -> Iterator[None]:
    """End this process with exit code 0 at a stop signal, also before it handles requests.

    A reload signal stays pending until `unblock_reload_signal`.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [RELOAD_SIGNAL])
    before = {number: signal.signal(number, _exit) for number in STOP_SIGNALS}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def unblock_reload_signal() -> None:
    """Deliver reload signals from now on, and one that is pending."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [RELOAD_SIGNAL])


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Start processes with signals blocked: none ends them before they can handle it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [*STOP_SIGNALS, RELOAD_SIGNAL])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
