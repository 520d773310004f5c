"""This module cuts long work into parts, so that clocks are looked at and all cores work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor


def parts_of(total: int, size: int) -> Iterator[slice]:
    """Yield ranges that cover so many rows, a part at a time."""
    return (slice(at, min(at + size, total)) for at in range(0, total, size))


def in_parallel(work: Callable[[slice], None], parts: Iterator[slice]) -> None:
    """Do work on parts that have nothing to do with each other; it must let go of the lock.

    The first part is done alone: it compiles what the others then share.
    """
    for first in parts:
        work(first)
        break
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(work, part) for part in parts]:
            done.result()
