"""Queues of changes, one per branch and process: the first that waits publishes for all.

A change joins the queue of its branch. If no change is being published, its caller becomes the
leader: it takes the changes that wait, in order, and publishes them as one group. A change too
large for a group takes a turn alone. Leadership passes to the change that has waited longest.

Processes on one machine take turns by two lock files per branch. While another process has the
turn, the leader prepares its group, so that the turn itself is short; on a disk the process with
the turn may publish the group with its own (`prepared_groups.py`). Neither queue nor locks are
needed for correctness, which the compare-and-swap of the manifest decides: they keep writers from
preparing changes that would lose the race.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from omnigraph.commit.commit_events import CommitEvent, report
from omnigraph.commit.prepared_groups import PreparedGroups
from omnigraph.errors import Contention
from omnigraph.storage import Location

try:
    import fcntl
except ImportError:  # a system without file locks
    fcntl = None  # type: ignore[assignment]

MAX_GROUP = 64
"""Number of changes that one group publishes."""
LOCKS = "_locks"
"""The folder of a graph that holds the lock files."""

_T = TypeVar("_T")


class QueuedChange(Generic[_T]):
    """A change in a queue, until its outcome is known.

    `in_doubt` means that an earlier leader may have published it.
    """

    __slots__ = (
        "_error",
        "_result",
        "_taken_up",
        "alone",
        "deadline",
        "done",
        "in_doubt",
        "joined_at",
        "leads",
        "wake",
    )

    def __init__(self, deadline: float, *, alone: bool = False) -> None:
        self.deadline = deadline
        self.alone = alone
        self.in_doubt = False
        self.joined_at = 0.0
        self.done = False
        self.leads = False
        self._taken_up = False
        self.wake = Event()
        self._result: _T | None = None
        self._error: BaseException | None = None

    def take_up(self) -> None:
        """Begin an attempt; raise Contention if it is not the first and the deadline has passed."""
        if self._taken_up and time.monotonic() > self.deadline:
            raise timed_out()
        self._taken_up = True

    def leave_queue(self) -> None:
        """Report how long it has waited in the queue of this process."""
        report(CommitEvent.QUEUE_WAIT, time.monotonic() - self.joined_at)

    def succeed(self, result: _T | None) -> None:
        """Record the result."""
        self._result, self.done = result, True

    def fail(self, error: BaseException) -> None:
        """Record the error that the caller gets."""
        self._error, self.done = error, True

    def outcome(self) -> _T | None:
        """Return the result, or raise the error."""
        assert self.done, "the outcome is known"
        if self._error is not None:
            raise self._error
        return self._result


_C = TypeVar("_C", bound=QueuedChange[Any])


class Turn:
    """The turn of this process among those that write to a branch; by default there are no others.

    It may not be held yet: then the leader has time to prepare until it calls `wait`. `groups` are
    those that waiting processes leave for the one that has the turn.
    """

    groups: PreparedGroups | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process has the turn."""
        return True

    def wait(self, until: Callable[[], bool] = lambda: False, *, seconds: float = 0.0) -> None:
        """Wait for the turn; go on without it when the deadline has passed.

        It need not be waited for when `until` is true. `seconds` is the least time to wait.
        """


