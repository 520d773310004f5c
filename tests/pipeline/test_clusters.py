"""The same on a real standalone cluster and through Spark Connect, over graphs in a bucket."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter

import pytest

import omnigraph.graph as og
from tests.support.embedding_service import embedding_service, openai_answer
from tests.support.frames import exported
from tests.support.program import ROOT
from tests.support.spark_surfaces import WAYS

LIBRARY = ROOT / "samples" / "library"

LONG = 1_800
"""Seconds after which a driver is considered to hang."""

PROGRAM = """
import json, sys
import omnigraph.graph as og
from omnigraph import pipeline
from tests.support.small_spark_session import SETTINGS

facts = json.loads(sys.argv[1])
master, uri, options = facts["master"], facts["uri"], facts["options"]
# Without a number of partitions, a cluster shuffles a handful of rows into 200.
config = {**SETTINGS, **({"spark.executor.memory": "512m"} if master.startswith("spark:") else {})}
graph, copy = (og.open(u, storage_options=options) for u in (uri, facts["copy"]))
with pipeline.session(master, memory="512m", config=config) as spark:
    # Frames.
    ships = pipeline.read(spark, graph, "Ship", where=[("tons", "<", 3)])
    heavier = ships.selectExpr("concat(name, '2') as name", "tons + 10 as tons")
    result = pipeline.write(heavier, graph, "Ship")
    assert result.total == 2, result
    writer = ships.selectExpr("name", "tons + 20 as tons").write.format("omnigraph")
    writer = writer.options(**{f"storage.{name}": value for name, value in options.items()})
    writer.mode("append").options(type="Ship", mode="merge").save(uri)

    # Queries and maintenance.
    body = "match { $a: Ship $a tows $b } return { $a.name, $b.tons } order { $a.name, $b.tons }"
    read = f"query q() {{ {body} }}"
    found = graph.query(read, engine="spark")
    assert found.toArrow().to_pylist() == graph.query(read).rows, found.collect()
    before = sorted(graph.export())
    report = graph.optimize(engine="spark")
    assert report.commit is not None
    assert sorted(graph.export()) == before
    assert graph.verify(engine="spark").to_json() == graph.verify().to_json()
    counts = graph.export_parts(facts["parts"], format="ndjson", engine="spark")
    assert counts == {"edge:Tows": 2, "node:Ship": 5}, counts

    # An analysis, and streams of changes and of rows.
    options = {"message": "how many", "engine": "spark"}
    done = graph.pipeline.analyze("degrees", ["Tows"], "Ship.degree", **options)
    assert (done.nodes, done.loaded.commit.message) == (5, "how many"), done
    checkpoint, now = facts["checkpoint"], {"availableNow": True}
    for _ in range(2 if master.startswith("sc:") else 1):
        changes = pipeline.read_changes(spark, graph, start="beginning")
        stream = pipeline.StreamOptions(checkpoint=checkpoint + "/changes", trigger=now)
        pipeline.stream_into(changes, copy, stream).awaitTermination()
        rows = spark.readStream.schema("name string, tons bigint").json(facts["rows"])
        stream = pipeline.StreamOptions(
            checkpoint=checkpoint + "/rows", type_name="Ship", branch="rows", trigger=now
        )
        pipeline.stream_into(rows, copy, stream).awaitTermination()

    # A pipeline.
    report = og.open(facts["library"]).pipeline.run(facts["file"])
    assert (report.given, report.accepted, report.rejected) == (23, 19, 4), report
"""
SCHEMA = """
node Ship { name: String @key  tons: I64? @index  degree: I64? }
edge Tows: Ship -> Ship
"""

SOAK = bool(os.environ.get("SOAK_SECONDS"))
HARMS = ["executor", "embedder", *(["worker", "slow"] if SOAK else [])]
KINDS = ["spark_remote", *(["spark_master"] if SOAK else [])]
"""The standalone cluster has the test with harms, too; `make soak` has the time for both."""
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
from tests.support.small_spark_session import SETTINGS
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
    **SETTINGS,
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


def test_cluster_that_loses_workers_or_repeats_tasks_loads_once(spark_master, tmp_path):
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


VERDICTS = ["a unique value stays with its entity", "an edge needs both its nodes"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_has_the_verdict_of_one_process_on_a_cluster(request, tmp_path, kind):
    command = [sys.executable, "-m", "tests.pipeline.ways"]
    command += [request.getfixturevalue(kind), str(tmp_path), *VERDICTS]
    run = subprocess.run(command, capture_output=True, text=True, timeout=LONG, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines() == [f"{way}: {name}" for name in VERDICTS for way in WAYS]


@pytest.mark.parametrize("kind", KINDS)
def test_cluster_has_the_results_of_one_process(request, s3, tmp_path, monkeypatch, kind):
    master = request.getfixturevalue(kind)
    graph, copy = (og.init(s3.fresh(), SCHEMA, storage_options=s3.options) for _ in range(2))
    graph.load({"Ship": [{"name": "Ada", "tons": 1}]})
    graph.load({"Ship": [{"name": "Bee", "tons": 2}, {"name": "Cat", "tons": 3}]})
    graph.load({"Tows": [{"from": "Ada", "to": "Bee"}, {"from": "Ada", "to": "Cat"}]})
    copy.branches.create("rows")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0.json").write_text('{"name": "Dot", "tons": 4}')
    shutil.copytree(LIBRARY, tmp_path / "samples")
    with embedding_service(openai_answer) as service:
        if kind == "spark_master":
            # The driver says who embeds.
            monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", service.url)
            monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "m")
        library = og.init(tmp_path / "library", LIBRARY / "schema.pg")
        library.load(LIBRARY / "data.ndjson")
        service.asked.clear()
        facts = {
            "master": master,
            "uri": graph.uri,
            "copy": copy.uri,
            "options": s3.options,
            "library": library.uri,
            "file": str(tmp_path / "samples" / "pipeline.yaml"),
            **{name: str(tmp_path / name) for name in ("parts", "checkpoint", "rows")},
        }
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(facts)],
            capture_output=True,
            text=True,
            timeout=LONG,
            cwd=ROOT,
        )
    assert run.returncode == 0, run.stderr

    found = {name: ship["tons"] for name, ship in exported(graph, "Ship").items()}
    assert found == {"Ada": 21, "Bee": 22, "Cat": 3, "Ada2": 11, "Bee2": 12}
    degrees = {name: ship["degree"] for name, ship in exported(graph, "Ship").items()}
    assert degrees == {"Ada": 2, "Bee": 1, "Cat": 1, "Ada2": 0, "Bee2": 0}
    operations = [commit.operation for commit in graph.commits.list()]
    assert operations == ["load", "optimize", *["load"] * 5, "init"]
    parts = [path.read_text() for path in sorted((tmp_path / "parts").rglob("*.ndjson"))]
    assert len("".join(parts).splitlines()) == 7
    assert list(copy.export()) == list(graph.export())
    streamed = [commit.operation for commit in copy.commits.list()]
    assert streamed.count("stream") == 1, "the second time there was nothing new"
    assert exported(copy.branch("rows"), "Ship").keys() == {"Dot"}

    there, before = (exported(library, "Article", at) for at in ("incoming/week-31", "main"))
    assert "untold" not in there
    new = [article for slug, article in there.items() if slug not in before]
    assert len(new) == 5
    assert all(len(a["embedding"]) == 256 and len(a["title_embedding"]) == 64 for a in new)
    asked = Counter(text for request in service.asked for text in request.body["input"])
    by_service = {a[name]: 1 for a in new for name in ("title", "text")}
    assert asked == (by_service if kind == "spark_master" else {})
