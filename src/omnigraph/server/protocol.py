"""Close connections that are idle too long, and those that are old.

uvicorn waits for ever for the first request of a connection, and for the end of its headers.
"""

from __future__ import annotations

import asyncio
import random

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

_CLOSE = (b"connection", b"close")


class PatientProtocol(H11Protocol):
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

    def handle_events(self) -> None:
        """Begin requests; on an old connection, the one that begins is the last."""
        super().handle_events()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_started or self.loop.time() <= self._expires:
            return
        if _CLOSE not in cycle.default_headers:
            cycle.default_headers = [*cycle.default_headers, _CLOSE]

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
