"""Runs every kind of call on a graph in a child process that storage treats badly.

The child is this module run as a program: it prints what became of each call as JSON. It imports
everything before it gives up rights, because it may not be able to read modules afterwards.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import omnigraph.graph as og
from tests.support.graphs import NOTE, SCHEMA, Change, commit, commit_with_intent, dump

Outcome: TypeAlias = tuple[str, str, str]
"""The type of the error, its code and its message; `ok` and the result when there was none."""

_ROOT = Path(__file__).resolve().parents[2]

NOBODY = 65_534
TINY = "900k"
"""Room for a small graph and a few more commits."""


def outcomes(kind: str, graph: Path, *wanted: str) -> dict[str, Outcome]:
    """Treat a graph badly in a child; return what became of each call, or of those wanted."""
    command = [sys.executable, "-m", "tests.support.failing_storage", kind, str(graph), *wanted]
    if kind in ("full", "read-only"):
        command = ["unshare", "--map-root-user", "--mount", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"the child failed: {done.stdout[-500:]} {done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    return {name: (type_, code, message) for name, (type_, code, message) in found.items()}


def can_mount() -> bool:
    """Return whether a child may mount file systems of its own."""
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _main(kind: str, graph: str, *wanted: str) -> None:
    root = _suffer(kind, graph)
    change = Change("insert", NOTE, {f"b{n}": {"text": os.urandom(400).hex()} for n in range(2000)})

    def opened(use: Callable[[og.Graph], object]) -> Callable[[], object]:
        return lambda: use(og.open(root))

    calls: dict[str, Callable[[], object]] = {
        "read": opened(lambda graph: dump(graph)[NOTE]),
        "verify": opened(lambda graph: graph.verify().ok),
        "insert": opened(lambda graph: commit(graph, change)),
        "branch": opened(lambda graph: _until_it_fails(lambda n: graph.branches.create(f"b{n}"))),
        "tag": opened(lambda graph: _until_it_fails(lambda n: graph.tags.create(f"t{n}"))),
        "intent": opened(lambda graph: commit_with_intent(graph, change)),
        "init": lambda: og.init(f"{root}/elsewhere/graph", SCHEMA),
        "verify again": opened(lambda graph: graph.verify().ok),
        "read again": opened(lambda graph: dump(graph)[NOTE]),
    }
    print(json.dumps({name: _outcome(calls[name]) for name in wanted or calls}))


def _until_it_fails(call: Callable[[int], Any], most: int = 300) -> str:
    for number in range(most):
        call(number)
    return f"{most} times"


def _outcome(call: Callable[[], object]) -> Outcome:
    try:
        return ("ok", "", str(call()))
    except Exception as error:  # noqa: BLE001 - the test says which may come
        return (type(error).__name__, getattr(error, "code", ""), str(error))


def _suffer(kind: str, graph: str) -> str:
    """Make storage bad; return where the graph is then."""
    if kind in ("denied", "unreadable") and os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    elif kind == "limited":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    elif kind in ("full", "read-only"):
        mounted = tempfile.mkdtemp()
        size = TINY if kind == "full" else "100m"
        _mount("-t", "tmpfs", "-o", f"size={size}", "none", mounted)
        shutil.copytree(graph, f"{mounted}/graph")
        if kind == "read-only":
            _mount("-o", "remount,ro", mounted)
        return f"{mounted}/graph"
    return graph


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
