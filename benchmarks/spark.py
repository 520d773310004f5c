"""Benchmarks of loading on Spark: against itself without validation, one process, and ladybug.

Every measurement runs in a process of its own. Spark is measured after one small job: the start of
its JVM is a row of its own. `cold` is the first load of a process, `warm` the second one into a new
graph. The scale 1 is two million nodes and ten million edges, and the driver has two gigabytes.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from load import SCHEMA, make_files
from load import TASKS as LOCAL_TASKS
from pyspark.sql import SparkSession

import omnigraph.graph as og
from omnigraph import pipeline
from omnigraph.pipeline.load import commit_builder, stage_tasks, staging

EDGES = 10_000_000
SMALL = 0.05
MEMORY = "2g"
CHANGED = 10
"""The merge changes one of this many edges."""


def pipeline_ratios(scale: float = SMALL, rounds: int = 1) -> list[dict[str, object]]:
    """Return the ratios of a load on Spark to what it contains, and others beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder, scale, EDGES)
        found = [{task: run(task, folder) for task in TASKS} for _ in range(rounds)]
    ratios = [
        _ratio("Spark load / the same without validation", found, "spark", "unchecked", 2.5),
        _ratio(
            "Spark load, warm / load in one process",
            found,
            "spark",
            "local",
            2.5,
            ("warm", "seconds"),
        ),
        _ratio("Spark load, cold / load in one process", found, "spark", "local", 3.5),
        _ratio(
            "Spark load, warm, e-mail keys / numbered",
            found,
            "emails",
            "spark",
            1.1,
            "warm",
            "warm",
        ),
        _ratio("Spark load, cold / copy of Parquet by Spark", found, "spark", "copy", 0.0),
        _ratio("Spark NDJSON load / load in one process", found, "lines", "local_lines", 4.0),
        _ratio("Spark merge of a tenth / appending it", found, "merge", "append", 4.0),
        _ratio("Spark load / COPY of ladybug", found, "spark", "ladybug", 0.0),
    ]
    seconds = [
        _row(f"seconds of {task}", [r[task]["seconds"] for r in found], "s of wall time", 0.0)
        for task in TASKS
    ]
    start = [r["spark"]["start"] for r in found]
    warm = {"Spark load": "spark", "pipeline of 23 rows": "demo"}
    seconds += [
        _row(f"seconds of {name}, warm", [r[task]["warm"] for r in found], "s of wall time", 0.0)
        for name, task in warm.items()
    ]
    rows = [*ratios, *seconds, _row("seconds of starting Spark", start, "s of wall time", 0.0)]
    return [{**row, "name": f"pipeline: {row['name']}, scale {scale:g}"} for row in rows]


def _ratio(
    name: str,
    found: list[dict[str, dict[str, float]]],
    over: str,
    under: str,
    budget: float,
    measures: tuple[str, str] = ("seconds", "seconds"),
) -> dict[str, object]:
    values = [r[over][measures[0]] / r[under][measures[1]] for r in found]
    return _row(name, values, "times", budget)


def _row(name: str, values: list[float], unit: str, budget: float) -> dict[str, object]:
    best, median = min(values), statistics.median(values)
    return {"name": name, "best": best, "median": median, "unit": unit, "budget": budget}


