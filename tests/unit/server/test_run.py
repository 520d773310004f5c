"""A server takes as many files as it may have."""

import subprocess
import sys

PROGRAM = """
import resource
from omnigraph.server.run import raise_file_limit
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (300, most))
raise_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
"""


def test_the_limit_of_open_files_is_raised():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
