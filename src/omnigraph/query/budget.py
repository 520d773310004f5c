"""This module bounds what one query may take: time, and memory for its rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from omnigraph.errors import Category, InvalidInput, OmniError

DEFAULT_MEMORY = 2 * 1024 * 1024 * 1024


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
            message = f"the query was cancelled; it was at {operator}"
            raise QueryCancelled(message, code="query_cancelled", category=Category.UNAVAILABLE)


NEVER = Cancellation()
"""For what is finished once it has begun."""
_cancellation: ContextVar[Cancellation] = ContextVar("cancellation", default=NEVER)


def check_cancelled(operator: str) -> None:
    """Raise QueryCancelled when the request on whose behalf code runs is cancelled."""
    _cancellation.get().check(operator)


class QueryCancelled(OmniError):
    """A query was stopped since nothing waits for its result any more."""


class QueryLimit(OmniError):
    """A query took more time or memory than it may."""

    def __init__(self, message: str, *, code: str, operator: str, limit: float) -> None:
        details = {"operator": operator, "limit": limit}
        super().__init__(message, code=code, category=Category.LIMIT, details=details)


@dataclass(slots=True)
class Budget:
    """What is left of a query's time, and how much memory its rows may take."""

    seconds: float | None = None
    memory: int = DEFAULT_MEMORY
    _begun: float = field(default_factory=time.monotonic)
    _cancellation: Cancellation = field(default_factory=_cancellation.get)

    def __post_init__(self) -> None:
        limits = {"timeout": self.seconds, "memory": self.memory}
        for name, limit in limits.items():
            # Nothing compares with a number that is none.
            if limit is not None and not limit >= 0:
                message = f"the {name} of a query is a number from 0 up, not {limit:g}"
                raise InvalidInput(message, code="query_limit_invalid")

    def check(self, operator: str, rows: int = 0, columns: int = 0) -> None:
        """Raise QueryLimit when time is up, or so many rows would not fit.

        Raises QueryCancelled when the query was cancelled.
        """
        self._cancellation.check(operator)
        if self.seconds is not None and time.monotonic() - self._begun > self.seconds:
            message = f"the query took longer than {self.seconds:g} s; it was at {operator}"
            raise QueryLimit(message, code="query_timeout", operator=operator, limit=self.seconds)
        if rows * columns * 8 > self.memory:
            message = f"{operator} would make {rows:,} rows, more than the query may hold in memory"
            raise self._too_much(message, operator)

    def check_bytes(self, operator: str, size: int) -> None:
        """Raise QueryLimit when so many bytes would not fit."""
        if size > self.memory:
            message = (
                f"{operator} would make {size:,} bytes, more than the query may hold in memory"
            )
            raise self._too_much(message, operator)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Tell alike when the machine has less memory than the query may hold."""
        try:
            yield
        except MemoryError as error:
            raise self._too_much("the query needs more memory than there is", "Query") from error

    def _too_much(self, message: str, operator: str) -> QueryLimit:
        return QueryLimit(message, code="query_memory", operator=operator, limit=self.memory)
