"""Many clients at one server for long: nothing is lost, nothing breaks, memory stays flat.

`python -m tests.server.soak --seconds 300` starts three processes on one graph, lets 64 clients
read and write it, kills a process on the way, and compares at the end what was acknowledged
with what is there. Latencies are reported beside those of the embedded graph in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import omnigraph.graph as og
from tests.support.serving import ALL_PEOPLE, INSERT, Server, make_graph, serving

CLIENTS, WORKERS, WRITES = 64, 3, 0.2
NEIGHBOURS = """
query known($name: String) {
  match { $p: Person  $p.name = $name  $p knows $q }
  return { $q.name as name }
}
"""
OLDEST = "query oldest() { match { $p: Person } return { max($p.age) as age, count($p) as n } }"
SEEDED = 500
THIRDS, GROWTH = (1 / 3, 2 / 3), 1.1
"""Memory may not grow by more from the second third to the last."""


@dataclass
class Reported:
    """What the clients saw."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[tuple[float, float]]] = field(
        default_factory=lambda: {"read": [], "write": []}
    )
    """When each answer came, and how long it took."""
    bad: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def percentiles(values: list[float]) -> dict[str, float]:
    """Return milliseconds by percentile."""
    ordered = sorted(values) or [0.0]
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        name: round(ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1000, 1)
        for name, share in at.items()
    }


def seed(uri: str) -> None:
    """Make people who know each other."""
    lines = [{"type": "Person", "data": {"name": f"s{n}", "age": n % 90}} for n in range(SEEDED)]
    lines += [
        {"edge": "Knows", "from": f"s{n}", "to": f"s{(n * 7) % SEEDED}"} for n in range(SEEDED)
    ]
    og.open(uri).load("\n".join(json.dumps(line) for line in lines).encode())


def one_client(server: Server, number: int, reported: Reported, stop: threading.Event) -> None:
    """Read and write until it is over."""
    chance = random.Random(number)
    step = 0
    with httpx.Client(base_url=server.url, timeout=120) as client:
        while not stop.is_set():
            step += 1
            if chance.random() < WRITES:
                _write(client, f"c{number}-{step}", reported)
            else:
                _read(client, chance, reported)


def _write(client: httpx.Client, name: str, reported: Reported) -> None:
    body = {"query": INSERT, "params": {"name": name, "age": len(name)}}
    answer = _timed(lambda: client.post("/graphs/g/mutate", json=body), "write", reported)
    with reported.lock:
        if answer is None:
            reported.unknown.add(name)
        elif answer.status_code == 200:
            reported.acknowledged[name] = len(name)
        elif answer.status_code >= 500:
            reported.bad.append(answer.text)


def _read(client: httpx.Client, chance: random.Random, reported: Reported) -> None:
    name = f"s{chance.randrange(SEEDED)}"
    body: dict[str, Any] = chance.choice(
        [{"query": NEIGHBOURS, "params": {"name": name}}, {"query": OLDEST}]
    )
    answer = _timed(lambda: client.post("/graphs/g/query", json=body), "read", reported)
    if answer is not None and answer.status_code >= 500:
        with reported.lock:
            reported.bad.append(answer.text)


def _timed(
    ask: Callable[[], httpx.Response], kind: str, reported: Reported
) -> httpx.Response | None:
    begun = time.monotonic()
    try:
        answer = ask()
    except httpx.TransportError as error:
        with reported.lock:
            reported.broken[type(error).__name__] += 1
        return None
    ended = time.monotonic()
    with reported.lock:
        reported.statuses[kind, answer.status_code] += 1
        reported.seconds[kind].append((ended, ended - begun))
    return answer


def answers(reported: Reported, begun: float, until: float) -> dict[str, Any]:
    """Return how long the answers of a while took."""
    found = {
        kind: [took for at, took in pairs if begun <= at < until]
        for kind, pairs in reported.seconds.items()
    }
    return {kind: {"count": len(v), **percentiles(v)} for kind, v in found.items()}


