"""One of several server processes: `python -m omnigraph.server.worker FD [FD ...]`.

It reads its settings from standard input and accepts connections from a socket it inherits, the
first of its arguments; the others are the sockets of other workers. When
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
    listening, *others = (socket.socket(fileno=int(text)) for text in sys.argv[1:])
    for other in others:
        other.setblocking(False)
    try:
        run(
            settings,
            os.environ,
            listen=lambda: listening,
            ready=lambda _: _ready(),
            others=others,
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
