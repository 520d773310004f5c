"""Benchmarks of loading: Parquet and NDJSON against bare Lance, bare parsing, and ladybug's COPY.

Every measurement runs in a process of its own, which also reports its peak memory. All load the
same files, written once; the scale 1 is two million nodes and eight million edges.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
import pyarrow.parquet as pq
from lance.fragment import write_fragments

import omnigraph.graph as og

NODES, EDGES = 2_000_000, 8_000_000
SMALL = 0.05
SCHEMA = """
node Person {
    name: String @key
    city: String
    age: I32
    score: F64?
    joined: DateTime?
    @range(age, 0..120)
}
edge Knows: Person -> Person {
    since: Date
    weight: F32?
}
"""
_PIECE = 250_000


def load_ratios(scale: float = SMALL, rounds: int = 3) -> list[dict[str, object]]:
    """Return the ratios of loading to what it contains, its memory, and ladybug's COPY beside it.

    A ratio is taken per round, so that a busy machine slows both sides of it.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder, scale)
        found = [{task: run(task, folder) for task in TASKS} for _ in range(rounds)]
    ratios = [
        _ratio("Parquet load / bare Lance", found, ["parquet"], ["lance"], 2.5),
        _ratio("the same without generated ids in Lance", found, ["parquet"], ["given"], 2.5),
        _ratio("NDJSON load / (parse + bare Lance)", found, ["ndjson"], ["parse", "lance"], 2.0),
        _ratio("Parquet load / COPY of ladybug", found, ["parquet"], ["ladybug"], 1.0),
    ]
    memory = [
        _row(f"peak memory of {task} load", [r[task]["peak_mib"] for r in found], "MiB", 4096.0)
        for task in ("parquet", "ndjson")
    ]
    seconds = [
        _row(f"seconds of {task}", [r[task]["seconds"] for r in found], "s of wall time", 0.0)
        for task in TASKS
    ]
    return [
        {**row, "name": f"{row['name']}, scale {scale:g}"} for row in (*ratios, *memory, *seconds)
    ]


def _ratio(
    name: str,
    rounds: Sequence[Mapping[str, Mapping[str, float]]],
    ours: Sequence[str],
    theirs: Sequence[str],
    budget: float,
) -> dict[str, object]:
    def seconds(found: Mapping[str, Mapping[str, float]], tasks: Sequence[str]) -> float:
        return sum(found[task]["seconds"] for task in tasks)

    ratios = [seconds(found, ours) / seconds(found, theirs) for found in rounds]
    return _row(name, ratios, "times", budget)


def _row(name: str, numbers: Sequence[float], unit: str, budget: float) -> dict[str, object]:
    best, median = round(min(numbers), 3), round(statistics.median(numbers), 3)
    return {"name": name, "best": best, "median": median, "unit": unit, "budget": budget or None}


# --- the files ---------------------------------------------------------------------------------


def make_files(folder: Path, scale: float, all_edges: int = EDGES) -> None:
    """Write people.parquet, knows.parquet and graph.ndjson."""
    nodes, edges = int(NODES * scale), int(all_edges * scale)
    random = np.random.default_rng(7)
    with (folder / "graph.ndjson").open("wb") as lines:
        _write(folder / "people.parquet", nodes, lambda at, n: _people(at, n, random), lines)
        _write(folder / "knows.parquet", edges, lambda at, n: _knows(n, nodes, random), lines)


def _write(path: Path, total: int, make: Callable[[int, int], pa.Table], lines: BinaryIO) -> None:
    writer = None
    for at in range(0, total, _PIECE):
        table = make(at, min(_PIECE, total - at))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        lines.write(_lines(table))
    writer.close()


def _people(at: int, count: int, random: np.random.Generator) -> pa.Table:
    cities = pa.array([f"City {number}" for number in range(1000)])
    start = int(datetime(2015, 1, 1, tzinfo=UTC).timestamp() * 1000)
    return pa.table(
        {
            "name": _names(np.arange(at, at + count)),
            "city": cities.take(pa.array(random.integers(0, 1000, count))),
            "age": pa.array(random.integers(0, 100, count), pa.int32()),
            "score": pa.array(random.random(count).round(6)),
            "joined": pa.array(start + random.integers(0, 10**11, count), pa.timestamp("ms")),
        }
    )


def _knows(count: int, nodes: int, random: np.random.Generator) -> pa.Table:
    days = (date(2020, 1, 1) - date(1970, 1, 1)).days
    return pa.table(
        {
            "from": _names(random.integers(0, nodes, count)),
            "to": _names(random.integers(0, nodes, count)),
            "since": pa.array(days + random.integers(0, 2000, count).astype(np.int32)).view(
                pa.date32()
            ),
            "weight": pa.array(random.random(count).round(3), pa.float32()),
        }
    )


