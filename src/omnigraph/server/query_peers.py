"""Reach the running queries of the other processes of a server.

Each process listens on a Unix socket in the folder that its supervisor made for all of them, and
answers one request per connection: a line of JSON, answered by another. Nothing is written while a
query runs.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from omnigraph.errors import Category, OmniError
from omnigraph.query.running import RunningQueries, RunningQuery

_SOCKET_NAME = "queries-{}.sock"
_SECONDS = 5.0
"""Seconds that another process may take to answer."""
_log = logging.getLogger("omnigraph.server")


class _PeerRequest(Struct, kw_only=True):
    """The graph whose queries are wanted, or the query that is to be cancelled."""

    graph: str
    cancel: str | None = None
    owner: str | None = None


class _PeerAnswer(Struct, kw_only=True):
    """The queries that run, or whether one was cancelled."""

    queries: list[RunningQuery] = []
    cancelled: bool = False


class WorkerQueries:
    """The running queries of the other processes of a server, which it lets reach its own."""

    def __init__(self, folder: Path, own: RunningQueries) -> None:
        self._folder, self._own = folder, own
        self._path = folder / _SOCKET_NAME.format(os.getpid())
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def start(self) -> None:
        """Answer the other processes, in a thread."""
        try:
            self._path.unlink(missing_ok=True)
            self._listening.bind(str(self._path))
            self._listening.listen()
        except OSError as error:  # the path of the folder is too long for a socket
            _log.error("other processes cannot list the queries of this one: %s", error)
            return
        threading.Thread(target=self._serve, name="omnigraph-queries", daemon=True).start()

    def list(self, graph: str) -> list[RunningQuery]:
        """Return the queries of a graph that run in other processes."""
        return [q for answer in self._ask(_PeerRequest(graph=graph)) for q in answer.queries]

    def cancel(self, id_: str, graph: str, owner: str | None) -> bool:
        """Cancel a query of another process; return whether it runs in one."""
        request = _PeerRequest(graph=graph, cancel=id_, owner=owner)
        return any(answer.cancelled for answer in self._ask(request))

    def _ask(self, request: _PeerRequest) -> Iterator[_PeerAnswer]:
        """Send a request to each other process; one that has ended runs no queries."""
        for path in sorted(self._folder.glob(_SOCKET_NAME.format("*"))):
            if path == self._path:
                continue
            try:
                yield _ask_one(path, request)
            except (ConnectionError, FileNotFoundError):
                path.unlink(missing_ok=True)
            except (OSError, msgspec.DecodeError) as error:
                message = f"a process of the server did not report its running queries: {error}"
                raise OmniError(
                    message, code="worker_unreachable", category=Category.UNAVAILABLE
                ) from error

    def _serve(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            with connection:
                connection.settimeout(_SECONDS)
                try:
                    request = msgspec.json.decode(_read_line(connection), type=_PeerRequest)
                    connection.sendall(msgspec.json.encode(self._answer(request)) + b"\n")
                except (OSError, msgspec.DecodeError) as error:
                    _log.warning("a request for running queries was not answered: %s", error)

    def _answer(self, request: _PeerRequest) -> _PeerAnswer:
        if request.cancel is None:
            return _PeerAnswer(queries=self._own.here(request.graph))
        cancelled = self._own.cancel_here(request.cancel, request.graph, request.owner)
        return _PeerAnswer(cancelled=cancelled)


def _ask_one(path: Path, request: _PeerRequest) -> _PeerAnswer:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(str(path))
        connection.sendall(msgspec.json.encode(request) + b"\n")
        return msgspec.json.decode(_read_line(connection), type=_PeerAnswer)


def _read_line(connection: socket.socket) -> bytes:
    """Return what is sent up to the end of the line; raise ConnectionError when there is none."""
    with connection.makefile("rb") as lines:
        line = lines.readline()
    if not line:
        raise ConnectionError("the connection was closed")
    return line
