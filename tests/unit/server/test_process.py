"""A process that serves has as many files as it may, and does not keep memory for each thread."""

import subprocess
import sys

import pytest

FILES = """
import resource
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (300, most))
prepare_process()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
"""
ARRAYS = """
import pyarrow as pa
prepare_process()
kept = pa.array(range(100_000))
assert pa.default_memory_pool().backend_name == "system"
assert pa.system_memory_pool().bytes_allocated() >= kept.nbytes
"""
HEAPS = """
import ctypes, os, threading
prepare_process()
libc = ctypes.CDLL(None)
if hasattr(libc, "malloc_info"):
    libc.malloc.restype = ctypes.c_void_p
    everyone = threading.Barrier(4 * os.cpu_count())

    def hold():
        kept = [libc.malloc(1000) for _ in range(100)]
        everyone.wait()

    threads = [threading.Thread(target=hold) for _ in range(everyone.parties)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    libc.fopen.restype = ctypes.c_void_p
    libc.malloc_info(0, ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w")))
    libc.fflush(None)
"""


def run(program):
    lines = f"from omnigraph.server.process import prepare_process\n{program}"
    ran = subprocess.run([sys.executable, "-c", lines], check=True, capture_output=True, text=True)
    return ran.stdout


@pytest.mark.parametrize("program", [FILES, ARRAYS], ids=["files", "arrays"])
def test_process_is_prepared(program):
    run(program)


def test_threads_share_what_they_freed():
    reported = run("import os\nprint(os.cpu_count())\n" + HEAPS)
    cores, _, heaps = reported.partition("\n")
    assert heaps.count("<heap nr=") <= int(cores)
