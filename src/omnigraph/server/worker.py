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
from omnigraph.server.logs import configure_logging
from omnigraph.server.process import exit_on_stop_signals
from omnigraph.server.run import run_server
from omnigraph.server.settings import ServerSettings


def main() -> None:
    """Serve until a signal stops the process, or its supervisor is gone."""
    with exit_on_stop_signals():
        _serve()


def _serve() -> None:
    configure_logging(os.environ)
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerSettings)
    threading.Thread(target=_stop_when_orphaned, daemon=True).start()
    listening, *others = (socket.socket(fileno=int(text)) for text in sys.argv[1:])
    for other in others:
        other.setblocking(False)
    try:
        run_server(
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


def _stop_when_orphaned() -> None:
    # Not `sys.stdin`: a daemon thread that holds its lock aborts the interpreter when it exits.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
