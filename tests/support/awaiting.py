"""Runs a coroutine in a thread: the browser of Studio keeps an event loop in that of the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")


def run_async(story: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end and return its result."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, story).result()
