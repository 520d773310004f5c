"""Keep the garbage collector away from what lives as long as the tests.

Thousands of tests and all they import live to the end. Going through them takes half of the time of
collecting tests, and comes back with every full collection of garbage while the tests run.
"""

from __future__ import annotations

import gc


def pytest_configure() -> None:
    """Find tests without collecting garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from here on, but not among what is there already."""
    gc.collect()
    gc.freeze()
    gc.enable()
