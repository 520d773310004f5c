"""This module keeps connections from lying about idle: each asks something in time, or goes.

uvicorn waits for ever for the first request of a connection, and for the end of its headers.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle


class PatientProtocol(H11Protocol):
    """HTTP on one connection; one that is idle too long, or one too many, is closed."""

    idle_seconds = 30.0
    connections_max = 1_000
    _since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; make room among those that wait longest."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._timer = self.loop.call_later(self.idle_seconds, self._look)
        if len(self.connections) > self.connections_max:
            idle = [c for c in self.connections if isinstance(c, PatientProtocol) and c.is_idle]
            min(idle, key=lambda c: c._since).transport.close() if idle else transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Tell whether no request is under way."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

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
