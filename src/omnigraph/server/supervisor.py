"""Run several worker processes on one address, and replace those that die.

The supervisor opens no graph: it holds a socket for each worker (`SO_REUSEPORT`), starts processes
that inherit them, and waits. Since it holds the sockets, connections that wait at the one of a dead
worker are not reset: another worker takes them, or the replacement, which gets the same socket.
Every process may write, since graphs allow any number of writers.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
from prometheus_client.multiprocess import mark_process_dead

from omnigraph.errors import Category, OmniError
from omnigraph.server.metrics import METRICS_DIR_VARIABLE, ServerMetrics
from omnigraph.server.metrics_address import metrics_server
from omnigraph.server.process import (
    RELOAD_SIGNAL,
    STOP_SIGNALS,
    blocked_signals,
    unblock_reload_signal,
)
from omnigraph.server.run import bind_worker_sockets, listen_address
from omnigraph.server.settings import ServerSettings

READY = b"ready\n"
MAX_START_FAILURES = 5
"""Processes that may die before they were ready, one after the other, while no other is ready."""
MAX_RESTART_PAUSE = 10.0
"""The longest pause before a worker that cannot start is started again."""
_log = logging.getLogger("omnigraph.server")


@dataclass(slots=True)
class _WorkerProcess:
    """One process, the number of its socket, whether it listened, when it is to be replaced."""

    process: subprocess.Popen[bytes]
    number: int
    ready: threading.Event = field(default_factory=threading.Event)
    replace_at: float | None = None

    @property
    def serves(self) -> bool:
        """Whether it listens and runs."""
        return self.ready.is_set() and self.process.poll() is None


class Supervisor:
    """Keeps a number of processes running until a signal stops it."""

    def __init__(self, settings: ServerSettings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = dict(environment)
        self._stop, self._reload = threading.Event(), threading.Event()
        self._sockets = bind_worker_sockets(settings)
        self._failures = 0

    def run(self, ready: Callable[[str], None]) -> None:
        """Start workers, report the address once all listen, and replace those that die."""
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: self._stop.set())
        signal.signal(RELOAD_SIGNAL, lambda *_: self._reload.set())
        unblock_reload_signal()
        with tempfile.TemporaryDirectory(prefix="omnigraph-") as folder:
            self._environment[METRICS_DIR_VARIABLE] = folder
            with self._metrics(folder):
                self._run_workers(ready, folder)

    @contextmanager
    def _metrics(self, folder: str) -> Iterator[None]:
        """Serve the metrics of all workers, if they have an address of their own."""
        settings = self._settings
        options = settings.maintenance
        metrics = ServerMetrics(
            shared=True, maintenance=None if options is None else options.metrics, folder=folder
        )
        try:
            address = settings.metrics_address
            with metrics_server(address, metrics.exposition, metrics.media_type):
                yield
        finally:
            metrics.close()

    def _run_workers(self, ready: Callable[[str], None], folder: str) -> None:
        workers = [self._start(number) for number in range(self._settings.workers)]
        try:
            if self._all_ready(workers):
                ready(listen_address(self._sockets[0]))
            while not self._stop.wait(0.1):
                for worker in list(workers):
                    self._look_after(worker, workers, folder)
                self._forward_reload(workers)
        finally:
            self._ended(workers)

    def _forward_reload(self, workers: list[_WorkerProcess]) -> None:
        """Let all workers reload; one that still starts keeps the signal until it listens."""
        if self._reload.is_set():
            self._reload.clear()
            for worker in workers:
                if worker.replace_at is None:
                    worker.process.send_signal(RELOAD_SIGNAL)

    def _all_ready(self, workers: list[_WorkerProcess]) -> bool:
        """Wait until all workers listen; False when the server is stopped before."""
        for worker in workers:
            while not worker.ready.wait(0.05):
                if self._stop.is_set():
                    return False
                if worker.process.poll() is not None:
                    raise _workers_failed()
        return True

    def _start(self, number: int) -> _WorkerProcess:
        files = [found.fileno() for found in self._sockets]
        files = [files[number], *files[:number], *files[number + 1 :]]
        with blocked_signals():
            process = subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-m", "omnigraph.server.worker", *map(str, files)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=files,
                env=self._environment,
                start_new_session=True,
            )
        worker = _WorkerProcess(process, number)
        threading.Thread(target=self._introduce, args=(worker,), daemon=True).start()
        return worker

    def _introduce(self, worker: _WorkerProcess) -> None:
        """Send its settings to a worker, and wait until it serves."""
        stdin, stdout = worker.process.stdin, worker.process.stdout
        assert stdin is not None, "it has a pipe"
        assert stdout is not None, "it has a pipe"
        try:
            stdin.write(msgspec.json.encode(self._settings) + b"\n")
            stdin.flush()
        except OSError:
            # It is dead already, which is seen elsewhere.
            return
        if stdout.readline() == READY:
            worker.ready.set()

    def _look_after(
        self, worker: _WorkerProcess, workers: list[_WorkerProcess], folder: str
    ) -> None:
        """Replace a worker that died: at once, or after a pause if it could not even start."""
        code = worker.process.poll()
        if code is None:
            return
        if worker.replace_at is None:
            self._failures = 0 if worker.ready.is_set() else self._failures + 1
            if self._failures >= MAX_START_FAILURES and not any(other.serves for other in workers):
                raise _workers_failed()
            mark_process_dead(worker.process.pid, folder)  # type: ignore[no-untyped-call]
            message = "process %d ended with %d; another takes its place"
            _log.error(message, worker.process.pid, code)
            _close_pipes(worker)
            pause = min(0.1 * 2**self._failures, MAX_RESTART_PAUSE) if self._failures else 0.0
            worker.replace_at = time.monotonic() + pause
        if time.monotonic() >= worker.replace_at:
            workers[worker.number] = self._start(worker.number)

    def _ended(self, workers: list[_WorkerProcess]) -> None:
        """Let every process finish what is under way; end those that do not."""
        for listening in self._sockets:
            listening.close()
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.terminate()
        for worker in workers:
            try:
                worker.process.wait(self._settings.limits.shutdown + 10)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            _log_exit(worker.process)
            _close_pipes(worker)


def _log_exit(process: subprocess.Popen[bytes]) -> None:
    code = process.returncode
    level = logging.ERROR if code else logging.INFO
    facts = {"pid": process.pid, "exit_code": code}
    _log.log(level, "worker process %d exited with code %d", process.pid, code, extra=facts)


def _close_pipes(worker: _WorkerProcess) -> None:
    for pipe in (worker.process.stdin, worker.process.stdout):
        if pipe is not None:
            pipe.close()


def _workers_failed() -> OmniError:
    message = "the processes of the server cannot be started; their log says why"
    return OmniError(message, code="workers_failed", category=Category.UNAVAILABLE)
