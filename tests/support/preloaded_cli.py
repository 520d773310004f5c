"""Starts the program `omnigraph` in processes that have its imports behind them.

Most of a short command is imports. One process makes them once and then forks a child per command:
a process of its own, with its own arguments, folder, environment and streams. A server goes on
beside the tests, and its parent reports how it ended; that parent also forks the processes of a
server that has several.
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, BinaryIO, NoReturn, TextIO

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


class _Reported:
    """A process whose parent reports it, with the part of the interface of `Popen` in use."""

    def __init__(self, report: int) -> None:
        self._report = os.fdopen(report)
        self.pid = int(self._report.readline())
        self.returncode: int | None = None

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

    def terminate(self) -> None:
        """Ask it to stop."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it by force."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            self.returncode = int(self._report.readline())
            self._report.close()
        return self.returncode


class Started(_Reported):
    """A program that goes on."""

    def __init__(self, report: int, stdout: int, stderr: int) -> None:
        super().__init__(report)
        self.stdout: TextIO = os.fdopen(stdout)
        self.stderr: TextIO = os.fdopen(stderr)


class _Worker(_Reported):
    """A process of a server, forked by the parent of the server."""

    def __init__(self, forker: socket.socket, command: Sequence[str], **options: Any) -> None:
        (theirs_in, ours_in), (ours_out, theirs_out), (report, theirs) = (
            os.pipe() for _ in range(3)
        )
        request = {"module": command[2], "env": dict(options["env"])}
        files = [theirs_in, theirs_out, theirs, *options["pass_fds"]]
        socket.send_fds(forker, [json.dumps(request).encode()], files)
        for file in files[:3]:
            os.close(file)
        self.stdin: BinaryIO = os.fdopen(ours_in, "wb")
        self.stdout: BinaryIO = os.fdopen(ours_out, "rb")
        super().__init__(report)


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


def _look_after(request: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Run a server in a child, fork its workers, report how it ended, and exit."""
    *own, report = streams
    requests, forker = socket.socketpair(type=socket.SOCK_SEQPACKET)

    def serve() -> NoReturn:
        requests.close()
        _fork_workers(forker)
        _become(request, own)

    child = _fork_child(serve, report)
    forker.close()
    while True:
        data, files, _, _ = socket.recv_fds(requests, _LIMIT, 8)
        if not data:  # the server has ended
            _report_end(child, report)
        if os.fork() == 0:
            requests.close()
            stdin, stdout, worker_report, *sockets = files
            streams = (stdin, stdout, own[2])
            start = partial(_become_worker, json.loads(data), streams, sockets)
            _report_end(_fork_child(start, worker_report), worker_report)
        for file in files:
            os.close(file)


def _fork_child(run: Callable[[], NoReturn], report: int) -> int:
    """Run a function in a child, and report its process."""
    child = os.fork()
    if child == 0:
        os.close(report)
        run()
    os.write(report, f"{child}\n".encode())
    return child


def _report_end(child: int, report: int) -> NoReturn:
    """Report how a child ended, and exit."""
    _, status = os.waitpid(child, 0)
    os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _fork_workers(forker: socket.socket) -> None:
    """Let the server of this process get its workers from its parent."""
    supervisor: Any = import_module("omnigraph.server.supervisor")
    supervisor.subprocess = SimpleNamespace(
        Popen=partial(_Worker, forker),
        PIPE=subprocess.PIPE,
        TimeoutExpired=subprocess.TimeoutExpired,
    )


def _become_worker(
    request: Mapping[str, Any], streams: Sequence[int], sockets: Sequence[int]
) -> NoReturn:
    """Be a process of a server, with signals blocked as a server starts them."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    # Metrics look for the folder they share when they are imported.
    for name in [n for n in sys.modules if n.startswith(("prometheus_client", "omnigraph.server"))]:
        del sys.modules[name]
    _run(request["module"], streams, request["env"], map(str, sockets))


def _become(request: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be the program from here on."""
    os.chdir(request["cwd"])
    _run("omnigraph.cli.app", streams, request["env"], request["arguments"])


def _run(
    module: str, streams: Sequence[int], env: Mapping[str, str], arguments: Iterable[str]
) -> NoReturn:
    """Run `main()` of a module with these streams, and exit."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["omnigraph", *arguments]
    code = 1
    try:
        import_module(module).main()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
