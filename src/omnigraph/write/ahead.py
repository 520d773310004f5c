"""This module reads ahead: while one piece is worked on, a thread gets the next."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


def ahead(items: Iterable[_T]) -> Generator[_T, None, None]:
    """Yield the same items, of which the next is always being made already."""
    reading = iter(items)
    nothing = object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, reading, nothing)
        while (item := coming.result()) is not nothing:
            coming = thread.submit(next, reading, nothing)
            yield item  # type: ignore[misc]
