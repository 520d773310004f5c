"""This module is one of several server processes: `python -m omnigraph.server.worker FD`.

It reads what to serve from standard input and takes connections from a socket it was given. When
whoever started it is gone, standard input ends, and so does it.
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


def main() -> None:
    """Serve."""
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
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
