"""One of several server processes: `python -m omnigraph.server.worker FD`.

It reads its settings from standard input and accepts connections from a socket it inherits. When
the supervisor is gone, standard input ends, and the process stops.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

import msgspec

from omnigraph.errors import OmniError
from omnigraph.server.logs import configure
from omnigraph.server.run import run
from omnigraph.server.settings import Settings
from omnigraph.server.signals import stopping_normally


def main() -> None:
    """Serve."""
    with stopping_normally():
        _serve()


def _serve() -> None:
    configure(os.environ)
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    threading.Thread(target=_orphaned, daemon=True).start()
    try:
        run(
            settings,
            os.environ,
            listen=lambda: socket.socket(fileno=int(sys.argv[1])),
            ready=lambda _: _ready(),
            shared=True,
        )
    except OmniError as error:
        sys.stderr.write(f"error[{error.code}]: {error.message}\n")
        sys.exit(1)


def _ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def _orphaned() -> None:
    # Not `sys.stdin`: a daemon thread that holds its lock aborts the interpreter when it exits.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
