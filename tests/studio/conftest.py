"""A browser for all stories of a process, and the ways a server is started for them."""

import os
import signal
import subprocess
from contextlib import contextmanager

import pytest

from tests.support.browser import chromium
from tests.support.serving import serving

WAYS = ("one process", "three processes", "a process killed")
"""Stories run against one process; `make soak` runs all of them in every way, `make test` some."""
CHOSEN = WAYS if os.environ.get("STUDIO_STORIES") == "all" else WAYS[:1]


@pytest.fixture(scope="session")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module", params=CHOSEN)
def serve(request):
    """Start a server as `serving` does, in one of the ways."""

    @contextmanager
    def start(*arguments, **options):
        several = request.param != WAYS[0]
        more = ("--workers=3",) if several else ()
        with serving(*arguments, *more, preloaded=not several, **options) as server:
            if request.param == WAYS[2]:
                os.kill(min(_workers(server)), signal.SIGKILL)
            yield server

    return start


def _workers(server):
    words = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(server.process.pid)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=1) for line in shown.splitlines()]
    return [int(pid) for pid, words in lines if "maintenance_worker" not in words]
