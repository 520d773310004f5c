"""Talk to servers byte by byte, as no polite client would."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 120.0


@contextmanager
def connected(address: tuple[str, int]) -> Iterator[socket.socket]:
    """Open a connection."""
    with socket.create_connection(address, timeout=PATIENCE) as found:
        yield found


def everything(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    parts = []
    while True:
        try:
            part = connection.recv(65_536)
        except ConnectionResetError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def raw(address: tuple[str, int], data: bytes) -> bytes:
    """Send bytes and return the answer of a server that is asked to close."""
    with connected(address) as connection:
        connection.sendall(data)
        return everything(connection)


def get(address: tuple[str, int], path: bytes, *headers: bytes) -> tuple[int, bytes]:
    """Ask for a path exactly as it is written; return the status and the body."""
    lines = [b"GET " + path + b" HTTP/1.1", b"Host: x", b"Connection: close", *headers]
    answer = raw(address, b"\r\n".join([*lines, b"", b""]))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), body


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
