"""Run a deep verify in a child process with limited memory.

Lance does not validate the files it reads: a damaged one can make it allocate any amount of memory,
panic or end the process. A child that ends this way is reported as a problem. The child writes one
JSON document per line: the place it reads next, each problem, and at the end the report.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from omnigraph.commit.graph_creation import open_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.errors import OmniError
from omnigraph.maintain.verify import IntegrityProblem, VerifyReport
from omnigraph.maintain.verify_checksums import verify_deep
from omnigraph.storage import Location

BASE_BYTES = 1280 * 1024 * 1024
"""Memory limit of a child for the smallest graph."""
BYTES_PER_THREAD = 16 * 1024 * 1024
MEMORY_PER_STORED_BYTE = 4
"""Further memory per byte of the largest dataset: ids of one version are read at once."""
CHILD_TIMEOUT_SECONDS = 600.0
"""A child that reads one file for longer is killed."""

_MAX_TEXT = 200
_PROGRAM = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
_PROGRAM += "from omnigraph.maintain.verify_subprocess import main; main()"


def verify_in_subprocess(
    location: Location, *, plain: bool = True, silence: float = CHILD_TIMEOUT_SECONDS
) -> VerifyReport:
    """Verify a graph deeply in a child; a child that dies is reported with its last place."""
    request = {"uri": location.uri, "options": dict(location.options), "plain": plain}
    command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)]
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
        written = _ChildOutput(child.stdout)
        in_time = False
        try:
            in_time = written.listen(silence)
        finally:
            if not in_time:
                child.kill()
        code = child.wait()
        complaints.seek(0)
        last = complaints.read().decode(errors="replace").strip().rpartition("\n")[2][:_MAX_TEXT]
    if written.report is not None:
        return written.report
    how = _describe_exit(code, last) if in_time else f"took longer than {silence:.0f} seconds"
    message = f"reading it {how}: a file is damaged, and nothing after it was verified"
    return VerifyReport(
        files=0, problems=[*written.problems, IntegrityProblem(written.place, message)]
    )


class _ChildOutput:
    """The output of a child so far."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self.place = "manifest"
        self.problems: list[IntegrityProblem] = []
        self.report: VerifyReport | None = None
        Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(b"")

    def listen(self, silence: float) -> bool:
        """Read until the child ends; return False if it writes nothing for too long."""
        while True:
            try:
                line = self._lines.get(timeout=silence)
            except Empty:
                return False
            if not line.endswith(b"\n"):
                return True
            document = json.loads(line)
            self.place = document.get("place", self.place)
            if "problem" in document:
                self.problems.append(IntegrityProblem(**document["problem"]))
            if "report" in document:
                self.report = _parse_report(document["report"])


def _parse_report(document: Mapping[str, Any]) -> VerifyReport:
    return VerifyReport(
        branches=document["branches"],
        commits=document["commits"],
        versions=document["versions"],
        files=document.get("files", 0),
        unsummed=document.get("files_without_checksum", 0),
        problems=[IntegrityProblem(**problem) for problem in document["problems"]],
    )


def _describe_exit(code: int, last: str) -> str:
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"ended a process with limited memory ({', '.join(filter(None, (name, last)))})"


# --- the child -----------------------------------------------------------------------------------


def main() -> None:
    """Verify the graph of the request on standard input."""
    run_child_verify(json.load(sys.stdin))


def run_child_verify(request: Mapping[str, Any]) -> None:
    """Limit the memory of this process, verify a graph and write the problems."""
    location = Location(request["uri"], request["options"])
    report, sent, written = VerifyReport(files=0), 0, ""

    def note(place: str) -> None:
        nonlocal sent, written
        while sent < len(report.problems):
            _write_line({"problem": asdict(report.problems[sent])})
            sent += 1
        if place != written:
            _write_line({"place": place})
            written = place

    manifest = Manifest(location)
    try:
        _limit_memory(_largest_dataset_bytes(manifest))
        note("manifest")
        open_graph(manifest)
        verify_deep(manifest, note, report, plain=request["plain"])
    except OmniError as error:
        report.problems.append(IntegrityProblem("manifest", error.message))
    _write_line({"report": report.to_json()})


def _write_line(document: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def _largest_dataset_bytes(manifest: Manifest) -> int:
    """Return the bytes of the largest dataset."""
    sizes = [
        sum(info.size for info in manifest.objects.list(f"{folder}/{name}"))
        for folder in ("nodes", "edges")
        for name in manifest.objects.folders(folder)
    ]
    return max(sizes, default=0)


def _limit_memory(largest: int) -> None:
    """Limit the memory of this process, where the system supports it."""
    threads = (os.cpu_count() or 1) * BYTES_PER_THREAD
    limit = BASE_BYTES + threads + MEMORY_PER_STORED_BYTE * largest
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
