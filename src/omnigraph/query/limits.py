"""Limits of a query: time, memory, cancellation, and the engine that runs it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Protocol, TypeVar

import pyarrow as pa

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.query.spill_file import SpilledBatch, SpillFile

DEFAULT_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
"""Bytes that the rows of one query may take."""
DEFAULT_DISK_BYTES = 16 * 1024 * 1024 * 1024
"""Bytes of temporary files of all queries of a process."""
BATCH_SHARE = 8
"""A query that runs in batches makes rows of at most one of this many parts of its memory."""
MAX_BATCH_BYTES = 512 * 1024 * 1024
"""Bytes of one batch at most: a column of texts has 32-bit offsets."""
APART_ROWS = 100_000
"""Rows from which on work that cannot be stopped is done apart."""
_POLL_SECONDS = 0.02
"""Seconds between two checks while work is done apart."""
MEMORY_CODE = "query_memory"
"""The error code of a query that does not fit its memory limit."""


_AnswerT = TypeVar("_AnswerT")


class Cancellation:
    """A flag that stops the queries that run under it at their next check."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        """Stop the queries; from any thread."""
        self.is_set = True

    def run(self, work: Callable[[], _AnswerT]) -> _AnswerT:
        """Run something whose queries stop when this is set."""
        token = _cancellation.set(self)
        try:
            return work()
        finally:
            _cancellation.reset(token)

    def check(self, operator: str) -> None:
        """Raise QueryCancelled when this is set."""
        if self.is_set:
            raise _cancelled(operator)


NEVER_CANCELLED = Cancellation()
"""For what is finished once it has begun."""
_cancellation: ContextVar[Cancellation] = ContextVar("cancellation", default=NEVER_CANCELLED)


def check_cancelled(operator: str) -> None:
    """Raise QueryCancelled when the request on whose behalf code runs is cancelled."""
    _cancellation.get().check(operator)


class QueryCancelled(OmniError):
    """A query was stopped since nothing waits for its result any more."""


def _cancelled(operator: str) -> QueryCancelled:
    message = f"the query was cancelled; it was at {operator}"
    return QueryCancelled(message, code="query_cancelled", category=Category.UNAVAILABLE)


class QueryLimit(OmniError):
    """A query took more time or memory than it may."""

    def __init__(self, message: str, *, code: str, operator: str, limit: float) -> None:
        details = {"operator": operator, "limit": limit}
        super().__init__(message, code=code, category=Category.LIMIT, details=details)


class MemoryPool:
    """Memory that concurrent queries share: what one of them holds, the others cannot get."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._lock = Lock()

    def set_limit(self, limit: int) -> None:
        """Change how much there is; queries that run keep what they hold."""
        if limit < 0:
            message = f"the memory or disk space of all queries is a number from 0 up, not {limit}"
            raise InvalidInput(message, code="query_limit_invalid")
        self.limit = limit

    def take(self, size: int) -> bool:
        """Reserve bytes, unless too few are left."""
        with self._lock:
            if self.used + size > self.limit:
                return False
            self.used += size
            return True

    def give_back(self, size: int) -> None:
        """Return bytes that were reserved."""
        with self._lock:
            self.used -= size


