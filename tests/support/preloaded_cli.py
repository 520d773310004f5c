"""Starts the program `omnigraph` in processes that have its imports behind them.

Most of a short command is imports. One process makes them once and then forks a child per command:
a process of its own, with its own arguments, folder, environment and streams. A server goes on
beside the tests, and its parent reports how it ended.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

import click

_ROOT = Path(__file__).resolve().parents[2]
_LIMIT = 1 << 20


_SERVER = (
    "omnigraph.server.serve",
    "omnigraph.server.run",
    "omnigraph.server.app",
    "omnigraph.server.supervisor",
    "omnigraph.server.worker",
)
"""What a server imports when it starts."""


class Started:
    """A program that goes on, with the part of the interface of `Popen` that tests need."""

    def __init__(self, report: int, stdout: int, stderr: int) -> None:
        self._report = os.fdopen(report)
        self.pid = int(self._report.readline())
        self.returncode: int | None = None
        self.stdout: TextIO = os.fdopen(stdout)
        self.stderr: TextIO = os.fdopen(stderr)

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("omnigraph", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it by force."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            self.returncode = int(self._report.readline())
            self._report.close()
        return self.returncode


class Warm:
    """A process from which the program is started."""

    def __init__(self) -> None:
        self._free = Lock()
        # A stream would split the messages of long command lines.
        self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.preloaded_cli", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=_ROOT,
        )
        theirs.close()

    def run(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int]
    ) -> int:
        """Run the program with these streams as its three; return its exit code."""
        if not self._free.acquire(blocking=False):
            return _run_apart(arguments, cwd, env, streams)
        request = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], list(streams))
            return int(self._socket.recv(16))
        except BaseException:
            # The exit code that was not received would be taken for that of the next command.
            warm.cache_clear()
            self._process.kill()
            raise
        finally:
            self._free.release()

    def start(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Started:
        """Start the program, and return while it runs."""
        pipes = [os.pipe() for _ in range(3)]
        readers, writers = [pipe[0] for pipe in pipes], [pipe[1] for pipe in pipes]
        request = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
        with open(os.devnull) as nothing:
            given = [nothing.fileno(), *writers]
            socket.send_fds(self._socket, [json.dumps(request).encode()], given)
        for writer in writers:
            os.close(writer)
        stdout, stderr, report = readers
        return Started(report, stdout, stderr)

    def end(self) -> None:
        """Let the process go."""
        self._socket.close()
        self._process.wait()


def _run_apart(
    arguments: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int]
) -> int:
    """Run the program beside another one that a thread of the test runs."""
    command = [sys.executable, "-m", "omnigraph.cli", *arguments]
    stdin, stdout, stderr = streams
    apart = subprocess.run(
        command, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, check=False
    )
    return apart.returncode


@cache
def warm() -> Warm:
    """Return the process of this test run."""
    made = Warm()
    atexit.register(made.end)
    return made


def _serve(descriptor: int) -> None:
    app = import_module("omnigraph.cli.app")
    for name in app.COMMANDS:
        app.cli.get_command(click.Context(app.cli), name)
    import_module("omnigraph.graph")
    # Nothing of Lance but its import has happened here.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    with socket.socket(fileno=descriptor) as door:
        while True:
            data, streams, _, _ = socket.recv_fds(door, _LIMIT, 4)
            _reap()
            if not data:
                return
            goes_on = len(streams) == 4
            if goes_on:
                for name in _SERVER:
                    import_module(name)
            child = os.fork()
            if child == 0:
                os.close(door.detach())
                if goes_on:
                    _look_after(json.loads(data), streams)
                _become(json.loads(data), streams)
            for stream in streams:
                os.close(stream)
            if not goes_on:
                _, status = os.waitpid(child, 0)
                door.send(str(os.waitstatus_to_exitcode(status)).encode())


def _reap() -> None:
    """Forget the parents of servers that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _look_after(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Start the program in a child, report its process and how that ended, and exit."""
    *own, report = streams
    child = os.fork()
    if child == 0:
        os.close(report)
        _become(request, own)
    for stream in own:
        os.close(stream)
    os.write(report, f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Be the program from here on."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate("rww")
    )
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["omnigraph", *request["arguments"]]
    code = 1
    try:
        import_module("omnigraph.cli.app").main()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
