"""A graph under constant writing with maintenance on: what it measures over time.

`python -m tests.support.maintenance_soak --seconds 1800 --out build/soak-maintenance.json` runs two
writing processes, one that maintains and one that reads. The number of entities stays the same, so
that files, bytes, fragments, memory and the latency of reads must stay flat, too: within the second
half their medians may not rise. A machine that is busy for a while changes no median.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import omnigraph.graph as og
from omnigraph.maintain.maintenance_steps import MaintainerSettings, MaintenancePass
from tests.support.children import Place, drain, finish, start

SCHEMA = """
node Ship { name: String @key  tons: I64? @index }
node Log { name: String @key  text: String? }
edge Visits: Ship -> Ship
"""
WRITERS, SHIPS, LOGS = 2, 500, 200
TURNS_PER_SECOND = 4
"""Turns of a writer, of one or three commits; at most this pace, because files follow it."""
READ_PAUSE_SECONDS = 0.02
COMMITS_PER_TURN = 1.5
"""In the mean."""
SAMPLES, PASSES, CLEANUPS, PARTS = 90, 360, 40, 6
"""Samples, maintenance passes and cleanups of a run, and parts of which medians are compared."""
TASKS = ("compaction", "cleanup")
"""What maintenance must have done."""
UPDATE = "query m($name: String, $tons: I64) { update Ship set { tons: $tons } where name = $name }"
ADD = 'query m($name: String) { insert Log { name: $name, text: "a line of a log" } }'
DROP = "query m($name: String) { delete Log where name = $name }"
READ = """
query q($name: String) {
  match { $s: Ship { name: $name }  $s visits $t }
  return { $t.name, $t.tons }
}
"""
GROWTH = {"files": 1.2, "data_bytes": 1.2, "fragments": 1.2, "memory": 1.05, "read_ms": 1.5}
"""Factor by which the last third of the second half may exceed the first."""
MIN_PACE = 0.5
"""Share of the commits of the given pace below which a run proves nothing."""


@dataclass
class SoakResult:
    """Samples over time, and what the maintainer did."""

    seconds: float
    commits: int
    samples: list[dict[str, float]]
    done: Mapping[str, int]
    errors: Sequence[str]
    lost_races: int

    @property
    def pace(self) -> float:
        """Commits as a share of those that the writers make on a machine that is never busy."""
        return self.commits / (self.seconds * WRITERS * TURNS_PER_SECOND * COMMITS_PER_TURN)

    def medians(self, name: str) -> list[float]:
        """Return the median of a measurement in each sixth of the run."""
        values = [sample[name] for sample in self.samples]
        cuts = [len(values) * n // PARTS for n in range(PARTS + 1)]
        return [median(values[a:b]) for a, b in pairwise(cuts)]

    def to_json(self) -> dict[str, Any]:
        """Return what is recorded."""
        return {
            "seconds": round(self.seconds),
            "commits": self.commits,
            "maintenance": dict(self.done),
            "lost_races": self.lost_races,
            "errors": list(self.errors),
            "pace": round(self.pace, 2),
            "medians": {
                name: [round(value, 2) for value in self.medians(name)] for name in self.samples[0]
            },
            "samples": {
                name: [round(sample[name], 2) for sample in self.samples]
                for name in self.samples[0]
            },
        }

    def faults(self) -> list[str]:
        """Return what is not flat in the second half, and why else the run proves nothing."""
        faults = [f"maintenance failed: {error}" for error in self.errors]
        if self.pace < MIN_PACE:
            faults.append(f"the machine was busy: {self.pace:.0%} of the commits were made")
        faults += [f"no {task} was done" for task in TASKS if not self.done.get(task)]
        for name, factor in GROWTH.items():
            first, *_, last = medians = self.medians(name)[PARTS // 2 :]
            if last > factor * first:
                faults.append(f"{name} grew in the second half: medians {medians}")
        return faults


def build(place: Place) -> og.Graph:
    """Create the graph that is written to."""
    graph = og.init(place.uri, SCHEMA, storage_options=place.options)
    ships = [{"name": f"{w}-{n}", "tons": 0} for w in range(WRITERS) for n in range(SHIPS)]
    logs = [{"name": f"{w}-{n}"} for w in range(WRITERS) for n in range(LOGS)]
    visits = [{"from": f"0-{n}", "to": f"1-{n * 7 % SHIPS}"} for n in range(SHIPS)]
    graph.load({"Ship": ships, "Log": logs, "Visits": visits})
    graph.maintenance.set_retention(keep=50)
    return graph


def run(place: Place, seconds: float) -> SoakResult:
    """Write, maintain, read and measure for a time; raise if anything is lost."""
    graph = build(place)
    writers = [start(_write, place, number, seconds) for number in range(WRITERS)]
    maintainer, passes = start(_maintain, place, seconds)
    pids = {f"writer {n}": process.pid for n, (process, _) in enumerate(writers)}
    pids |= {"reader": os.getpid(), "maintainer": maintainer.pid}
    sampler = _Sampler(place.open(), {name: pid for name, pid in pids.items() if pid is not None})
    began = time.monotonic()
    for number in range(1, SAMPLES + 1):
        sampler.measure(until=began + seconds * number / SAMPLES)
    written: list[dict[str, Any]] = []
    for process, connection in writers:
        written += _result(connection)
        assert finish(process) == 0
    [summary] = _result(passes)
    assert finish(maintainer) == 0
    _check(og.open(graph.uri, storage_options=place.options), written)
    commits = sum(one["turns"] + 2 * one["logs"] for one in written)
    return SoakResult(time.monotonic() - began, commits, sampler.samples, **summary)


def _result(connection: Connection) -> list[Any]:
    assert connection.poll(300), "the child did not end"
    return drain(connection)


def _check(graph: og.Graph, written: Sequence[Mapping[str, Any]]) -> None:
    """Compare everything that was acknowledged with what is stored."""
    every = "query q() { match { $s: Ship } return { $s.name as name, $s.tons as tons } }"
    stored = {row["name"]: row["tons"] for row in graph.query(every).rows}
    expected = {f"{w}-{n}": 0 for w in range(WRITERS) for n in range(SHIPS)}
    for one in written:
        expected |= one["tons"]
    assert stored == expected
    logs = graph.query("query q() { match { $l: Log } return { $l.name as name } }").rows
    first = {one["number"]: one["logs"] for one in written}
    assert {row["name"] for row in logs} == {
        f"{w}-{n}" for w in range(WRITERS) for n in range(first[w], first[w] + LOGS)
    }
    assert graph.verify().ok


def _write(connection: Connection, place: Place, number: int, seconds: float) -> None:
    graph, began, turn = place.open(), time.monotonic(), 0
    due, logs = began, 0
    tons: dict[str, int] = {}
    while time.monotonic() < began + seconds:
        name = f"{number}-{turn * 37 % SHIPS}"
        graph.mutate(UPDATE, {"name": name, "tons": turn})
        tons[name] = turn
        if turn % 4 == 0:
            graph.mutate(ADD, {"name": f"{number}-{logs + LOGS}"})
            graph.mutate(DROP, {"name": f"{number}-{logs}"})
            logs += 1
        turn += 1
        # Turns that a busy machine left out are not made up for: a burst would be another load.
        now = time.monotonic()
        due = max(due + 1 / TURNS_PER_SECOND, now)
        time.sleep(due - now)
    connection.send({"number": number, "turns": turn, "tons": tons, "logs": logs})


def _maintain(connection: Connection, place: Place, seconds: float) -> None:
    settings = MaintainerSettings(
        interval=seconds / PASSES,
        cpu_share=0.25,
        cleanup_interval=timedelta(seconds=seconds / CLEANUPS),
        age_floor=timedelta(seconds=seconds / CLEANUPS),
    )
    stop, results = threading.Event(), list[MaintenancePass]()
    threading.Timer(seconds, stop.set).start()
    place.open().maintenance.watch(stop, settings, results.append)
    done: dict[str, int] = {}
    for result in results:
        done |= {task: done.get(task, 0) + count for task, count in result.done.items()}
    errors = [error for result in results for error in result.errors]
    lost = sum(result.lost_races for result in results)
    connection.send({"done": done, "errors": errors, "lost_races": lost})


@dataclass
class _Sampler:
    """Reads the graph all the time, and measures it at the end of each interval."""

    graph: og.Graph
    pids: Mapping[str, int]
    samples: list[dict[str, float]] = field(default_factory=list)

    def measure(self, until: float) -> None:
        """Read until a time, then add a sample."""
        milliseconds, turn = list[float](), 0
        while time.monotonic() < until or not milliseconds:
            began = time.perf_counter()
            rows = self.graph.query(READ, {"name": f"0-{turn * 11 % SHIPS}"}).rows
            milliseconds.append(1_000 * (time.perf_counter() - began))
            assert len(rows) == 1
            turn += 1
            time.sleep(READ_PAUSE_SECONDS)
        status = self.graph.maintenance.status()
        memory = {f"memory of {name}": _resident(pid) for name, pid in self.pids.items()}
        self.samples.append(
            {
                "files": status.files,
                "bytes": status.bytes,
                "data_bytes": sum(type_.bytes for type_ in status.types),
                "fragments": sum(type_.counts.fragments for type_ in status.types),
                "memory": sum(memory.values()),
                "read_ms": median(milliseconds),
                **memory,
            }
        )


def _resident(pid: int) -> float:
    """Return the resident memory of a process in MiB; 0 once it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Run the soak of the command line; exit with 1 if it shows a fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Place(str(Path(folder, "graph"))), options.seconds)
    text = json.dumps(result.to_json(), indent=2)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text)
    sys.exit("\n".join(result.faults()) or None)


if __name__ == "__main__":
    main()