def run(task: str, folder: Path) -> dict[str, float]:
    """Run a task in a process of its own."""
    command = [sys.executable, __file__, task, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- tasks -------------------------------------------------------------------------------------


def _graph(folder: Path) -> og.Graph:
    path = folder / "graph"
    shutil.rmtree(path, ignore_errors=True)
    return og.init(path, SCHEMA)


def _session() -> tuple[SparkSession, float]:
    began = time.perf_counter()
    spark = pipeline.session(memory=MEMORY)
    spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").collect()
    return spark, time.perf_counter() - began


def _tables(folder: Path) -> dict[str, Path]:
    return {"Person": folder / "people.parquet", "Knows": folder / "knows.parquet"}


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def spark_load(folder: Path) -> dict[str, float]:
    """Load tables on Spark, with every check."""
    return _cold_and_warm(folder, _tables(folder))


def emails_load(folder: Path) -> dict[str, float]:
    """Load the same with addresses as keys, which differ at their start only."""
    tables = {
        name: folder / f"{path.stem}-emails.parquet" for name, path in _tables(folder).items()
    }
    for name, path in _tables(folder).items():
        table = pq.read_table(path)
        for column in ("name",) if name == "Person" else ("from", "to"):
            cells = pc.binary_join_element_wise(
                "user.", table[column], "@mail-production.example.org", ""
            )
            table = table.set_column(table.column_names.index(column), column, cells)
        pq.write_table(table, tables[name], row_group_size=250_000)
    return _cold_and_warm(folder, tables)


def _cold_and_warm(folder: Path, tables: Mapping[str, Path]) -> dict[str, float]:
    _, start = _session()
    seconds = []
    for _ in range(2):
        graph = _graph(folder)
        seconds.append(_timed(lambda: graph.load(tables, mode="append", engine="spark")))  # noqa: B023
    return {"seconds": seconds[0], "warm": seconds[1], "start": start}


def copy_load(folder: Path) -> dict[str, float]:
    """Copy the files with Spark alone, without a look at any row."""
    spark, _ = _session()

    def copy() -> None:
        for name, path in _tables(folder).items():
            frame = spark.read.parquet(str(path))
            frame.write.mode("overwrite").parquet(str(folder / "copies" / name))

    return {"seconds": _timed(copy)}


def demo_pipeline(folder: Path) -> dict[str, float]:
    """Run the sample pipeline of 23 rows, which embeds texts, in a new session and again."""
    _session()
    library = Path(__file__).resolve().parents[1] / "samples" / "library"
    seconds = []
    for number in range(2):
        place = folder / f"library-{number}"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(library, place)
        graph = og.init(place / "graph", library / "schema.pg")
        graph.load(library / "data.ndjson")
        seconds.append(_timed(lambda: graph.pipeline.run(place / "pipeline.yaml")))  # noqa: B023
    return {"seconds": seconds[0], "warm": seconds[1]}


def unchecked_load(folder: Path) -> dict[str, float]:
    """Load tables on Spark, with no check but what makes typed rows of cells."""
    _session()
    graph = _graph(folder)
    with _unchecked():
        load = lambda: graph.load(_tables(folder), mode="append", engine="spark")  # noqa: E731
        return {"seconds": _timed(load)}


@contextmanager
def _unchecked() -> Iterator[None]:
    kept = commit_builder.StagedValidation, stage_tasks.stage_rows
    commit_builder.StagedValidation, stage_tasks.stage_rows = _Nothing, _stage_unchecked
    try:
        yield
    finally:
        commit_builder.StagedValidation, stage_tasks.stage_rows = kept


class _Nothing:
    """Examines nothing."""

    consulted: frozenset[str] = frozenset()
    is_clean = True

    def __init__(self, *_: object) -> None:
        pass

    def superseded(self) -> dict[str, object]:
        return {}

    def count(self, *_: object) -> int:
        return 0

    def close(self) -> None:
        pass


def _stage_unchecked(*given: object) -> dict[str, object]:
    """Stage rows on a worker without looking at their values."""
    staging.check_values = lambda _: None
    return staging.stage_rows(*given)


def lines_load(folder: Path) -> dict[str, float]:
    """Load lines on Spark."""
    _session()
    graph = _graph(folder)
    return {
        "seconds": _timed(
            lambda: graph.load(folder / "graph.ndjson", mode="append", engine="spark")
        )
    }


def local_load(folder: Path) -> dict[str, float]:
    """Load tables in one process."""
    graph = _graph(folder)
    return {"seconds": _timed(lambda: graph.load(_tables(folder), mode="append"))}


def local_lines_load(folder: Path) -> dict[str, float]:
    """Load lines in one process."""
    graph = _graph(folder)
    return {"seconds": _timed(lambda: graph.load(folder / "graph.ndjson", mode="append"))}


def _with_edges(folder: Path) -> tuple[og.Graph, pa.Table]:
    """Return a graph that has all edges, and a tenth of them with other values."""
    graph = _graph(folder)
    edges = pq.read_table(folder / "knows.parquet")
    ids = pc.cast(pa.array(range(edges.num_rows)), pa.string())
    edges = edges.append_column("id", pc.binary_join_element_wise("e", ids, ""))
    tables = {"Person": folder / "people.parquet", "Knows": edges}
    graph.load(tables, mode="append")
    return graph, edges.take(pa.array(range(0, edges.num_rows, CHANGED)))


def merge_load(folder: Path) -> dict[str, float]:
    """Merge changed edges on Spark into all of them."""
    _session()
    graph, changed = _with_edges(folder)
    pq.write_table(changed, folder / "changed.parquet", row_group_size=250_000)
    given = {"Knows": folder / "changed.parquet"}
    return {"seconds": _timed(lambda: graph.load(given, mode="merge", engine="spark"))}


def append_load(folder: Path) -> dict[str, float]:
    """Append as many edges on Spark to all of them."""
    _session()
    graph, changed = _with_edges(folder)
    ids = pc.binary_join_element_wise("n", changed["id"], "")
    new = changed.set_column(changed.column_names.index("id"), "id", ids)
    pq.write_table(new, folder / "new.parquet", row_group_size=250_000)
    given = {"Knows": folder / "new.parquet"}
    return {"seconds": _timed(lambda: graph.load(given, mode="append", engine="spark"))}


def ladybug_load(folder: Path) -> dict[str, float]:
    """Load the same tables with ladybug's COPY."""
    (folder / "made").mkdir(exist_ok=True)
    shutil.rmtree(folder / "made" / "bug", ignore_errors=True)
    return {"seconds": LOCAL_TASKS["ladybug"](folder)}


TASKS: Mapping[str, Callable[[Path], dict[str, float]]] = {
    "spark": spark_load,
    "emails": emails_load,
    "copy": copy_load,
    "demo": demo_pipeline,
    "unchecked": unchecked_load,
    "local": local_load,
    "lines": lines_load,
    "local_lines": local_lines_load,
    "merge": merge_load,
    "append": append_load,
    "ladybug": ladybug_load,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    print(json.dumps(TASKS[given.task](given.folder)))
