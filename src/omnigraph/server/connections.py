"""Close connections that are idle too long, and those that are old.

uvicorn waits for ever for the first request of a connection, and for the end of its headers.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext, SSLError

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

_CLOSE_HEADER = (b"connection", b"close")


class LimitedHttpProtocol(H11Protocol):
    """HTTP on one connection; one that is idle too long, or one too many, is closed.

    An old one is closed by the header of an answer, so that no request is lost: clients connect
    again, and reach processes that were started in the meantime. Ages differ by chance, so that
    connections that were opened together are not closed together.
    """

    idle_seconds = 30.0
    age_seconds = 300.0
    connections_max = 1_000
    _since = 0.0
    _expires = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; make room among those that wait longest."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._expires = self._since + self.age_seconds * random.uniform(0.75, 1.25)  # noqa: S311
        self._timer = self.loop.call_later(self.idle_seconds, self._look)
        if len(self.connections) > self.connections_max:
            idle = [c for c in self.connections if isinstance(c, LimitedHttpProtocol) and c.is_idle]
            min(idle, key=lambda c: c._since).transport.close() if idle else transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Return whether no request is in progress."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def handle_events(self) -> None:
        """Begin requests; on an old connection, the one that begins is the last."""
        super().handle_events()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_started or self.loop.time() <= self._expires:
            return
        if _CLOSE_HEADER not in cycle.default_headers:
            cycle.default_headers = [*cycle.default_headers, _CLOSE_HEADER]

    def on_response_complete(self) -> None:
        """Begin to wait again."""
        self._since = self.loop.time()
        super().on_response_complete()

    def _look(self) -> None:
        """Close what has been idle long enough; else look again when it could be."""
        left = self._since + self.idle_seconds - self.loop.time()
        if self.is_idle and left <= 0:
            self.transport.close()
            return
        self._timer = self.loop.call_later(max(left, self.idle_seconds / 4), self._look)


# ----------------------------------------------------------------------
# Take connections from the sockets of other workers when those workers do not.
#
# Each worker has a socket of its own, over which the kernel spreads connections by chance. What
# waits at the socket of a worker that was killed, or is too busy to accept, is taken by another one
# after a short while instead of waiting for a replacement.


ACCEPT_POLL_SECONDS = 0.25
"""Seconds between looks at the sockets of other workers."""
ACCEPTS_PER_POLL = 64
"""Connections that are taken from one of them at a look."""


class PeerSocketAcceptor:
    """Looks at sockets of other workers from time to time."""

    def __init__(self, others: Sequence[socket.socket]) -> None:
        self._others = others
        self._task: asyncio.Task[None] | None = None
        self._connecting: set[asyncio.Task[None]] = set()

    def start(self, protocol: Callable[[], asyncio.Protocol], tls: SSLContext | None) -> None:
        """Begin to look."""
        if self._others:
            self._task = asyncio.ensure_future(self._look(protocol, tls))

    def stop(self) -> None:
        """Look no more, and close the sockets."""
        if self._task is not None:
            self._task.cancel()
        for other in self._others:
            other.close()

    async def _look(self, protocol: Callable[[], asyncio.Protocol], tls: SSLContext | None) -> None:
        while True:
            await asyncio.sleep(ACCEPT_POLL_SECONDS)
            for connection in [c for other in self._others for c in _accept_pending(other)]:
                task = asyncio.ensure_future(_connect(connection, protocol, tls))
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)


def _accept_pending(listening: socket.socket) -> list[socket.socket]:
    """Accept pending connections of a socket; none while its worker does not listen yet."""
    accepted: list[socket.socket] = []
    with suppress(OSError):
        while len(accepted) < ACCEPTS_PER_POLL:
            accepted.append(listening.accept()[0])
    return accepted


async def _connect(
    connection: socket.socket, protocol: Callable[[], asyncio.Protocol], tls: SSLContext | None
) -> None:
    connection.setblocking(False)
    # As with any other connection, a client that disconnects in between is not our error.
    with suppress(OSError, SSLError):
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(protocol, connection, ssl=tls)
