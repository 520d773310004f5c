"""A graph on a small disk that gets full, in a process with file systems of its own.

Run as a module; it prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.storage.object_store import RESERVE
from omnigraph.write import spilling
from tests.support.graphs import NOTE, clean_at_once, dump, make_graph, overwrite
from tests.support.small_disk import fill, free_bytes, run_alone, small_disk


def seen(what: str) -> dict[str, Any]:
    """Fill a disk in a child and return what it saw."""
    return run_alone(__name__, what)


def cleaning(*, reserve: bool) -> dict[str, Any]:
    """Clean up on a full disk, with or without space held for it."""
    disk = small_disk()
    graph = make_graph(str(disk / "graph"))
    graph.branches.create("side")
    for number in range(20):
        text = os.urandom(20_000).hex() + str(number)
        overwrite(graph, NOTE, {"n": {"text": text}})
    if not reserve:
        (disk / "graph" / RESERVE).unlink()
    fill(disk)
    refused = _code(lambda: overwrite(graph, NOTE, {"n": {"text": "more"}}))
    before = free_bytes(disk)
    report = clean_at_once(og.open(graph.uri), keep=1)
    fresh = og.open(graph.uri)
    overwrite(fresh, NOTE, {"n": {"text": "after"}})
    return {
        "refused": refused,
        "before": before,
        "errors": [dataset.error for dataset in report.datasets if dataset.error],
        "removed": report.bytes_removed,
        "freed": free_bytes(disk) - before,
        "text": dump(fresh)[NOTE]["n"]["text"],
        "ok": fresh.verify().ok,
        "sweeping": list(fresh.snapshot().head.active_cleanups),
        "reserve": (disk / "graph" / RESERVE).stat().st_size,
    }


def writing() -> dict[str, Any]:
    """Write files of every kind on a full disk; return the code and message of each error."""
    graph = make_graph(tempfile.mkdtemp() + "/graph")
    overwrite(graph, NOTE, {str(n): {"text": os.urandom(500).hex()} for n in range(300)})
    disk = small_disk("1m")
    fill(disk)
    calls: dict[str, Any] = {
        "archive": lambda: graph.export_archive(disk / "a.tar"),
        "history": lambda: graph.export_archive(disk / "b.tar.gz", history=True),
        "parquet": lambda: graph.export_parquet(disk / "out"),
    }
    found = {name: _failure(call) for name, call in calls.items()}
    tempfile.tempdir = str(disk)
    table = graph.query("query q() { match { $n: Note } return { $n.text } }").table
    with spilling.SpillManager(1000) as spill:
        gathered = spill.new_rows(table.schema)
        found["spill"] = _failure(lambda: gathered.add(table))
    elsewhere = Path(graph.uri).with_name("state.tar")
    found["temporary"] = _failure(lambda: graph.export_archive(elsewhere))
    left = sorted(path.name for path in disk.rglob("*") if path.is_file())
    return {**found, "left": left}


def _code(call: Any) -> str:
    return _failure(call)[0]


def _failure(call: Any) -> tuple[str, str]:
    try:
        call()
    except OmniError as error:
        return error.code, error.message
    except OSError as error:
        return type(error).__name__, str(error)
    return "", ""


if __name__ == "__main__":
    kinds = {
        "reserve": lambda: cleaning(reserve=True),
        "no reserve": lambda: cleaning(reserve=False),
        "writing": writing,
    }
    print(json.dumps(kinds[sys.argv[1]]()))
