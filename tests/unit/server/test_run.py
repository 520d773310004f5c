"""A server takes its address so that answers leave at once, and as many files as it may have."""

import socket
import subprocess
import sys

from omnigraph.server.run import bind
from omnigraph.server.settings import Settings

PROGRAM = """
import resource
from omnigraph.server.run import raise_file_limit
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (300, most))
raise_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
"""


def test_answers_are_sent_at_once():
    """Of other sockets asyncio leaves Nagle's wait on: 40 ms for every answer in two pieces."""
    with bind(Settings(port=0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_the_limit_of_open_files_is_raised():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
