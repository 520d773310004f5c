"""Starts the program `omnigraph` in processes that have its imports behind them.

Most of a short command is imports. One process makes them once and then forks a child per command:
a process of its own, with its own arguments, folder, environment and streams.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_LIMIT = 1 << 20


class Warm:
    """A process from which the program is started."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
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
        request = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
        socket.send_fds(self._socket, [json.dumps(request).encode()], list(streams))
        return int(self._socket.recv(16))

    def end(self) -> None:
        """Let the process go."""
        self._socket.close()
        self._process.wait()


@cache
def warm() -> Warm:
    """Return the process of this test run."""
    made = Warm()
    atexit.register(made.end)
    return made


def _serve(descriptor: int) -> None:
    app = import_module("omnigraph.cli.app")
    for name in app.COMMANDS:
        app.cli.get_command(None, name)
    import_module("omnigraph.graph")
    # Nothing of Lance but its import has happened here.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    with socket.socket(fileno=descriptor) as door:
        while True:
            data, streams, _, _ = socket.recv_fds(door, _LIMIT, 3)
            if not data:
                return
            child = os.fork()
            if child == 0:
                door.detach()
                _become(json.loads(data), streams)
            for stream in streams:
                os.close(stream)
            _, status = os.waitpid(child, 0)
            door.send(str(os.waitstatus_to_exitcode(status)).encode())


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
