"""This module says how much a caller may take of a server: time, bytes, connections."""

from __future__ import annotations

from dataclasses import dataclass

MEBIBYTE = 1024 * 1024
BODY_BYTES = MEBIBYTE
LOAD_BYTES = 32 * MEBIBYTE
WRITERS = 64
"""Changes that may be under way or wait for each other, in one process."""
STREAM_CHUNK = 64 * 1024
"""Bytes of lines that are sent at once."""
STREAM_SHARE = 256 * 1024
"""Bytes one streamed answer may hold on its way."""
STREAMS = 8
"""Exports and baselines under way at once, in one process."""
STREAM_WAIT = 0.25
"""Seconds that one more waits for its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a caller may take.

    `deadline` is until an answer begins; a change under way is finished behind it. `body` is until
    a body has arrived, `send` until a piece of an answer has been taken, `idle` until an open
    connection has asked something, `shutdown` until what is under way is given up. A connection is
    closed with an answer once it is `age` seconds old, a quarter more or less.
    """

    deadline: float = 300.0
    body: float = 60.0
    send: float = 60.0
    idle: float = 30.0
    shutdown: float = 30.0
    age: float = 300.0
    threads: int = 8
    connections: int = 1_000
