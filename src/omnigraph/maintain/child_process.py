"""Run a program in a child process with limited memory, and read its JSON lines.

Lance does not validate the files it reads: a damaged one can make it allocate any amount of memory,
panic or end the process. The child writes one JSON document per line; the member `place` names what
it reads next, so that the parent knows where a child died.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from omnigraph.commit.manifest import Manifest

BASE_BYTES = 1280 * 1024 * 1024
"""Memory limit of a child for the smallest graph."""
BYTES_PER_THREAD = 16 * 1024 * 1024
MEMORY_PER_STORED_BYTE = 4
"""Further memory per byte of the largest dataset: ids of one version are read at once."""
CHILD_TIMEOUT_SECONDS = 600.0
"""A child that reads one file for longer is killed."""

_MAX_TEXT = 200


def child_program(module: str) -> str:
    """Return the program of a child that runs `main()` of a module."""
    imports = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    return f"{imports}from {module} import main; main()"


def run_child(
    program: str,
    request: Mapping[str, Any],
    receive: Callable[[Mapping[str, Any]], None],
    silence: float = CHILD_TIMEOUT_SECONDS,
) -> str:
    """Run a program with a request on standard input; pass every document it writes to `receive`.

    Return how the child ended, as a predicate: it may have written everything before it ended.
    """
    command = [sys.executable, "-c", program, json.dumps(sys.path)]
    # The allocators of Arrow and of the C library reserve more than they use.
    env = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "4"}
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(  # noqa: S603 - this very interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, env=env
        ) as child,
    ):
        assert child.stdin is not None, "it is a pipe"
        assert child.stdout is not None, "it is a pipe"
        child.stdin.write(json.dumps(request).encode())
        child.stdin.close()
        in_time = False
        try:
            in_time = _listen(child.stdout, receive, silence)
        finally:
            if not in_time:
                child.kill()
        code = child.wait()
        complaints.seek(0)
        last = complaints.read().decode(errors="replace").strip().rpartition("\n")[2][:_MAX_TEXT]
    return _describe_exit(code, last) if in_time else f"took longer than {silence:.0f} seconds"


def _listen(
    stream: IO[bytes], receive: Callable[[Mapping[str, Any]], None], silence: float
) -> bool:
    """Read until the child ends; return False if it writes nothing for too long."""
    lines: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        lines.put(b"")

    Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=silence)
        except Empty:
            return False
        if not line.endswith(b"\n"):
            return True
        receive(json.loads(line))


def _describe_exit(code: int, last: str) -> str:
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"ended a process with limited memory ({', '.join(filter(None, (name, last)))})"


# --- in the child --------------------------------------------------------------------------------


def write_line(document: Mapping[str, Any]) -> None:
    """Write a document for the parent."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def limit_memory(manifest: Manifest) -> None:
    """Limit the memory of this process by the size of a graph, where the system supports it."""
    threads = (os.cpu_count() or 1) * BYTES_PER_THREAD
    limit = BASE_BYTES + threads + MEMORY_PER_STORED_BYTE * _largest_dataset_bytes(manifest)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _largest_dataset_bytes(manifest: Manifest) -> int:
    """Return the bytes of the largest dataset."""
    sizes = [
        sum(info.size for info in manifest.objects.list(f"{folder}/{name}"))
        for folder in ("nodes", "edges")
        for name in manifest.objects.folders(folder)
    ]
    return max(sizes, default=0)
