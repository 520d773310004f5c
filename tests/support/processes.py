"""Other processes as tests see them: whether they have ended, and how."""

from __future__ import annotations

import time
from pathlib import Path

LONG = 300
"""Seconds nobody waits for unless something hangs."""


def is_gone(pid: int | str) -> bool:
    """Wait until a process has ended; a zombie has."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
