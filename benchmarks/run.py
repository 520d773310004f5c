"""Measure speed and record it in benchmarks/results.json, with the machine and versions.

Nothing is asserted: a number is a fact about one machine. Each benchmark gives the budget it is
compared with.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import collaborate
import install
import load
import planner
import reads
import search
import social
import spark
import start
import studio
import writers
from collaborate import collaborations
from install import installations
from load import load_ratios
from mutation import mutations_of_one_row
from planner import planner_ratios
from reads import reads_beside_ladybug
from search import searches
from social import social_reads
from spark import pipeline_ratios
from start import starts_of_commands
from storage import branch_of_a_long_history, commits_of_one_row, open_of_100_types
from studio import interactions
from workload import big_queries, big_schema
from writers import many_writers

from omnigraph.catalog import read_catalog
from omnigraph.lang import Code, report_for_text
from omnigraph.plan import lint_queries

RESULTS = Path(__file__).with_name("results.json")
REPEATS = 5
SCALED: dict[str, tuple[Callable[[float], list[dict[str, object]]], float]] = {
    "collaborate": (collaborations, collaborate.SMALL),
    "install": (lambda _: installations(), install.ONCE),
    "load": (load_ratios, load.SMALL),
    "pipeline": (pipeline_ratios, spark.SMALL),
    "planner": (planner_ratios, planner.SMALL),
    "reads": (reads_beside_ladybug, reads.SMALL),
    "search": (searches, search.SMALL),
    "social": (social_reads, social.SMALL),
    "start": (lambda _: starts_of_commands(), start.ONCE),
    "studio": (lambda _: interactions(), studio.ONCE),
    "writers": (many_writers, writers.SMALL),
}


def main() -> None:
    """Run every benchmark, print the table, record it; `reads --scale 1` runs only large reads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("only", nargs="?", choices=SCALED)
    parser.add_argument(
        "--scale", type=float, help="1 is about 10 M entities, 1 M posts or 50,000 commits"
    )
    given = parser.parse_args()
    if given.only is not None:
        measure_it, small = SCALED[given.only]
        found = measure_it(given.scale or small)
        names = {row["name"] for row in found}
        rows = [row for row in _recorded() if row["name"] not in names] + found
    else:
        rows = [
            lint_60_types_600_queries(),
            start_of_version_command(),
            import_of_the_package(),
            *starts_of_commands(),
            *installations(),
            *commits_of_one_row(),
            open_of_100_types(),
            branch_of_a_long_history(),
            *mutations_of_one_row(),
            *load_ratios(given.scale or load.SMALL),
            *pipeline_ratios(given.scale or spark.SMALL),
            *planner_ratios(given.scale or planner.SMALL),
            *reads_beside_ladybug(given.scale or reads.SMALL),
            *social_reads(given.scale or social.SMALL),
            *searches(search.SMALL),
            *collaborations(collaborate.SMALL),
            *interactions(),
            *many_writers(given.scale or writers.SMALL),
        ]
    for row in rows:
        spread = f"{row['best']:.3f} best, {row['median']:.3f} median"
        print(f"{row['name']:<58} {spread}  {row['unit']}; budget {row['budget']}")
    record = {
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "system": platform.platform()},
        "versions": {
            "python": platform.python_version(),
            "omnigraph": version("omnigraph"),
            "click": version("click"),
            "pylance": version("pylance"),
            "ladybug": version("ladybug"),
            "lancedb": version("lancedb"),
        },
        "results": rows,
    }
    RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _recorded() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(RESULTS.read_text(encoding="utf-8"))["results"]
    return rows


def lint_60_types_600_queries() -> dict[str, object]:
    """Parse, resolve, type-check, lower and describe; process CPU after import."""
    schema, queries = big_schema(), big_queries()

    def lint() -> None:
        catalog = read_catalog(report_for_text(schema, "bench.pg", Code.SCHEMA_UNREADABLE))
        report = report_for_text(queries, "bench.gq", Code.QUERY_UNREADABLE)
        [linted] = lint_queries([report], catalog)
        if not linted.ok or len(linted.results) != 600:
            raise SystemExit(f"the workload is broken: {linted.diagnostics[:1]}")

    return measure("lint 60 types, 600 queries", lint, time.process_time, "s of CPU", 1.0)


def start_of_version_command() -> dict[str, object]:
    """Run the whole process, from start to exit."""
    return _process("omnigraph version", ["-m", "omnigraph.cli", "version"], 0.3)


def import_of_the_package() -> dict[str, object]:
    """Import the package and use one of its names."""
    return _process(
        "import omnigraph; omnigraph.check", ["-c", "import omnigraph as o; o.check"], 0.3
    )


def _process(name: str, arguments: list[str], budget: float) -> dict[str, object]:
    def run() -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    return measure(name, run, time.perf_counter, "s of wall time", budget)


def measure(
    name: str, work: Callable[[], None], clock: Callable[[], float], unit: str, budget: float
) -> dict[str, object]:
    """Time a piece of work after one warm-up."""
    work()
    times = []
    for _ in range(REPEATS):
        before = clock()
        work()
        times.append(clock() - before)
    best, median = round(min(times), 4), round(statistics.median(times), 4)
    return {"name": name, "best": best, "median": median, "unit": unit, "budget": budget}


if __name__ == "__main__":
    main()
