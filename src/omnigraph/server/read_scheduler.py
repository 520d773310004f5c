"""Reads take turns: many at once, none of an actor's at the cost of another's.

A read starts in the fast lane. One that takes long moves to the heavy lane, which has threads of
its own, and its place goes to the next. In both lanes an actor has a part of the places only, so
that there is one left for a short read of another actor while long ones run.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from math import ceil
from typing import TypeVar

from omnigraph.query.limits import Cancellation, QueryCancelled
from omnigraph.server.metrics import ServerMetrics
from omnigraph.service.admission import ANONYMOUS, TooManyRequests

SLOW_READ_SECONDS = 0.5
"""Seconds after which a read is a heavy one."""
MAX_RETRY_SECONDS = 60
_AnswerT = TypeVar("_AnswerT")


class _ActorQueue(Enum):
    WAITING = auto()
    FAST = auto()
    HEAVY = auto()


@dataclass(slots=True, eq=False)
class _QueuedRead:
    """One read: whose it is, where it is, and the future of its turn."""

    actor: str
    turn: asyncio.Future[None]
    begun: float
    lane: _ActorQueue = _ActorQueue.WAITING
    timer: asyncio.TimerHandle | None = None


class ReadScheduler:
    """The reads of one process; used by its event loop only."""

    def __init__(self, places: int, actor_reads: int, metrics: ServerMetrics) -> None:
        self.threads = ThreadPoolExecutor(2 * places, thread_name_prefix="omnigraph")
        self._places, self._actor_reads, self._metrics = places, actor_reads, metrics
        # Of the fast lane a quarter, of the heavy lane a half is left to other actors.
        self._most = {
            _ActorQueue.FAST: max(places - max(places // 4, 1), 1),
            _ActorQueue.HEAVY: max(places // 2, 1),
        }
        self._held: Counter[str] = Counter()
        self._used: Counter[tuple[_ActorQueue, str]] = Counter()
        self._waiting: list[_QueuedRead] = []
        self._average = 0.0

    @contextmanager
    def admit(self, actor: str | None) -> Iterator[None]:
        """Count a request or a stream of an actor; raise TooManyRequests when it has too many."""
        name = actor if actor is not None else ANONYMOUS
        if self._held[name] >= self._actor_reads:
            message = f"{self._actor_reads} reads of actor '{name}' are under way; try later"
            raise TooManyRequests(message, retry_after=self._retry_after())
        self._held[name] += 1
        try:
            yield
        finally:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]

    async def run(
        self, actor: str | None, work: Callable[[], _AnswerT], cancellation: Cancellation
    ) -> _AnswerT:
        """Wait for a place and run something in a thread.

        The place is taken until the thread is done, also when nothing waits for it any more.
        """
        loop = asyncio.get_running_loop()
        name = actor if actor is not None else ANONYMOUS
        read = _QueuedRead(name, loop.create_future(), loop.time())
        self._waiting.append(read)
        self._start_waiting()
        try:
            await read.turn
        except BaseException:
            self._leave(read)
            raise
        context = contextvars.copy_context()
        future = self.threads.submit(context.run, cancellation.run, work)
        self._metrics.read_begun()

        def done(ended: Future[_AnswerT]) -> None:
            stopped = ended.cancelled() or isinstance(ended.exception(), QueryCancelled)
            # The loop is closed when the server has ended in the meantime.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._done, read, stopped)

        future.add_done_callback(done)
        return await asyncio.wrap_future(future)

    def _start_waiting(self) -> None:
        """Give free places to those that wait, in their order, as far as their actors may."""
        for read in list(self._waiting):
            if self._total(_ActorQueue.FAST) >= self._places:
                return
            if self._used[_ActorQueue.FAST, read.actor] < self._most[_ActorQueue.FAST]:
                self._waiting.remove(read)
                self._move(read, _ActorQueue.FAST)
                read.turn.set_result(None)

    def _move(self, read: _QueuedRead, lane: _ActorQueue) -> None:
        if read.lane is not _ActorQueue.WAITING:
            self._used[read.lane, read.actor] -= 1
        if lane is not _ActorQueue.WAITING:
            self._used[lane, read.actor] += 1
        self._used += Counter()  # drops what is zero
        read.lane = lane
        if read.timer is not None:
            read.timer.cancel()
        loop = asyncio.get_running_loop()
        is_fast = lane is _ActorQueue.FAST
        read.timer = loop.call_later(SLOW_READ_SECONDS, self._slow_down, read) if is_fast else None

    def _slow_down(self, read: _QueuedRead) -> None:
        """Move a read that takes long to the heavy lane, as soon as that has a place for it."""
        is_full = self._total(_ActorQueue.HEAVY) >= self._places
        if is_full or self._used[_ActorQueue.HEAVY, read.actor] >= self._most[_ActorQueue.HEAVY]:
            loop = asyncio.get_running_loop()
            read.timer = loop.call_later(SLOW_READ_SECONDS, self._slow_down, read)
            return
        self._move(read, _ActorQueue.HEAVY)
        self._start_waiting()

    def _total(self, lane: _ActorQueue) -> int:
        return sum(count for (used, _), count in self._used.items() if used is lane)

    def _done(self, read: _QueuedRead, stopped: bool) -> None:
        self._metrics.read_ended(cancelled=stopped)
        seconds = asyncio.get_running_loop().time() - read.begun
        self._average += 0.1 * (seconds - self._average)
        self._leave(read)

    def _leave(self, read: _QueuedRead) -> None:
        if read in self._waiting:
            self._waiting.remove(read)
        self._move(read, _ActorQueue.WAITING)
        self._start_waiting()

    def _retry_after(self) -> int:
        """Return the seconds after which a read that is refused should find a place."""
        return min(max(ceil(self._average), 1), MAX_RETRY_SECONDS)