class CommitQueue(Generic[_C]):
    """The changes of one branch that wait in this process."""

    def __init__(self, locks: TurnLocks | None = None) -> None:
        self._waiting: deque[_C] = deque()
        self._busy = False
        self._lock = Lock()
        self._locks = locks

    def run(self, change: _C, lead: Callable[[Sequence[_C], Turn], None]) -> None:
        """Wait until the change is done; `lead` publishes a group, and may leave changes undone.

        It waits for its turn before it publishes.

        Raises:
            Contention: the deadline has passed before the change was taken up.
        """
        self._join(change)
        try:
            while not change.done:
                if not change.leads:
                    self._wait(change)
                    continue
                self._lead(change, lead)
        except BaseException:
            self._abandon(change)
            raise

    @contextmanager
    def turn(self, change: _C) -> Iterator[None]:
        """Wait for a turn of its own, and hold it."""
        self._join(change)
        try:
            while not change.leads:
                self._wait(change)
            change.leave_queue()
            with self._turn_of_process(change.deadline) as turn:
                turn.wait()
                yield
        finally:
            self._abandon(change)

    def _join(self, change: _C) -> None:
        change.joined_at = time.monotonic()
        with self._lock:
            self._waiting.append(change)
            if not self._busy:
                self._busy = change.leads = True

    def _wait(self, change: _C) -> None:
        """Wait for an outcome or for leadership; give up at the deadline unless it is taken up."""
        if change.wake.wait(max(0.0, change.deadline - time.monotonic())):
            change.wake.clear()
            return
        with self._lock:
            if change.done or change.leads or change not in self._waiting:
                late = False  # a leader is about to publish it
            else:
                self._waiting.remove(change)
                late = True
        if late:
            raise timed_out()
        change.wake.wait()
        change.wake.clear()

    def _abandon(self, change: _C) -> None:
        """Take a change off the queue for good: no thread waits for it any more."""
        with self._lock:
            change.done = True  # a leader that has taken it does not return it to the queue
            if not change.leads:
                with suppress(ValueError):
                    self._waiting.remove(change)
        if change.leads:
            self._leave([change])

    def _lead(self, change: _C, lead: Callable[[Sequence[_C], Turn], None]) -> None:
        group: list[_C] = []
        try:
            with self._turn_of_process(change.deadline) as turn:
                group = self._take()
                lead(group, turn)
        except BaseException:
            # The others were not at fault: the next leader looks up whether they were published.
            for member in group:
                member.in_doubt = not member.done
            change.done = True
            raise
        finally:
            undone = [member for member in group if not member.done]
            self._leave([change, *group], undone)

    def _take(self) -> list[_C]:
        """Take the changes of the next group off the queue; the first of them is the leader's."""
        group: list[_C] = []
        with self._lock:
            while self._waiting and len(group) < MAX_GROUP and not self._waiting[0].alone:
                group.append(self._waiting.popleft())
        for member in group:
            member.leave_queue()
        return group

    def _leave(self, group: Sequence[_C], undone: Sequence[_C] = ()) -> None:
        """Return undone changes to the front, and pass leadership on."""
        with self._lock:
            for member in group:
                member.leads = False
                with suppress(ValueError):
                    self._waiting.remove(member)
            self._waiting.extendleft(member for member in reversed(undone) if not member.done)
            self._busy = bool(self._waiting)
            if self._waiting:
                self._waiting[0].leads = True
                self._waiting[0].wake.set()
        for member in group:
            if member.done:
                member.wake.set()

    @contextmanager
    def _turn_of_process(self, deadline: float) -> Iterator[Turn]:
        if self._locks is None:
            yield Turn()
            return
        with self._locks.take(deadline) as turn:
            yield turn


def timed_out() -> Contention:
    """Return the error of a change whose deadline passed while it waited."""
    message = "the change waited for other writers of the branch until its timeout; try again"
    return Contention(message, code="commit_timeout")


# --- turns among processes -----------------------------------------------------------------------