def _default_process_memory() -> int:
    """Return half the memory of the machine, and enough for two queries in any case."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(machine // 2, 2 * DEFAULT_MEMORY_BYTES)


PROCESS_MEMORY = MemoryPool(_default_process_memory())
"""What all queries of this process share."""


PROCESS_DISK = MemoryPool(DEFAULT_DISK_BYTES)
"""What the temporary files of all queries of this process share."""


def set_query_disk(total: int) -> None:
    """Set how many bytes the temporary files of all queries of this process may take together."""
    PROCESS_DISK.set_limit(total)


def set_query_memory(total: int) -> None:
    """Set how many bytes the rows of all queries of this process may take together."""
    PROCESS_MEMORY.set_limit(total)


class QueryObserver(Protocol):
    """Follows a query from its begin to its end."""

    def begin(self) -> None:
        """Note that the query begins."""

    def check(self, operator: str) -> None:
        """Raise QueryCancelled when the query is to stop; it is at an operator."""

    def end(self) -> None:
        """Note that the query ended; it may be noted again."""


@dataclass(slots=True)
class QueryBudget:
    """What is left of a query's time, and how much memory its rows may take."""

    seconds: float | None = None
    memory: int = DEFAULT_MEMORY_BYTES
    pool: MemoryPool = PROCESS_MEMORY
    observer: QueryObserver | None = None
    disk: MemoryPool = PROCESS_DISK
    _begun: float = field(default_factory=time.monotonic)
    _held: int = 0
    _share: int = 1
    _file: SpillFile | None = None
    _ended: bool = False
    _cancellation: Cancellation = field(default_factory=_cancellation.get)

    def __post_init__(self) -> None:
        limits: dict[str, object] = {"timeout": self.seconds, "memory": self.memory}
        for name, limit in limits.items():
            # NaN is not above 0 either.
            if limit is not None and not (isinstance(limit, int | float) and limit >= 0):
                message = f"the {name} of a query is a number from 0 up, not {limit!r}"
                raise InvalidInput(message, code="query_limit_invalid")

    def check(self, operator: str, rows: int = 0, columns: int = 0) -> None:
        """Raise QueryLimit when time is up, or the rows would not fit.

        Raises QueryCancelled when the query was cancelled.
        """
        self.check_cancelled(operator)
        if self._ended:  # work was left to itself when the query ended
            raise _cancelled(operator)
        if self.seconds is not None and time.monotonic() - self._begun > self.seconds:
            message = f"the query took longer than {self.seconds:g} s; it was at {operator}"
            raise QueryLimit(message, code="query_timeout", operator=operator, limit=self.seconds)
        self._hold(operator, rows * columns * 8, f"{rows:,} rows")

    def check_cancelled(self, operator: str) -> None:
        """Raise QueryCancelled when the query was cancelled."""
        self._cancellation.check(operator)
        if self.observer is not None:
            self.observer.check(operator)

    @property
    def left(self) -> float | None:
        """The seconds that are left; None when there is no limit."""
        if self.seconds is None:
            return None
        return max(0.0, self.seconds - (time.monotonic() - self._begun))

    def check_bytes(self, operator: str, size: int) -> None:
        """Raise QueryLimit when the bytes would not fit."""
        self._hold(operator, size, f"{size:,} bytes")

    @property
    def limit(self) -> int:
        """The bytes that the query may hold."""
        return min(self.memory, self.pool.limit)

    @property
    def step_memory(self) -> int:
        """The bytes that one operator may hold: a part of the limit while it runs in batches."""
        if self._share == 1:
            return self.limit
        return min(self.limit // self._share, MAX_BATCH_BYTES)

    # --- temporary files -----------------------------------------------------------------------

    def begin_batches(self) -> None:
        """Run in batches from now on: reserve all memory, of which operators get a part each."""
        self.check_bytes("Query", self.limit)
        self._share = BATCH_SHARE

    @property
    def spilled_bytes(self) -> int:
        """The bytes that were written to the temporary file of the query."""
        return 0 if self._file is None else self._file.size

    def spill(self, operator: str, batch: pa.RecordBatch) -> SpilledBatch:
        """Write rows to the temporary file of the query; it is deleted when the query ends."""
        self.check(operator)
        if self._file is None:
            self._file = SpillFile()
        size = self._file.written_size(batch)
        if not self.disk.take(size):
            message = (
                f"{operator} would write {self.spilled_bytes + size:,} bytes to a temporary file; "
                f"all queries of this process may write {self.disk.limit:,}. Narrow the match, "
                "add a limit, or raise the bound with omnigraph.set_query_disk(total)"
            )
            raise QueryLimit(message, code="query_disk", operator=operator, limit=self.disk.limit)
        try:
            return self._file.write(batch)
        except BaseException:
            self.disk.give_back(size)
            raise

    @contextmanager
    def kept(self, *, streams: bool = False) -> Iterator[None]:
        """Release memory at the end, of a query that `streams` its rows only when it fails.

        When the machine has less memory than the query may hold, that is reported alike.
        """
        if self.observer is not None:
            self.observer.begin()
        running = _running.set(self)
        try:
            yield
        except BaseException as error:
            self.release()
            if not isinstance(error, MemoryError):
                raise
            message = "the query needs more memory than there is"
            limit = self.memory
            raise QueryLimit(message, code=MEMORY_CODE, operator="Query", limit=limit) from error
        finally:
            _running.reset(running)
        if not streams:
            self.release()

    def release(self) -> None:
        """Give back what the query holds of the memory of the process; it has ended."""
        self._ended = True
        if self.observer is not None:
            self.observer.end()
        held, self._held = self._held, 0
        if held:
            self.pool.give_back(held)
        file, self._file = self._file, None
        if file is not None:
            self.disk.give_back(file.size)
            file.close()

    def _hold(self, operator: str, size: int, what: str) -> None:
        """Reserve memory before it is allocated: what the largest operator so far needs."""
        limit = self.limit
        if size > self.step_memory:
            message = f"{operator} would make {what}, more than the query may hold in memory"
            raise QueryLimit(message, code=MEMORY_CODE, operator=operator, limit=limit)
        if size <= self._held:
            return
        if not self.pool.take(size - self._held):
            message = (
                f"{operator} would make {what}; other queries of this process hold the memory "
                f"for that, {self.pool.limit:,} bytes in all. Try again later"
            )
            raise QueryLimit(
                message, code="query_memory_busy", operator=operator, limit=self.pool.limit
            )
        self._held = size


_running: ContextVar[QueryBudget | None] = ContextVar("running query", default=None)
"""The query on whose behalf code runs."""


# ----------------------------------------------------------------------
# Work that cannot be stopped: one call of Arrow, NumPy or Lance over many rows.


def run_apart(work: Callable[[], _AnswerT], check: Callable[[], None]) -> _AnswerT:
    """Do work in a thread of its own, and call `check` until it is done.

    When `check` raises, the work is left to itself: it ends soon, and nothing uses its result.
    """
    done: Future[_AnswerT] = Future()
    context = copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised by the caller
            done.set_exception(error)

    Thread(target=run, name="omnigraph-apart").start()
    while not wait((done,), _POLL_SECONDS).done:
        check()
    return done.result()


def run_large(operator: str, rows: int, work: Callable[[], _AnswerT]) -> _AnswerT:
    """Do work over a number of rows for the running query, which ends when it has to."""
    budget = _running.get()
    if budget is None or rows < APART_ROWS:
        return work()
    return run_apart(work, lambda: budget.check(operator))


@contextmanager
def holding(lock: Lock, operator: str) -> Iterator[None]:
    """Hold a lock; the running query waits for it no longer than it may."""
    budget = _running.get()
    while not lock.acquire(timeout=_POLL_SECONDS):
        if budget is not None:
            budget.check(operator)
    try:
        yield
    finally:
        lock.release()


# ----------------------------------------------------------------------
# Chunking: long work in parts, so that limits are checked and all cores are used.


def chunk_slices(total: int, size: int) -> Iterator[slice]:
    """Yield ranges that cover a number of rows, a part at a time."""
    return (slice(at, min(at + size, total)) for at in range(0, total, size))


def run_in_parallel(work: Callable[[slice], None], parts: Iterator[slice]) -> None:
    """Do work on parts that have nothing to do with each other; it must let go of the lock."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(work, part) for part in parts]:
            done.result()
