"""A driver of pipelines and loads in a process of its own, which dies by SIGKILL amid all of them.

Each stands still at a step of its own, on a graph of its own, when the process is killed: one Java
has to be started instead of many. The pipeline meets everything: a row that is no row, values and
neighbours that break rules, a branch of its own, vectors, a merge, and the end of the branch.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import omnigraph.graph as og
from omnigraph import pipeline
from omnigraph.pipeline.sessions import session as spark_session
from tests.support.embedding import MOCK
from tests.support.processes import LONG, is_gone
from tests.support.small_spark_session import SETTINGS

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  email: String? @unique
  v: Vector(8)? @embed("name")
  @range(age, 0..150)
}
edge Knows: Person -> Person @card(0..2)
"""
FILE = """version: 1
sources:
  people: {csv: people.csv}
  knows: {csv: knows.csv}
nodes: {Person: {source: people, embed: v}}
edges: {Knows: {source: knows}}
on_violation: reject
branch: {name: load, from: main}
checks: {three: {row_count: Person, min: 3, max: 3}}
publish: {merge_into: main, delete_branch: true}
"""
PEOPLE = """name,age,email
ada,36,a@x
bob,400,b@x
cy,40,a@x
dee
eve,50,e@x
"""
KNOWS = "from,to\nada,eve\neve,cy\nold,ada\n"
GOOD = {"old", "ada", "eve"}
ENDS = {("ada", "eve"), ("old", "ada")}
REJECTS = [
    (None, "syntax", 4),
    ("Knows", "endpoint", 2),
    ("Person", "range", 2),
    ("Person", "unique", 3),
]
STEPS = {
    "extracted": ("runs.runner", "prepare_pipeline"),
    "begun": ("runs.run", "RunStore.begin"),
    "set aside": ("runs.runner", "keep_unreadable"),
    "staging": ("load.stage_tasks", "_collected"),
    "staged": ("runs.run_lease", "RunLease.finish_stage"),
    "rejecting": ("load.commit_builder", "reject_rows"),
    "branched": ("load.spark_load", "create_branch"),
    "embedded": ("load.spark_load", "SparkLoad._embed"),
    "prepared": ("runs.run_lease", "RunLease.prepared"),
    "checked": ("load.check_gate", "CheckGate.check"),
    "published": ("load.spark_load", "publish_with_retry"),
    "finished": ("runs.run_lease", "RunLease.finished"),
    "merged": ("runs.runner", "merge"),
    "branch deleted": ("runs.runner", "delete_branch"),
}
"""What the driver has just done when it dies, in order."""


OLD = {"name": "old", "v": [1.0] + [0.0] * 7}
"""What the graph has before anything is loaded."""


def made(folder: Path) -> og.Graph:
    """Make a graph, and beside it what the pipeline reads."""
    folder.mkdir()
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "knows.csv").write_text(KNOWS)
    (folder / "more.csv").write_text("\n".join(["name", *sorted(GOOD)]))
    (folder / "p.yaml").write_text(FILE)
    graph = og.init(folder / "graph", SCHEMA, embedding=MOCK)
    graph.load({"Person": [OLD]}, vectors_from="mock")
    return graph


def killed(folder: Path, places: Sequence[str]) -> None:
    """Have a driver die; `places` are `pipeline… STEP` and `load STEP`, each a folder below.

    A `choice.json` in the folder of a pipeline has its target and selection.

    See to it that its Java ends, too.
    """
    words = [sys.executable, "-m", "tests.support.spark_kills", str(folder), *places]
    run = subprocess.run(words, capture_output=True, text=True, timeout=10 * LONG)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert is_gone(run.stdout.split()[0])


def opened(path: Path) -> og.Graph:
    """Open a graph with nothing cached."""
    return og.open(path, embedding=MOCK)


def rejected_rows(folder: str) -> list[Any]:
    """Return the type, the rule and the row number of rejected rows."""
    parts = Path(folder).glob("*.ndjson")
    lines = [line for part in parts for line in part.read_text().splitlines()]
    found = [json.loads(line) for line in lines]
    return sorted(
        ((v.get("type"), v["rule"], v["source"]["row"]) for v in found),
        key=lambda row: (row[0] or "", *row[1:]),
    )


def _stand_still(there: threading.Semaphore) -> None:
    """Make each thread wait at its step for the kill."""
    for step, (module, path) in STEPS.items():
        owner, _, name = path.rpartition(".")
        home: Any = import_module(f"omnigraph.pipeline.{module}")
        home = getattr(home, owner) if owner else home
        setattr(home, name, _standing(getattr(home, name), step, there))


def _standing(real: Callable[..., Any], step: str, there: threading.Semaphore) -> Any:
    def stand(*args: Any, **named: Any) -> Any:
        done = real(*args, **named)
        if threading.current_thread().name.partition(" ")[2] == step:
            there.release()
            threading.Event().wait()
        return done

    return stand


def _work(folder: Path) -> None:
    graph = opened(folder / "graph")
    if folder.name.startswith("pipeline"):
        choice = folder / "choice.json"
        options = json.loads(choice.read_text()) if choice.exists() else {}
        graph.pipeline.run(folder / "p.yaml", **options)
    else:
        graph.load({"Person": folder / "more.csv"}, engine="spark")
    raise AssertionError("the driver was not killed")


def main(folder: str, *places: str) -> None:
    """Begin, and die."""
    pipeline.session("local[1]", memory="512m", config=SETTINGS)
    assert spark_session._machine is not None
    print(spark_session._machine.process.pid, flush=True)
    there = threading.Semaphore(0)
    _stand_still(there)
    for place in places:
        worker = threading.Thread(target=_work, args=[Path(folder, place)], name=place, daemon=True)
        worker.start()
        while not there.acquire(timeout=1):
            assert worker.is_alive(), f"{place} was never there"
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
