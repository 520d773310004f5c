"""This module makes a process fit to serve for long: with many files, and little memory."""

from __future__ import annotations

import ctypes
import os
import resource
from contextlib import suppress

import pyarrow as pa

_M_ARENA_MAX = -8
"""The option's number in glibc's malloc.h."""


def settle() -> None:
    """Prepare this process, before it starts threads."""
    _raise_file_limit()
    _give_memory_back()


def _raise_file_limit() -> None:
    """Let this process open as many files as it may: connections and datasets take one each."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems say that there is no limit and then refuse to take it at its word.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _give_memory_back() -> None:
    """Let threads share what they freed.

    Arrow's own allocator keeps a heap for each thread that ever made an array, and glibc eight
    for each core. Under many short requests both hold many times what is in use, and grow for
    hours.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only glibc has it
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, os.cpu_count() or 1)
