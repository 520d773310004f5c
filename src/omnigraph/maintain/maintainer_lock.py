"""One maintainer per graph: a lock file, and the state that other processes read.

Both are beside the lock files of writers. The system releases the lock when its holder dies.
Machines that maintain a graph in a bucket do not see each other: they repeat work at worst, because
the compare-and-swap of the manifest decides and cleanups announce themselves.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from omnigraph.commit.commit_queue import lock_folder
from omnigraph.maintain.maintenance_steps import MaintenancePass
from omnigraph.storage import Location

_LOCK, _STATE = "maintainer.lock", "maintainer.json"


@dataclass(slots=True, kw_only=True)
class MaintainerState:
    """What a maintainer is and did; times are those of its machine, in ISO 8601.

    `done` counts successful steps by task, `last_actions` describes those of the last pass that
    did anything. `seconds` is the time that steps took.
    """

    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)
    started_at: str = field(default_factory=lambda: _now())
    passes: int = 0
    seconds: float = 0.0
    done: dict[str, int] = field(default_factory=dict)
    lost_races: int = 0
    failures: int = 0
    bytes_removed: int = 0
    last_success_at: str | None = None
    last_actions: list[str] = field(default_factory=list)
    last_error: str | None = None
    last_error_at: str | None = None

    def add(self, result: MaintenancePass) -> None:
        """Add the result of a pass; an error is shown until the next pass without one."""
        self.passes += 1
        self.seconds += result.seconds
        self.lost_races += result.lost_races
        self.failures += len(result.errors)
        self.bytes_removed += result.bytes_removed
        for task, count in result.done.items():
            self.done[task] = self.done.get(task, 0) + count
        self.last_actions = result.actions or self.last_actions
        if result.errors:
            self.last_error, self.last_error_at = result.errors[-1], _now()
        else:
            self.last_error = self.last_error_at = None
            self.last_success_at = _now()


@dataclass(frozen=True, slots=True)
class MaintainerInfo:
    """The maintainer of a graph as other processes see it."""

    running: bool
    last_pass_at: str | None = None
    state: MaintainerState | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts = {} if self.state is None else asdict(self.state)
        return {"running": self.running, "last_pass_at": self.last_pass_at, **facts}


class MaintainerLock:
    """The lock file of the maintainer of a graph; where files cannot be locked, it is not used."""

    def __init__(self, location: Location) -> None:
        self._folder = lock_folder(location)
        self._file: int | None = None

    def acquire(self) -> bool:
        """Return whether this object holds the lock; do not wait for it."""
        if self._file is not None:
            return True
        try:
            self._folder.mkdir(exist_ok=True)
            file = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except OSError:  # the file system has no locks
            os.close(file)
            return True
        self._file = file
        return True

    def release(self) -> None:
        """Let another process maintain the graph."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def publish(self, state: MaintainerState) -> None:
        """Write the state for other processes; best effort."""
        scratch = self._folder / f".{_STATE}-{os.getpid()}"
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            scratch.write_text(json.dumps(asdict(state)))
            scratch.rename(self._folder / _STATE)

    def touch(self) -> None:
        """Record the time of a pass that changed nothing."""
        with suppress(OSError):
            os.utime(self._folder / _STATE)


def read_maintainer(location: Location) -> MaintainerInfo:
    """Return the state of the last maintainer of a graph, and whether it runs."""
    folder = lock_folder(location)
    running = _is_locked(folder / _LOCK)
    try:
        text, modified = (folder / _STATE).read_text(), (folder / _STATE).stat().st_mtime
        state = MaintainerState(**json.loads(text))
    except (OSError, ValueError, TypeError):
        return MaintainerInfo(running)
    return MaintainerInfo(running, datetime.fromtimestamp(modified, UTC).isoformat(), state)


def _is_locked(path: Path) -> bool:
    """Return whether a process holds a lock file."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


def _now() -> str:
    return datetime.now(UTC).isoformat()
