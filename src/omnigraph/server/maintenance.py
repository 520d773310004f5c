"""Maintain the served graphs in a child process, and replace it if it dies.

A process of its own has a CPU time that can be measured and limited, does not compete with requests
for the interpreter lock, and can be killed at any moment. There is one, also of several workers.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from omnigraph.maintain.maintainer_process import STOP_SECONDS
from omnigraph.server.process import blocked_signals
from omnigraph.server.settings import ServerSettings

START_DELAY = 10.0
"""Seconds after which maintenance starts, so that the server starts first."""
MAX_RESTART_PAUSE = 300.0
_log = logging.getLogger("omnigraph.server")


@contextmanager
def background_maintenance(
    settings: ServerSettings, environment: Mapping[str, str], delay: float | None = None
) -> Iterator[ServerSettings]:
    """Maintain the graphs while the block lasts; yield settings that name the metrics file."""
    options = settings.maintenance
    if options is None:
        yield settings
        return
    with tempfile.TemporaryDirectory(prefix="omnigraph-") as folder:
        options = msgspec.structs.replace(options, metrics=str(Path(folder, "maintenance.json")))
        settings = msgspec.structs.replace(settings, maintenance=options)
        pause = min(START_DELAY, options.interval) if delay is None else delay
        child = _MaintenanceChild(settings, environment, pause)
        child.start()
        try:
            yield settings
        finally:
            child.stop()


class _MaintenanceChild(threading.Thread):
    """Keeps a maintenance process running until it is stopped."""

    def __init__(
        self, settings: ServerSettings, environment: Mapping[str, str], delay: float
    ) -> None:
        super().__init__(name="maintenance", daemon=True)
        self._settings, self._environment = settings, dict(environment)
        self._pause = delay
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self) -> None:
        """Start the process, and start it again with a growing pause if it ends."""
        while not self._stopped.wait(self._pause):
            with self._lock:
                if self._stopped.is_set():
                    return
                process = self._process = self._start()
            code = process.wait()
            _close(process)
            if not self._stopped.is_set():
                self._pause = min(2 * max(self._pause, 1.0), MAX_RESTART_PAUSE)
                message = "the maintenance process ended with %d; another starts in %g s"
                _log.error(message, code, self._pause)

    def stop(self) -> None:
        """End the process: between two steps, or after a second in any case."""
        with self._lock:
            self._stopped.set()
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS + 1)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.join()

    def _start(self) -> subprocess.Popen[bytes]:
        with blocked_signals():
            process = subprocess.Popen(
                [sys.executable, "-m", "omnigraph.server.maintenance_worker"],
                stdin=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
            )
        assert process.stdin is not None, "it has a pipe"
        with suppress(OSError):  # it is dead already, which `wait` reports
            process.stdin.write(msgspec.json.encode(self._settings) + b"\n")
            process.stdin.flush()
        return process


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
