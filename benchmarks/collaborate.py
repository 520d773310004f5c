"""Benchmarks of collaboration: what ten changed entities cost beside a small graph and a large one.

Requests are counted by an S3 server, times are taken on disk. The scale 1 is five million people
against ten thousand: the ratio of a cost that follows the change is one.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

import omnigraph.graph as og
from omnigraph.changes.diff import diff
from tests.support.counting_s3 import CountingServer, counting_server

FEW, MANY = 10_000, 5_000_000
SMALL = 0.02
ROUNDS = 5
SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""


def _apply(graph: og.Graph, old: str, new: str) -> None:
    graph.schema.apply(SCHEMA.replace(old, new))


WORK: Mapping[str, Callable[[og.Graph], object]] = {
    "diff of ten": lambda graph: list(
        diff(graph._manifest, graph.snapshot(), graph.snapshot("side"))
    ),
    "merge of ten": lambda graph: graph.merge("side"),
    "add a property": lambda graph: _apply(graph, "age: I32?", "age: I32?  city: String?"),
    "rename a property": lambda graph: _apply(
        graph, "age: I32?", 'years: I32? @rename_from("age")'
    ),
    "drop a property": lambda graph: _apply(graph, "age: I32?", ""),
}


def collaborations(scale: float = SMALL) -> list[dict[str, object]]:
    """Return requests and times of each piece of work, large against small."""
    sizes = {"small": FEW, "large": max(FEW, round(MANY * scale))}
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name, counting_server() as server:
        folders = {key: make(Path(name) / key, size) for key, size in sizes.items()}
        for work in WORK:
            asked = {key: requests(server, folder, work) for key, folder in folders.items()}
            took = {key: times(folder, work) for key, folder in folders.items()}
            against = f"{sizes['large']:,} people / 10,000"
            ratio = asked["large"] / asked["small"]
            rows.append(row(f"{work}: requests, {against}", [ratio], "times", 1.1))
            rows.append(row(f"{work}: requests, large", [asked["large"]], "requests", None))
            ratios = [a / b for a, b in zip(took["large"], took["small"], strict=True)]
            rows.append(row(f"{work}: time on disk, {against}", ratios, "times", None))
            ms = [value * 1000 for value in took["large"]]
            rows.append(row(f"{work}: time on disk, large", ms, "ms", None))
    return rows


def make(folder: Path, size: int) -> Path:
    """Create an indexed graph of `size` people with a branch that changes ten of them."""
    graph = og.init(folder, SCHEMA)
    people = pa.array([f"p{number:08d}" for number in range(size)])
    ages = pa.array(range(size), pa.int32())
    graph.load({"Person": pa.table({"name": people, "age": ages})})
    some, after = people.slice(0, size // 10), people.slice(1, size // 10)
    graph.load({"Knows": pa.table({"id": some, "from": some, "to": after})})
    graph.optimize()
    graph.branches.create("side")
    changed = [{"name": f"p{number:08d}", "age": 7} for number in range(500, 505)]
    fresh = [{"name": f"new{number}", "age": 1} for number in range(5)]
    graph.load({"Person": changed + fresh}, branch="side")
    graph.load({"Person": [{"name": "p00000001", "age": 9}]})
    return folder


def requests(server: CountingServer, folder: Path, work: str) -> int:
    """Count what a process new to the graph asks of an object store."""
    bucket = f"{folder.name}-{work.replace(' ', '-')}"
    graph = og.open(server.load(folder, bucket), storage_options=server.options)
    graph.snapshot()
    with server.counted() as counted:
        WORK[work](graph)
    server.empty(bucket)
    return counted.total


def times(folder: Path, work: str) -> list[float]:
    """Time the work on fresh copies of the folder; files are shared, for none is ever changed."""
    found = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            copy = Path(name) / "graph"
            shutil.copytree(folder, copy)
            graph = og.open(copy)
            graph.snapshot()
            before = time.perf_counter()
            WORK[work](graph)
            found.append(time.perf_counter() - before)
    return found


def row(name: str, values: list[float], unit: str, budget: float | None) -> dict[str, object]:
    """Return one line of the table."""
    best, median = round(min(values), 3), round(statistics.median(values), 3)
    return {"name": name, "best": best, "median": median, "unit": unit, "budget": budget}
