"""Benchmarks of many writers of one branch, of merges, and of a long history, in one run.

Rows are disjoint, so no change conflicts with another. Ratios are against one writer of the same
run; the first commits of each writer warm it up and are not counted. The scale 1 is 50,000 commits
by one process; a smaller one makes fewer.
"""

import json
import multiprocessing
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pyarrow as pa
from postgres import upserts_per_second

import omnigraph.graph as og
from tests.support.history import grow
from tests.support.serving import serving

SMALL = 0.1
SECONDS = 4.0
COMMITS = 50_000
SCHEMA = "node Note { slug: String @key  text: String? }"
TYPES, ENTITIES, CHANGED = 8, 100_000, 50
"""Of the graph in which branches are merged: node types, entities of each, and those changed."""
HISTORIES = (10, 10_000)
MERGES = 9
_HEADERS = {"Content-Type": "application/json"}
INSERT = "query add($slug: String) { insert Note { slug: $slug } }"

Latencies = list[float]


def many_writers(scale: float = SMALL) -> list[dict[str, object]]:
    """Return throughput, fairness and latency by number of writers, and the cost of history."""
    rows: list[dict[str, object]] = []
    alone = [_writers(_threads, 1), _writers(_processes, 1)]
    for kind, run, counts, single, budget in (
        ("threads", _threads, (8, 32), alone[0], 3.0),
        ("processes", _processes, (2, 4, 8), alone[1], 1.0),
    ):
        rows.append(_row(f"1 of the {kind}: commits", [_rate(single)], "per second", None))
        for count in counts:
            writers = _writers(run, count)
            name = f"{count} {kind} of one branch"
            rows.append(_row(f"{name}: commits", [_rate(writers)], "per second", None))
            ratio = _rate(writers) / _rate(single)
            rows.append(_row(f"{name} / one", [ratio], "times", budget))
            made = [len(writer) for writer in writers]
            rows.append(_row(f"{name}: fastest / slowest", [max(made) / min(made)], "times", 3.0))
            p99 = statistics.quantiles([t for writer in writers for t in writer], n=100)[98]
            p50 = statistics.median(single[0])
            rows.append(_row(f"{name}: p99 / p50 of one", [p99 / p50], "times", 10.0))
    rows += _served()
    rows += _merges()
    rows += _long_history(round(COMMITS * scale))
    return rows


def _writers(run: Callable[[Path, int], list[Latencies]], count: int) -> list[Latencies]:
    with _folder() as folder:
        og.init(folder / "graph", SCHEMA)
        return run(folder / "graph", count)


