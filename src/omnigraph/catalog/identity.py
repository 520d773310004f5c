"""Allocate the stable identities of types, properties and datasets.

An identity is a number that never changes and is never used again, so that a rename keeps its data
and a drop followed by a re-add does not. Numbers are time-ordered rather than counted per graph:
two branches can then add types independently and still merge (docs/adr/0003).
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from typing import NewType, Protocol

from omnigraph.errors import Category, OmniError

TypeId = NewType("TypeId", int)
PropertyId = NewType("PropertyId", int)
IncarnationId = NewType("IncarnationId", int)

MAX_IDENTITY = 2**64 - 1
RANDOM_BITS = 22

_HEX = re.compile(r"[0-9a-f]{16}", re.ASCII)


class IdentityError(OmniError):
    """Two schemas, or an allocator, break the rules stable identities live by."""

    def __init__(self, message: str, *, code: str = "schema_identity") -> None:
        super().__init__(message, code=code, category=Category.INTERNAL)


class IdentityAllocator(Protocol):
    """Hands out identities that were never handed out before."""

    def allocate(self, count: int) -> int:
        """Return the first of `count` consecutive new identities."""


class SequentialAllocator:
    """Counts up from a start: for tests, and for tools that compare schemas without a graph."""

    def __init__(self, start: int = 1) -> None:
        self._next = start

    def skip_to(self, identity: int) -> None:
        """Go on at `identity`, unless that lies behind."""
        self._next = max(self._next, identity)

    def allocate(self, count: int) -> int:
        """Return the first of `count` consecutive new identities."""
        if count < 1:
            raise ValueError("at least one identity must be requested")
        first = self._next
        if first + count - 1 > MAX_IDENTITY:
            raise IdentityError("the identity allocator is exhausted", code="identity_exhausted")
        self._next = first + count
        return first


class TimeOrderedAllocator:
    """Starts at the present millisecond plus random bits, and counts up within a millisecond."""

    def __init__(
        self,
        clock: Callable[[], int] = time.time_ns,
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        self._clock = clock
        self._random_bits = random_bits
        self._millisecond = -1
        self._sequence = SequentialAllocator()

    def allocate(self, count: int) -> int:
        """Return the first of `count` consecutive new identities."""
        millisecond = self._clock() // 1_000_000
        if millisecond > self._millisecond:
            self._millisecond = millisecond
            self._sequence.skip_to(millisecond << RANDOM_BITS | self._random_bits(RANDOM_BITS))
        return self._sequence.allocate(count)


def identity_text(identity: int) -> str:
    """Return an identity as 16 hexadecimal digits, the form used in documents and paths.

    >>> identity_text(255)
    '00000000000000ff'
    """
    return f"{identity:016x}"


def parse_identity(text: str) -> int:
    """Read what `identity_text` writes; raise ValueError for anything else."""
    if _HEX.fullmatch(text) is None:
        raise ValueError(f"an identity is 16 lower-case hexadecimal digits, not `{text[:40]}`")
    return int(text, 16)
