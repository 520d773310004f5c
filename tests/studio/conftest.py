"""A browser for all stories of a process."""

import pytest

from tests.support.browser import chromium


@pytest.fixture(scope="session")
def browser():
    with chromium() as started:
        yield started
