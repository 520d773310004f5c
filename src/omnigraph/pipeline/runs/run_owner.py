"""The process that runs a pipeline, so that other processes can check whether it is alive.

On the same machine this is certain; on other machines it depends on the heartbeat.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from ulid import ULID

from omnigraph.commit.recovery import STALE_AFTER

_START_TIME_FIELD = 19
"""The index of the start time in /proc/PID/stat, after the process name."""


@dataclass(frozen=True, slots=True)
class RunOwner:
    """A process that took a run; `token` is unique, `born` distinguishes reused pids."""

    token: str
    host: str
    pid: int
    born: str | None

    @classmethod
    def here(cls) -> RunOwner:
        """Return this process."""
        return cls(str(ULID()), socket.gethostname(), os.getpid(), _process_start_time(os.getpid()))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunOwner:
        """Return the value that `to_json` serialised."""
        return cls(document["token"], document["host"], document["pid"], document["born"])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == socket.gethostname()

    def is_alive(self, silence: timedelta) -> bool:
        """Return whether the process is at work; `silence` is the time since its heartbeat."""
        if not self.is_here:
            return silence < STALE_AFTER
        if self.born is not None:
            return _process_start_time(self.pid) == self.born
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _process_start_time(pid: int) -> str | None:
    """Return when a process was started, None if it is dead or that is unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    facts = stat.rpartition(")")[2].split()
    return None if facts[0] == "Z" else f"{boot} {facts[_START_TIME_FIELD]}"
