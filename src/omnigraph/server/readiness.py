"""Whether storage answers: a cheap read of each graph, bounded in time and kept for a second."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from omnigraph.errors import Category, OmniError
from omnigraph.service.graph_registry import RegisteredGraph

PROBE_SECONDS = 2.0
"""Seconds within which storage has to answer."""
PROBE_CACHE_SECONDS = 1.0
"""Seconds for which an answer is used again."""
_log = logging.getLogger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class _StorageProbe:
    began: float
    answer: asyncio.Future[bool]


@dataclass(slots=True)
class StorageReadiness:
    """The last probe of each graph; there is at most one under way for each."""

    _probes: dict[str, _StorageProbe] = field(default_factory=dict)
    revision_refused: int | None = None
    """The applied revision of a cluster that cannot be served; an older one is."""

    async def is_ready(self, served: RegisteredGraph) -> bool:
        """Return whether the storage of a graph answers in time."""
        loop = asyncio.get_running_loop()
        probe = self._probes.get(served.id)
        if probe is None or (
            probe.answer.done() and loop.time() - probe.began > PROBE_CACHE_SECONDS
        ):
            probe = _StorageProbe(loop.time(), loop.create_future())
            self._probes[served.id] = probe
            arguments = (served, loop, probe.answer)
            # A daemon: storage that never answers does not keep the process from ending.
            threading.Thread(target=_probe_graph, args=arguments, daemon=True).start()
        left = max(probe.began + PROBE_SECONDS - loop.time(), 0)
        try:
            async with asyncio.timeout(left):
                return await asyncio.shield(probe.answer)
        except TimeoutError:
            _log.warning("storage of graph '%s' did not answer in time", served.id)
            return False

    async def count(self, graphs: Iterable[RegisteredGraph]) -> int:
        """Return of how many graphs the storage answers."""
        return sum(await asyncio.gather(*(self.is_ready(served) for served in graphs)))


def _probe_graph(
    served: RegisteredGraph, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[bool]
) -> None:
    try:
        served.unrestricted.snapshot()
        ready = True
    except Exception as error:  # noqa: BLE001 - any failure means that it is not ready
        _log.warning("storage of graph '%s' does not answer: %s", served.id, error)
        ready = False
    # The loop is closed when the server has ended in the meantime.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(answer.set_result, ready)


def not_ready(message: str, ready: int, graphs: int) -> OmniError:
    """Return the error for storage that does not answer."""
    details = {"graphs": graphs, "graphs_ready": ready}
    return OmniError(message, code="not_ready", category=Category.UNAVAILABLE, details=details)
