"""The same frames and pipelines on a real standalone cluster and through Spark Connect."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import omnigraph.graph as og
from tests.support.frames import exported
from tests.support.program import ROOT

LIBRARY = ROOT / "samples" / "library"

LONG = 600
"""Seconds nobody waits for unless something hangs."""

PROGRAM = """
import sys
import omnigraph.graph as og
from omnigraph import pipeline

master, uri, library, file = sys.argv[1:]
config = {"spark.executor.memory": "512m"} if master.startswith("spark:") else {}
graph = og.open(uri)
with pipeline.session(master, memory="512m", config=config) as spark:
    ships = pipeline.read(spark, graph, "Ship", where=[("tons", "<", 3)])
    heavier = ships.selectExpr("concat(name, '2') as name", "tons + 10 as tons")
    result = pipeline.write(heavier, graph, "Ship")
    assert result.total == 2, result
    writer = ships.selectExpr("name", "tons + 20 as tons").write.format("omnigraph")
    writer.mode("append").options(type="Ship", mode="merge").save(uri)
    report = og.open(library).pipeline.run(file)
    assert (report.given, report.accepted, report.rejected) == (23, 19, 4), report
"""

HARMS = ["executor", "embedder", *(["worker", "slow"] if os.environ.get("SOAK_SECONDS") else [])]
PEOPLE = """
node Person {
  name: String @key
  age: I32?
  email: String?
  v: Vector(4) @embed("name")
  @range(age, 0..150)
}
"""
MISFORTUNES = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
import omnigraph.graph as og
from omnigraph import pipeline
from pyspark import TaskContext
from tests.support.spark_loads import load, people

master, uri, folder, *wanted = sys.argv[1:]

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def worker(pid):
    return pid

def executor(pid):  # a worker is the child of a daemon of Python, and that of an executor
    return parent(parent(pid))

def first(marker):  # once, whatever becomes of it
    if TaskContext.get().partitionId():
        return False
    try:
        Path(folder, marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def killing(victim):
    def run(batches):
        for batch in batches:
            yield batch
        if first(victim.__name__):
            os.kill(victim(os.getpid()), signal.SIGKILL)
    return run

def slow(batches):
    if first("slow"):
        time.sleep(600)
    yield from batches

class Deadly:  # who embeds dies when rows are rejected already
    model = "deadly"

    def __init__(self, is_armed):
        self.is_armed = is_armed

    def embed(self, texts, dimension, role):
        if self.is_armed and first("embedder"):
            os.kill(os.getpid(), signal.SIGKILL)
        return np.full((len(texts), dimension), dimension**-0.5, np.float32)

config = {
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
}
with pipeline.session(master, memory="512m", config=config) as spark:
    harms = {"worker": killing(worker), "executor": killing(executor), "slow": slow}
    for name in wanted:
        graph = og.open(uri, embedding=Deadly(name == "embedder"))
        rows = [(f"{name}-{n}", 400 if n % 7 == 3 else n, None) for n in range(20)]
        given = people(spark, rows)
        frame = given.frame.repartition(2)
        harmed = frame.mapInArrow(harms[name], frame.schema) if name in harms else frame
        aside = os.path.join(folder, f"rejects-{name}")
        harmed = type(given)(given.table_key, harmed)
        done = load(graph, [harmed], spark, on_violation="reject", rejects=aside)
        assert done.types["node:Person"].accepted == 17, done
"""


def test_a_cluster_that_loses_workers_or_repeats_tasks_loads_once(spark_master, tmp_path):
    graph = og.init(tmp_path / "graph", PEOPLE)
    command = [sys.executable, "-c", MISFORTUNES, spark_master, graph.uri, str(tmp_path), *HARMS]
    run = subprocess.run(command, capture_output=True, text=True, timeout=LONG, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert [name for name in HARMS if not (tmp_path / name).exists()] == []
    good = {f"{name}-{n}": n for name in HARMS for n in range(20) if n % 7 != 3}
    found = {name: person["age"] for name, person in exported(graph, "Person").items()}
    assert found == good
    assert [commit.operation for commit in graph.commits.list()].count("load") == len(HARMS)
    for name in HARMS:
        parts = (tmp_path / f"rejects-{name}").iterdir()
        lines = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
        assert sorted(line["id"] for line in lines) == sorted(f"{name}-{n}" for n in (3, 10, 17))
    assert graph.verify().ok


@pytest.mark.parametrize("kind", ["spark_master", "spark_remote"])
def test_cluster_reads_and_writes_like_one_process(request, tmp_path, kind):
    master = request.getfixturevalue(kind)
    graph = og.init(tmp_path / "graph", "node Ship { name: String @key  tons: I64? }")
    graph.load({"Ship": [{"name": "Ada", "tons": 1}]})
    graph.load({"Ship": [{"name": "Bee", "tons": 2}, {"name": "Cat", "tons": 3}]})
    shutil.copytree(LIBRARY, tmp_path / "samples")
    library = og.init(tmp_path / "library", LIBRARY / "schema.pg")
    library.load(LIBRARY / "data.ndjson")
    file = tmp_path / "samples" / "pipeline.yaml"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, master, graph.uri, library.uri, str(file)],
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert run.returncode == 0, run.stderr
    found = {name: ship["tons"] for name, ship in exported(graph, "Ship").items()}
    assert found == {"Ada": 21, "Bee": 22, "Cat": 3, "Ada2": 11, "Bee2": 12}
    assert len(graph.commits.list()) == 5
    herring = library.entity_at("Article", "herring", at="incoming/week-31")
    assert (herring["title"], len(herring["embedding"])) == ("The silver darlings", 256)
    assert library.entity_at("Article", "untold", at="incoming/week-31") is None