def embedded(uri: str, seconds: float) -> dict[str, Any]:
    """Return how long the same takes one caller without a server."""
    graph, spent = og.open(uri), {"read": list[float](), "write": list[float]()}
    until, chance, step = time.monotonic() + seconds, random.Random(0), 0
    while time.monotonic() < until:
        step += 1
        begun = time.monotonic()
        kind = "write" if chance.random() < WRITES else "read"
        if kind == "write":
            graph.mutate(INSERT, {"name": f"e{step}", "age": 1})
        else:
            graph.query(NEIGHBOURS, {"name": f"s{chance.randrange(SEEDED)}"})
        spent[kind].append(time.monotonic() - begun)
    return {kind: {"count": len(v), **percentiles(v)} for kind, v in spent.items()}


def workers(server: Server) -> list[int]:
    """Return the processes of a server that answer requests."""
    shown = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(server.process.pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (line.split() for line in shown.stdout.splitlines())
    return [int(words[0]) for words in lines if "omnigraph.server.worker" in words]


def memory(server: Server) -> int:
    """Return mebibytes that the processes of a server hold."""
    pages = 0
    for pid in workers(server):
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)


def soak(folder: Path, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """Run it, and return what is to be reported, and what is wrong."""
    uri = make_graph(folder / "g")
    seed(uri)
    alone = embedded(uri, min(max(seconds / 10, 3), 20))
    reported, stop = Reported(), threading.Event()
    held: list[tuple[float, int]] = []
    arguments = [f"--graph=g={uri}", "--unauthenticated", f"--workers={WORKERS}"]
    environment = {"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "64", "OMNIGRAPH_LOG": "warning"}
    with serving(*arguments, environment=environment, preloaded=False) as server:
        clients = [
            threading.Thread(target=one_client, args=(server, number, reported, stop), daemon=True)
            for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        begun, killed = time.monotonic(), None
        while (passed := time.monotonic() - begun) < seconds:
            held.append((round(passed, 1), memory(server)))
            if killed is None and passed > seconds / 4:
                killed = min(workers(server))
                os.kill(killed, signal.SIGKILL)
            stop.wait(min(seconds / 60, 5))
        stop.set()
        for client in clients:
            client.join()
        replaced = [pid for pid in workers(server) if pid != killed]
        code = server.stop()
    graph = og.open(uri)
    found = {row["name"]: row["age"] for row in graph.query(ALL_PEOPLE)}
    lost = [name for name, age in reported.acknowledged.items() if found.get(name) != age]
    made_up = [
        name
        for name in found
        if name.startswith("c")
        and name not in reported.acknowledged
        and name not in reported.unknown
    ]
    report = {
        "seconds": seconds,
        "clients": CLIENTS,
        "processes": WORKERS,
        "requests_per_second": round(sum(reported.statuses.values()) / seconds, 1),
        "served": answers(reported, 0, float("inf")),
        "served_in_the_first_quarter": answers(reported, begun, begun + seconds / 4),
        "served_in_the_last_quarter": answers(reported, begun + seconds * 3 / 4, begun + seconds),
        "embedded_one_caller": alone,
        "statuses": {
            f"{kind} {status}": n for (kind, status), n in sorted(reported.statuses.items())
        },
        "broken_connections": dict(reported.broken),
        "acknowledged_writes": len(reported.acknowledged),
        "memory_mib": held[:: max(len(held) // 12, 1)],
    }
    middle, last = (max(m for at, m in held if low <= at / seconds < low + 1 / 3) for low in THIRDS)
    wrong = {
        f"{len(lost)} acknowledged writes are lost: {lost[:5]}": lost,
        f"entities nobody wrote: {made_up[:5]}": made_up,
        f"{len(reported.bad)} answers with 5xx: {reported.bad[:3]}": reported.bad,
        f"memory grew from {middle} to {last} MiB": last > GROWTH * middle,
        "the process that was killed was not replaced": len(replaced) != WORKERS,
        f"the server ended with {code}": code,
        "the graph does not verify": not graph.verify().ok,
    }
    return report, [text for text, holds in wrong.items() if holds]


def main() -> str | None:
    """Run from the command line, and return what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--out", type=Path, help="File for the report.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-soak-") as folder:
        report, wrong = soak(Path(folder), given.seconds)
    text = json.dumps(report, indent=2)
    print(text)
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text + "\n")
    return "\n".join(wrong) or None


if __name__ == "__main__":
    sys.exit(main())
