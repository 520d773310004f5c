"""This module runs several processes on one socket, and puts a new one in the place of a dead one.

The supervisor opens no graph: it holds the address, starts processes that inherit it, and waits.
Every process may write, since graphs allow any number of writers.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
from prometheus_client.multiprocess import mark_process_dead

from omnigraph.errors import Category, OmniError
from omnigraph.server.run import address, bind
from omnigraph.server.settings import Settings
from omnigraph.server.signals import RELOAD, STOP, accept_reload, signals_blocked

READY = b"ready\n"
SHARED_METRICS = "PROMETHEUS_MULTIPROC_DIR"
FAILURES = 5
"""Processes that may die before they were ready, one after the other, until it is given up."""
_log = logging.getLogger("omnigraph.server")


@dataclass(slots=True)
class _Worker:
    """One process; whether it came so far that it listens."""

    process: subprocess.Popen[bytes]
    ready: threading.Event = field(default_factory=threading.Event)


class Supervisor:
    """Keeps so many processes running until it is told to stop."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = dict(environment)
        self._stop, self._reload = threading.Event(), threading.Event()
        self._listening = bind(settings)
        self._failures = 0

    def run(self, ready: Callable[[str], None]) -> None:
        """Start, tell the address once all listen, and replace what dies."""
        for number in STOP:
            signal.signal(number, lambda *_: self._stop.set())
        signal.signal(RELOAD, lambda *_: self._reload.set())
        accept_reload()
        with (
            tempfile.TemporaryDirectory(prefix="omnigraph-") as folder,
            tempfile.TemporaryDirectory(prefix="omnigraph-turns-") as turns,
        ):
            self._environment[SHARED_METRICS] = folder
            self._settings = msgspec.structs.replace(self._settings, turns=turns)
            workers = [self._start() for _ in range(self._settings.workers)]
            try:
                if self._all_ready(workers):
                    ready(address(self._listening))
                while not self._stop.wait(0.1):
                    workers = [self._replaced(worker, folder) for worker in workers]
                    self._forward_reload(workers)
            finally:
                self._ended(workers)

    def _forward_reload(self, workers: list[_Worker]) -> None:
        """Let all workers reload; one that still starts keeps the signal until it listens."""
        if self._reload.is_set():
            self._reload.clear()
            for worker in workers:
                worker.process.send_signal(RELOAD)

    def _all_ready(self, workers: list[_Worker]) -> bool:
        """Wait until all workers listen; False when the server is stopped before."""
        for worker in workers:
            while not worker.ready.wait(0.05):
                if self._stop.is_set():
                    return False
                if worker.process.poll() is not None:
                    raise _failed()
        return True

    def _start(self) -> _Worker:
        fd = self._listening.fileno()
        with signals_blocked():
            process = subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-m", "omnigraph.server.worker", str(fd)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[fd],
                env=self._environment,
                start_new_session=True,
            )
        worker = _Worker(process)
        threading.Thread(target=self._introduce, args=(worker,), daemon=True).start()
        return worker

    def _introduce(self, worker: _Worker) -> None:
        """Tell a process what to serve, and wait until it does."""
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

    def _replaced(self, worker: _Worker, folder: str) -> _Worker:
        code = worker.process.poll()
        if code is None:
            return worker
        self._failures = 0 if worker.ready.is_set() else self._failures + 1
        if self._failures >= FAILURES:
            raise _failed()
        mark_process_dead(worker.process.pid, folder)  # type: ignore[no-untyped-call]
        _log.error("process %d ended with %d; another takes its place", worker.process.pid, code)
        _let_go(worker)
        return self._start()

    def _ended(self, workers: list[_Worker]) -> None:
        """Let every process finish what is under way; end those that do not."""
        self._listening.close()
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
            _let_go(worker)


def _log_exit(process: subprocess.Popen[bytes]) -> None:
    code = process.returncode
    level = logging.ERROR if code else logging.INFO
    facts = {"pid": process.pid, "exit_code": code}
    _log.log(level, "worker process %d exited with code %d", process.pid, code, extra=facts)


def _let_go(worker: _Worker) -> None:
    for pipe in (worker.process.stdin, worker.process.stdout):
        if pipe is not None:
            pipe.close()


def _failed() -> OmniError:
    message = "the processes of the server cannot be started; their log says why"
    return OmniError(message, code="workers_failed", category=Category.UNAVAILABLE)
