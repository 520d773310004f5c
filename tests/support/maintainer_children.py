"""Maintain graphs in child processes that may be killed at any step."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from multiprocessing.connection import Connection

from omnigraph.maintain import due
from omnigraph.maintain.maintenance_steps import MaintainerSettings, MaintenancePass
from omnigraph.query import topology
from tests.support.children import Place, drain, finish, start

EAGER = MaintainerSettings(
    interval=0.05, cpu_share=1.0, cleanup_interval=timedelta(0), age_floor=timedelta(0)
)
"""Nothing waits: neither for the CPU share nor for files to grow old."""
SMALL_ROWS = 32


def lower_thresholds() -> None:
    """Make maintenance of small types due, for the rest of this process."""
    due.MIN_UNINDEXED_ROWS = SMALL_ROWS
    topology.MIN_STORED_EDGES = SMALL_ROWS


def maintain_to_step(place: Place, step: int) -> str | None:
    """Run a pass in a child killed at its `step`-th step; return the step's name.

    None means that the pass ended before.
    """
    process, connection = start(_child, place, step)
    code = finish(process)
    said = drain(connection)
    connection.close()
    if code == 0:
        assert isinstance(said[-1], MaintenancePass), said
        assert not said[-1].errors, said
        return None
    assert code == -signal.SIGKILL, f"the child failed: {said}"
    return str(said[-1])


def maintain_in_child(place: Place) -> MaintenancePass:
    """Run a pass in a child with low thresholds."""
    process, connection = start(_child, place, -1)
    assert finish(process) == 0
    [result] = drain(connection)
    connection.close()
    assert isinstance(result, MaintenancePass)
    return result


def _child(connection: Connection, place: Place, step: int) -> None:
    left = step

    def observe(name: str) -> None:
        nonlocal left
        if left == 0:
            connection.send(name)
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    lower_thresholds()
    graph = place.open()
    graph._manifest.datasets.observe = observe
    connection.send(graph.maintenance.run(EAGER))
