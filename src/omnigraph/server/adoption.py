"""Take connections from the sockets of other workers when those workers do not.

Each worker has a socket of its own, over which the kernel spreads connections by chance. What
waits at the socket of a worker that was killed, or is too busy to accept, is taken by another one
after a short while instead of waiting for a replacement.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext, SSLError

LOOK_SECONDS = 0.25
"""Seconds between looks at the sockets of other workers."""
AT_ONCE = 64
"""Connections that are taken from one of them at a look."""


class Adoption:
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
            await asyncio.sleep(LOOK_SECONDS)
            for connection in [c for other in self._others for c in _waiting(other)]:
                task = asyncio.ensure_future(_connect(connection, protocol, tls))
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)


def _waiting(listening: socket.socket) -> list[socket.socket]:
    """Accept what waits at a socket; nothing does, too, while its worker does not yet listen."""
    found: list[socket.socket] = []
    with suppress(OSError):
        while len(found) < AT_ONCE:
            found.append(listening.accept()[0])
    return found


async def _connect(
    connection: socket.socket, protocol: Callable[[], asyncio.Protocol], tls: SSLContext | None
) -> None:
    connection.setblocking(False)
    # As with any other connection, a client that goes away in between is no error of the server.
    with suppress(OSError, SSLError):
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(protocol, connection, ssl=tls)