def _names(numbers: np.ndarray) -> pa.Array:
    text = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 8, "0")
    return pc.binary_join_element_wise("person-", text, "")


def _lines(table: pa.Table) -> bytes:
    """Write rows as lines, quickly: all cells of a column at once."""
    if "from" in table.schema.names:
        ends = ['{"edge":"Knows","from":"', table["from"], '","to":"', table["to"]]
        parts = [*ends, '","data":{"since":"', pc.cast(table["since"], pa.string())]
        parts += ['","weight":', pc.cast(table["weight"], pa.string()), "}}\n"]
    else:
        parts = ['{"type":"Person","data":{"name":"', table["name"], '","city":"', table["city"]]
        parts += ['","age":', pc.cast(table["age"], pa.string())]
        parts += [',"score":', pc.cast(table["score"], pa.string())]
        instants = pc.strftime(table["joined"], "%Y-%m-%dT%H:%M:%SZ")
        parts += [',"joined":"', instants, '"}}\n']
    joined = pc.binary_join_element_wise(*parts, "")
    chunks = joined.chunks if isinstance(joined, pa.ChunkedArray) else [joined]
    return b"".join(chunk.buffers()[2].to_pybytes() for chunk in chunks)


# --- what is measured --------------------------------------------------------------------------


def _lance(folder: Path) -> float:
    """Write what the graph stores: rows with ids."""
    people, knows = _tables(folder)
    ids = pa.array([f"01J{number:023d}" for number in range(knows.num_rows)])
    people = people.add_column(0, "id", people["name"])
    knows = knows.add_column(0, "id", ids)
    return _write_bare(folder, [people, knows])


def _lance_given(folder: Path) -> float:
    """Write what the files hold."""
    return _write_bare(folder, list(_tables(folder)))


def _tables(folder: Path) -> tuple[pa.Table, pa.Table]:
    return pq.read_table(folder / "people.parquet"), pq.read_table(folder / "knows.parquet")


def _write_bare(folder: Path, tables: list[pa.Table]) -> float:
    before = time.perf_counter()
    for number, table in enumerate(tables):
        uri = str(folder / "made" / str(number))
        staged = write_fragments(table, uri, mode="create", return_transaction=True)
        lance.LanceDataset.commit(uri, staged)
    return time.perf_counter() - before


def _parse(folder: Path) -> float:
    """Parse all lines with Arrow, as they are."""
    before = time.perf_counter()
    pa_json.read_json(folder / "graph.ndjson")
    return time.perf_counter() - before


def _parquet(folder: Path) -> float:
    return _load(folder, {"Person": folder / "people.parquet", "Knows": folder / "knows.parquet"})


def _ndjson(folder: Path) -> float:
    return _load(folder, folder / "graph.ndjson")


def _load(folder: Path, data: object) -> float:
    graph = og.init(folder / "made" / "graph", SCHEMA)
    before = time.perf_counter()
    graph.load(data, mode="append")
    return time.perf_counter() - before


def _ladybug(folder: Path) -> float:
    import ladybug  # noqa: PLC0415 - only this one task needs it

    connection = ladybug.Connection(ladybug.Database(str(folder / "made" / "bug")))
    connection.execute(
        "CREATE NODE TABLE Person(name STRING, city STRING, age INT32, score DOUBLE,"
        " joined TIMESTAMP, PRIMARY KEY(name))"
    )
    connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, since DATE, weight FLOAT)")
    before = time.perf_counter()
    connection.execute(f"COPY Person FROM '{folder / 'people.parquet'}'")
    connection.execute(f"COPY Knows FROM '{folder / 'knows.parquet'}'")
    return time.perf_counter() - before


TASKS: Mapping[str, Callable[[Path], float]] = MappingProxyType(
    {
        "lance": _lance,
        "given": _lance_given,
        "parse": _parse,
        "parquet": _parquet,
        "ndjson": _ndjson,
        "ladybug": _ladybug,
    }
)


def run(task: str, folder: Path) -> dict[str, float]:
    """Run one measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--task", task, "--folder", str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    shutil.rmtree(folder / "made")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run one task and print its time and memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True, choices=TASKS)
    parser.add_argument("--folder", required=True, type=Path)
    given = parser.parse_args()
    (given.folder / "made").mkdir()
    seconds = TASKS[given.task](given.folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(seconds, 3), "peak_mib": round(peak)}))


if __name__ == "__main__":
    main()
