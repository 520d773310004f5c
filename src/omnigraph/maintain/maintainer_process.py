"""A process that only maintains graphs: low priority, stopped by a signal at any moment."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

STOP_SECONDS = 1.0
"""How long a step may go on after a stop signal; afterwards it is given up, which is safe."""
NICENESS = 10
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def become_maintainer_process() -> threading.Event:
    """Lower the priority of this process; return an event that a stop signal sets.

    The process exits at the latest `STOP_SECONDS` after the signal.
    """
    stop = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if not stop.is_set():
            timer = threading.Timer(STOP_SECONDS, os._exit, [0])
            timer.daemon = True
            timer.start()
        stop.set()

    for number in _STOP_SIGNALS:
        signal.signal(number, handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    os.nice(NICENESS)
    return stop
