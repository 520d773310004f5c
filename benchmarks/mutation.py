"""Benchmark of one-row mutations on a large indexed graph, beside the staging they contain."""

import statistics
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
from storage import temporary_folder

import omnigraph.graph as og
from omnigraph.commit.publish import publish
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, new_commit_id
from omnigraph.storage import staged_writes
from omnigraph.storage.layout import dataset_path

NODES = 1_000_000
TIMES = 100
SCHEMA = "node Person { name: String @key  age: I32?  @range(age, 0..150) }"
INSERT = "query put($name: String, $age: I32) { insert Person { name: $name, age: $age } }"
UPDATE = (
    "query age($name: String, $age: I32) { update Person set { age: $age } where name = $name }"
)
PERSON = "node:Person"


def mutations_of_one_row() -> list[dict[str, object]]:
    """Insert and update one of a million nodes, against bare staging of a row and publishing it."""
    with temporary_folder() as folder:
        graph = og.init(folder / "graph", SCHEMA)
        names = pa.array([f"person-{number}" for number in range(NODES)])
        ages = pa.array([number % 100 for number in range(NODES)], pa.int32())
        graph.insert("Person", pa.table({"name": names, "age": ages}))
        graph.indexes.ensure()
        numbers = count()

        def insert() -> None:
            graph.mutate(INSERT, {"name": f"new-{next(numbers)}", "age": 40})

        def update() -> None:
            graph.mutate(UPDATE, {"name": f"person-{7919 * next(numbers) % NODES}", "age": 41})

        def append() -> None:
            _publish(graph, staged_writes.append, f"bare-{next(numbers)}", 1)

        def upsert() -> None:
            _publish(graph, staged_writes.upsert, f"person-{7907 * next(numbers) % NODES}", 0)

        work = {"append": append, "insert": insert, "upsert": upsert, "update": update}
        spent = _medians(work)
    return [
        {
            "name": f"{ours} among {NODES:,} nodes / bare {bare} and publish",
            "best": round(spent[ours] / spent[bare], 2),
            "median": round(spent[ours] / spent[bare], 2),
            "unit": "times, p50",
            "budget": 3.0,
        }
        for ours, bare in (("insert", "append"), ("update", "upsert"))
    ]


def _publish(graph: og.Graph, staging: Callable[..., Any], name: str, more: int) -> None:
    """Stage one row and publish it, checking nothing."""
    manifest, snapshot = graph._manifest, graph.snapshot()
    entry = snapshot.entry(PERSON)
    with manifest.reading(PERSON, entry) as base:
        columns = {"id": [name], "name": [name], "age": pa.array([1], pa.int32())}
        fields = [base.schema.field(column) for column in columns]
        made = staging(base, pa.table(list(columns.values()), schema=pa.schema(fields)))
    manifest.datasets.keep(dataset_path("node", *entry.key), made)
    rows = entry.rows + more
    change = StagedDataset(PERSON, *entry.key, entry.physical, int(made.version), rows)
    staged = StagedCommit(
        id=new_commit_id(),
        operation="load",
        datasets=(change,),
        read_schema=snapshot.head.schema_hash,
    )
    publish(manifest.main, "main", staged)


def _medians(work: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Do everything in turn, so that a busy moment hits all alike."""
    spent: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(TIMES):
        for name, do in work.items():
            begun = time.perf_counter()
            do()
            spent[name].append(time.perf_counter() - begun)
    return {name: statistics.median(times[5:]) for name, times in spent.items()}
