"""Start processes from a fork server that has imported everything and opened nothing.

Lance is not safe to fork once it was used, and starting an interpreter takes longer than what most
of these processes do. Every child is a process of its own, which can be killed.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "omnigraph.graph",
        "tests.support.change_workers",
        "tests.support.migration_workers",
        "tests.support.operations",
        "tests.support.writers",
    ]
)


def process_pool(count: int) -> ProcessPoolExecutor:
    """Return a pool of processes."""
    return ProcessPoolExecutor(count, CONTEXT)
