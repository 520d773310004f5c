"""Limits of writes in progress per actor: requests and bytes."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from omnigraph.errors import Category, OmniError

ANONYMOUS = "anonymous"
BRANCH_BYTES = 256
"""What a change of branches is taken to weigh."""
RETRY_AFTER_SECONDS = 60
"""Seconds after which a change that was refused may be sent again, unless it is known better."""
MAX_READS_VARIABLE = "OMNIGRAPH_PER_ACTOR_READS_MAX"
MAX_RATE_VARIABLE = "OMNIGRAPH_PER_ACTOR_REQUESTS_PER_MINUTE"
MAX_INFLIGHT_VARIABLE, MAX_BYTES_VARIABLE = (
    "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX",
    "OMNIGRAPH_PER_ACTOR_BYTES_MAX",
)

_log = logging.getLogger("omnigraph.service")


class TooManyRequests(OmniError):
    """An actor has as much under way as it may have; it may try again after some seconds."""

    def __init__(self, message: str, *, retry_after: int = RETRY_AFTER_SECONDS) -> None:
        super().__init__(message, code="too_many_requests", category=Category.LIMIT)
        self.retry_after = retry_after


@dataclass(slots=True)
class AdmissionControl:
    """What each actor has under way in this process."""

    inflight_max: int = 16
    bytes_max: int = 4 * 1024 * 1024 * 1024
    reads_max: int = 64
    per_minute_max: int | None = None
    """Requests of an actor in a minute; unused ones are kept for up to a minute."""
    _allowances: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By actor: how many requests it may send at once, and when that was computed."""
    _inflight: Counter[str] = field(default_factory=Counter)
    _bytes: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> AdmissionControl:
        """Read the limits; a value that is not a positive number is logged and ignored."""
        defaults = cls()
        return cls(
            _limit(environment, MAX_INFLIGHT_VARIABLE, defaults.inflight_max),
            _limit(environment, MAX_BYTES_VARIABLE, defaults.bytes_max),
            _limit(environment, MAX_READS_VARIABLE, defaults.reads_max),
            _limit(environment, MAX_RATE_VARIABLE, 0) or None,
        )

    def count_request(self, actor: str | None) -> None:
        """Count a request of an actor; raise TooManyRequests if there were too many in a minute."""
        if self.per_minute_max is None:
            return
        name, now = actor if actor is not None else ANONYMOUS, time.monotonic()
        rate = self.per_minute_max / 60
        with self._lock:
            left, at = self._allowances.get(name, (float(self.per_minute_max), now))
            left = min(float(self.per_minute_max), left + (now - at) * rate)
            if left >= 1:
                self._allowances[name] = (left - 1, now)
                return
            self._allowances[name] = (left, now)
        message = f"actor '{name}' sent more than {self.per_minute_max} requests in a minute"
        raise TooManyRequests(message, retry_after=math.ceil((1 - left) / rate))

    @contextmanager
    def admit(self, actor: str | None, size: int) -> Iterator[None]:
        """Let a request through as long as it lasts, or raise TooManyRequests at once."""
        name = actor if actor is not None else ANONYMOUS
        with self._lock:
            if self._inflight[name] >= self.inflight_max:
                message = f"{self.inflight_max} changes of actor '{name}' are under way; try later"
                raise TooManyRequests(message)
            if self._bytes[name] + size > self.bytes_max:
                message = f"changes of actor '{name}' under way hold too many bytes; try later"
                raise TooManyRequests(message)
            self._inflight[name] += 1
            self._bytes[name] += size
        try:
            yield
        finally:
            with self._lock:
                self._inflight[name] -= 1
                self._bytes[name] -= size
                if not self._inflight[name]:
                    del self._inflight[name], self._bytes[name]


def _limit(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    _log.warning("%s is '%s', which is not a positive number; it stays %d", name, text, default)
    return default