@dataclass(slots=True)
class TurnLocks:
    """Two lock files of a branch, by which processes on one machine take turns.

    A process locks the line, then the turn, and then leaves the line to the next: without the line,
    a busy process would take every turn. If the files cannot be created, there are no turns.
    """

    folder: Path
    name: str
    groups: PreparedGroups | None = None
    _missing: bool = field(default=fcntl is None)

    @contextmanager
    def turn(self, deadline: float) -> Iterator[None]:
        """Hold the turn; go on without it when the deadline has passed."""
        with self.take(deadline) as turn:
            turn.wait()
            yield

    @contextmanager
    def take(self, deadline: float) -> Iterator[Turn]:
        """Take the turn if no process has it or waits for it; otherwise the caller waits for it."""
        with ExitStack() as stack:
            line, turn = self._open(stack, "line"), self._open(stack, "turn")
            if line is None or turn is None:
                yield Turn()
                return
            held = _FileTurn(line, turn, deadline, self.groups)
            stack.callback(held.release)
            yield held

    def _open(self, stack: ExitStack, kind: str) -> int | None:
        if self._missing:
            return None
        try:
            self.folder.mkdir(exist_ok=True)
            file = os.open(self.folder / f"{self.name}.{kind}", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            self._missing = True
            return None
        stack.callback(os.close, file)
        return file


class _FileTurn(Turn):
    """A turn by locks of two open files, released when they are closed."""

    def __init__(
        self, line: int, turn: int, deadline: float, groups: PreparedGroups | None
    ) -> None:
        self._line, self._turn, self._deadline = line, turn, deadline
        self.groups = groups
        self._held = False
        if _lock_now(line):
            self._held = _lock_now(turn)
            fcntl.flock(line, fcntl.LOCK_UN)

    @property
    def is_held(self) -> bool:
        return self._held

    def wait(self, until: Callable[[], bool] = lambda: False, *, seconds: float = 0.0) -> None:
        if not self._held:
            begun = time.monotonic()
            deadline = max(self._deadline, begun + seconds)
            self._held = _threads.lock([self._line, self._turn], deadline, until)
            report(CommitEvent.TURN_WAIT, time.monotonic() - begun)

    def release(self) -> None:
        """Release the turn at once: a thread that waited for it may close its file later."""
        with suppress(OSError):
            fcntl.flock(self._turn, fcntl.LOCK_UN)


def lock_folder(location: Location) -> Path:
    """Return the folder of the lock files of a graph.

    Processes of one machine that write to a bucket take turns, too; those of other machines retry.
    """
    if location.is_local:
        return Path(location.child(LOCKS))
    name = hashlib.sha256(location.uri.encode()).hexdigest()[:16]
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"omnigraph-locks-{user}-{name}"


def _lock_now(file: int) -> bool:
    """Lock a file; return False if another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class _LockThreads:
    """Threads that wait for locks, because only there can a wait be given up.

    A thread is kept for the next wait: starting one takes longer than a turn changes hands.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[_Wait]] = []

    def lock(self, files: Sequence[int], deadline: float, until: Callable[[], bool]) -> bool:
        """Lock files in this order, and release all but the last; return whether it succeeded.

        It stops before the next file when `until` is true.
        """
        wait = _Wait([os.dup(file) for file in files], until)
        try:
            self._idle.pop().put(wait)
        except IndexError:
            Thread(target=self._run, args=(wait,), name="commit-turn", daemon=True).start()
        wait.is_abandoned = not wait.ended.wait(max(0.0, deadline - time.monotonic()))
        return wait.is_held and not wait.is_abandoned

    def _run(self, wait: _Wait) -> None:
        waits: SimpleQueue[_Wait] = SimpleQueue()
        while True:
            wait.run()
            self._idle.append(waits)
            wait = waits.get()

    def forget(self) -> None:
        """Forget all threads: a child process has none of them."""
        self._idle.clear()


@dataclass(slots=True)
class _Wait:
    """Files to lock, duplicated: the caller may close its own meanwhile, which gives up."""

    files: list[int]
    until: Callable[[], bool]
    ended: Event = field(default_factory=Event)
    is_held: bool = False
    is_abandoned: bool = False

    def run(self) -> None:
        """Wait for the locks."""
        with suppress(OSError):
            for file in self.files:
                if self.is_abandoned or self.until():
                    break
                fcntl.flock(file, fcntl.LOCK_EX)
            else:
                self.is_held = True
            for file in self.files[:-1]:
                fcntl.flock(file, fcntl.LOCK_UN)
        self.ended.set()
        for file in self.files:
            os.close(file)  # releases the lock if the caller has closed its file meanwhile


_threads = _LockThreads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.forget)


# --- the queues of this process ------------------------------------------------------------------

_queues: WeakValueDictionary[Any, CommitQueue[Any]] = WeakValueDictionary()
_queues_lock = Lock()


def shared_queue(key: Any, locks: TurnLocks | None) -> CommitQueue[Any]:  # noqa: ANN401 - hashable
    """Return the queue of a branch; handles of one graph share it."""
    with _queues_lock:
        queue = _queues.get(key)
        if queue is None:
            queue = _queues[key] = CommitQueue(locks)
        return queue
