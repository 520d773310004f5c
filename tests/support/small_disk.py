"""Small disks that get full, in a process with file systems of its own.

Run as a module it runs commands on a full disk and prints their outcome as JSON. It imports the
public package only, so that it can be run on the source of any release.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import omnigraph as og

ROOT = Path(__file__).resolve().parents[2]
HOUR = 3600
LEFT_BYTES = 500_000
SCHEMA = "node Note { slug: String @key  text: String? }"


def run_alone(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module in a child that may mount disks; return the JSON it printed last."""
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"the child failed: {done.stdout[-500:]} {done.stderr[-2000:]}")
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def small_disk(size: str = "4m") -> Path:
    """Mount a small disk."""
    folder = Path(tempfile.mkdtemp())
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True)
    return folder


def fill(disk: Path) -> None:
    """Leave no block free."""
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue


def free_bytes(disk: Path) -> int:
    """Return how many bytes a disk has left."""
    facts = os.statvfs(disk)
    return facts.f_bavail * facts.f_bsize


# --- commands on a full disk ---------------------------------------------------------------------


def command(*arguments: str | Path) -> dict[str, Any]:
    """Run `omnigraph` and return its exit code and what it printed."""
    words = [sys.executable, "-m", "omnigraph.cli", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def _made(folder: Path, commits: int) -> Path:
    """Make a graph whose one note was replaced in every commit."""
    graph = og.init(folder / "graph", SCHEMA)
    for _ in range(commits):
        graph.load({"Note": [{"slug": "n", "text": os.urandom(20_000).hex()}]})
    return folder / "graph"


def _cleanup() -> dict[str, Any]:
    disk = small_disk()
    graph = _made(disk, 2)
    [data] = graph.glob("nodes/*/data")
    left = data / "left-by-a-killed-writer.lance"
    left.write_bytes(os.urandom(LEFT_BYTES))
    os.utime(left, (time.time() - 3 * HOUR,) * 2)
    fill(disk)
    before = free_bytes(disk)
    mutation = 'query m() { update Note set { text: "after" } where slug = "n" }'
    write = ("mutate", "--store", graph, "-e", mutation, "--quiet")
    refused = command(*write)
    cleaned = command("cleanup", graph, "--keep", "1", "--confirm", "--yes", "--quiet")
    return {
        "before": before,
        "refused": refused,
        "cleaned": cleaned,
        "freed": free_bytes(disk) - before,
        "written": command(*write),
        "verified": command("verify", graph, "--quiet"),
    }


def _export() -> dict[str, Any]:
    graph = _made(Path(tempfile.mkdtemp()), 1)
    disk = small_disk("1m")
    fill(disk)
    return {
        "archive": command("export", graph, "--archive", disk / "a.tar", "--quiet"),
        "history": command("export", graph, "--archive", disk / "b.tar", "--history", "--quiet"),
        "left": sorted(file.name for file in disk.iterdir()),
    }


if __name__ == "__main__":
    print(json.dumps({"cleanup": _cleanup, "export": _export}[sys.argv[1]]()))