def _threads(uri: Path, count: int) -> list[Latencies]:
    graph, start = og.open(uri), threading.Barrier(count)
    results: list[Latencies] = [[] for _ in range(count)]

    def work(number: int) -> None:
        start.wait()
        results[number] = _write(graph, number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _processes(uri: Path, count: int) -> list[Latencies]:
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(count) as pool:
        start = manager.Barrier(count)
        return pool.starmap(_process, [(uri, number, start) for number in range(count)], 1)


def _process(uri: Path, number: int, start: threading.Barrier) -> Latencies:
    graph = og.open(uri)
    start.wait()
    return _write(graph, number)


def _write(graph: og.Graph, number: int) -> Latencies:
    """Insert one row after the other; any refusal is a failure of the benchmark."""
    spent: Latencies = []
    warm, end = time.perf_counter() + 1.0, time.perf_counter() + 1.0 + SECONDS
    for step in range(10**9):
        before = time.perf_counter()
        if before > end:
            return spent
        graph.mutate(INSERT, {"slug": f"{number}-{step}"})
        if before > warm:
            spent.append(time.perf_counter() - before)
    raise AssertionError("the time never ends")


def _rate(writers: list[Latencies]) -> float:
    return sum(map(len, writers)) / SECONDS


# --- served -------------------------------------------------------------------------------------


def _served() -> list[dict[str, object]]:
    """Let 64 clients write to one branch of a server, and to a branch each."""
    rows: list[dict[str, object]] = []
    rates: dict[str, float] = {}
    for name, workers, branches in (
        ("one branch", 1, 1),
        ("one branch, three workers", 3, 1),
        ("64 branches", 1, 64),
    ):
        with _folder() as folder:
            graph = og.init(folder / "graph", SCHEMA)
            names = ["main"]
            if branches > 1:
                names = [graph.branches.create(f"b{number}").name for number in range(branches)]
            arguments = [
                f"--graph=g={folder / 'graph'}",
                "--unauthenticated",
                f"--workers={workers}",
            ]
            limits = {"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "128"}
            with serving(*arguments, environment=limits) as server:
                spent = _clients(server.url, names)
        rates[name] = len(spent) / SECONDS
        title = f"64 served clients, {name}"
        budget = 400.0 if name == "one branch" else None
        rows.append(_row(f"{title}: commits", [rates[name]], "per second", budget))
        p50 = statistics.median(spent) * 1000
        rows.append(_row(f"{title}: p50", [p50], "ms", 200.0 if branches == 1 else None))
    ratio = rates["one branch, three workers"] / rates["one branch"]
    rows.append(_row("64 served clients: three workers / one", [ratio], "times", 1.0))
    upserts = upserts_per_second(SECONDS)
    if upserts is not None:
        name = "64 clients of PostgreSQL: one-row upserts"
        rows.append(_row(name, [upserts], "per second", None))
    return rows


def _clients(url: str, branches: list[str]) -> Latencies:
    """Let 64 threads send mutations, with the client of the standard library.

    The clients share the machine with the server: those of httpx need as much CPU as it does.
    """
    address = url.removeprefix("http://")
    spent: Latencies = []
    refused: list[str] = []
    start = threading.Barrier(64)

    def work(number: int) -> None:
        body = {"query": INSERT, "branch": branches[number % len(branches)]}
        with closing(HTTPConnection(address, timeout=60)) as client:
            start.wait()
            warm, end = time.perf_counter() + 1.0, time.perf_counter() + 1.0 + SECONDS
            step = 0
            while (before := time.perf_counter()) < end:
                params = {"slug": f"{number}-{step}"}
                content = json.dumps({**body, "params": params})
                client.request("POST", "/graphs/g/mutate", content, _HEADERS)
                answer = client.getresponse()
                text = answer.read()
                if answer.status != 200:
                    refused.append(text.decode())
                if before > warm:
                    spent.append(time.perf_counter() - before)
                step += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if refused:
        raise SystemExit(f"{len(refused)} requests were refused: {refused[0]}")
    return spent


# --- merges -------------------------------------------------------------------------------------


def _merges() -> list[dict[str, object]]:
    """Merge branches of few changes into a large graph, by one process, on two histories."""
    kinds = [f"Kind{number}" for number in range(TYPES)]
    keys = pa.array([f"k{number:06d}" for number in range(ENTITIES)])
    numbers = pa.array(range(ENTITIES), pa.int64())
    schema = "\n".join(f"node {kind} {{ slug: String @key  number: I64? }}" for kind in kinds)
    rows: list[dict[str, object]] = []
    with _folder() as folder:
        graph = og.init(folder / "graph", schema)
        graph.load({kind: pa.table({"slug": keys, "number": numbers}) for kind in kinds})
        graph.optimize()
        for commits in HISTORIES:
            grow(graph, f"node:{kinds[0]}", commits, versions=0)
            graph = og.open(folder / "graph")
            spent = [_merge(graph, kinds, commits + number) for number in range(MERGES)][2:]
            name = f"merge of {CHANGED} changes on {TYPES} types at {commits:,} commits"
            rows.append(_row(name, [seconds * 1000 for seconds in spent], "ms", 30.0))
    return rows


def _merge(graph: og.Graph, kinds: list[str], number: int) -> float:
    """Return the time of a merge; the target has changed other entities since the branch began."""
    graph.branches.create("side")
    changes = {kind: list[dict[str, object]]() for kind in kinds}
    for place in range(CHANGED):
        at = (number * CHANGED + place) * 7 % (ENTITIES - 1)
        changes[kinds[place % TYPES]].append({"slug": f"k{at:06d}", "number": -number})
    graph.load(changes, branch="side")
    graph.load({kinds[0]: [{"slug": f"k{ENTITIES - 1:06d}", "number": number}]})
    before = time.perf_counter()
    graph.merge("side")
    spent = time.perf_counter() - before
    graph.branches.delete("side")
    return spent


# --- a long history ----------------------------------------------------------------------------


def _long_history(commits: int) -> list[dict[str, object]]:
    """Commit one row after the other: the last ones against the first, and the memory."""
    window, early = max(commits // 100, 20), max(commits // 10, 100)
    spent: Latencies = []
    with _folder() as folder:
        graph = og.init(folder / "graph", SCHEMA)
        for step in range(commits):
            before = time.perf_counter()
            graph.mutate(INSERT, {"slug": f"k{step}"})
            spent.append(time.perf_counter() - before)
            if step == early:
                memory = _resident()
        grown = _resident() / memory
    first, last = (statistics.median(spent[at : at + window]) for at in (window, commits - window))
    name = f"the last of {commits:,} commits"
    return [
        _row(f"{name} / the {window}th", [last / first], "times", 1.3),
        _row(f"{name}: memory / at {early:,}", [grown], "times", 1.1),
    ]


def _resident() -> float:
    """Return the resident memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _row(name: str, values: list[float], unit: str, budget: float | None) -> dict[str, object]:
    best, median = round(min(values), 3), round(statistics.median(values), 3)
    return {"name": name, "best": best, "median": median, "unit": unit, "budget": budget}


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as name:
        yield Path(name)
