"""When Spark or a worker fails, the graph stays as it was and the error says what to do."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.errors import InvalidInput, NotFound, PreconditionFailed
from omnigraph.pipeline.errors import SparkFailed
from omnigraph.pipeline.load.model import TypeFrame
from omnigraph.pipeline.load.staging import StagingJob
from omnigraph.pipeline.sessions.spark_errors import translate_spark_errors
from tests.support.changes import read_state
from tests.support.embedding import MOCK
from tests.support.program import ROOT
from tests.support.spark_loads import SCHEMA, load, people


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "graph", SCHEMA)


def test_a_worker_that_dies_leaves_the_graph_as_it_was(spark, graph):
    def die(batches):
        for batch in batches:
            yield pa.record_batch({"name": [str(n) for n in batch["id"].to_pylist()]})
        os._exit(9)

    head = graph.snapshot().commit_id
    frame = spark.range(0, 10, 1, 2).mapInArrow(die, "name string")
    with pytest.raises(SparkFailed, match=r"a worker process died.*run it again") as failure:
        load(graph, [TypeFrame("node:Person", frame)], spark)
    assert failure.value.code == "spark_worker_lost"
    assert graph.snapshot().commit_id == head
    assert graph.verify().ok
    assert load(graph, [people(spark)], spark).types["node:Person"].accepted == 20


def test_an_error_of_a_worker_is_the_error_of_the_load(spark, graph):
    frame = spark.sql("SELECT 1 / 0 AS age, 'x' AS name")
    with pytest.raises(SparkFailed, match="DIVIDE_BY_ZERO"):
        load(graph, [TypeFrame("node:Person", frame)], spark)
    with pytest.raises(NotFound, match="unknown type `node:Nobody`"):
        load(graph, [TypeFrame("node:Nobody", frame)], spark)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("java.io.IOException: No space left on device", "spark_disk_full"),
        ("java.lang.OutOfMemoryError: Java heap space", "spark_memory"),
        ("Job 3 cancelled because SparkContext was shut down", "spark_session_lost"),
        ("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file x", "input_unreadable"),
        ("anything else", "spark_failed"),
    ],
)
def test_spark_error_is_reported_with_the_next_step(text, code):
    class Raised(Exception):
        __module__ = "pyspark.errors"

    with pytest.raises(SparkFailed) as failure, translate_spark_errors():
        raise Raised(text)
    assert failure.value.code == code
    assert text in failure.value.message


def test_java_exception_is_reported_instead_of_the_call():
    class Raised(Exception):
        __module__ = "py4j.protocol"

    job = "org.apache.spark.SparkException: Job aborted due to stage failure: too often"
    text = f"An error occurred while calling o199.collectToPython.\n: {job}\n\tat a.B(C.scala:1)\n"
    for cause, said in (
        ("", job),
        ("Caused by: a.ShuffleException: gone\n", "ShuffleException: gone"),
    ):
        with pytest.raises(SparkFailed, match=said) as failure, translate_spark_errors():
            raise Raised(text + cause)
        assert "o199" not in failure.value.message


FULL = """
import sys
import omnigraph.graph as og
from omnigraph import pipeline
from omnigraph.errors import OmniError
from omnigraph.pipeline.load.model import TypeFrame
from tests.support.spark_loads import load
uri, scratch = sys.argv[1:]
spark = pipeline.session("local[1]", memory="512m", config={"spark.local.dir": scratch})
frame = spark.range(0, 2000000, 1, 4).selectExpr("sha2(cast(id as string), 256) as name")
graph = og.open(uri)
try:
    load(graph, [TypeFrame("node:Person", frame.repartition(4))], spark)
except OmniError as error:
    print(error.code, error)
"""


@pytest.mark.skipif(not os.environ.get("SOAK_SECONDS"), reason="only a soak has the time")
def test_full_scratch_disk_is_reported_and_changes_nothing(graph, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        command = [sys.executable, "-c", FULL, graph.uri, str(disk)]
        run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        left = [path.name for path in disk.rglob("*") if path.is_file()]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("spark_disk_full Spark's scratch space is full: free some space")
    assert left == []
    assert read_state(graph)["Person"] == {}
    assert not IntentLog(graph._manifest.objects).list()
    assert graph.verify().ok


def test_other_errors_pass_through():
    with pytest.raises(KeyError), translate_spark_errors():
        raise KeyError("x")


def test_an_engine_is_one_that_exists(graph):
    with pytest.raises(InvalidInput, match="unknown engine 'duck'; it is one of local, spark"):
        graph.load(b"", engine="duck")


def test_a_condition_that_does_not_hold_stops_a_load_before_it_stages(spark, graph, monkeypatch):
    def refuse(*_):
        raise AssertionError("nothing is staged")

    monkeypatch.setattr(StagingJob, "__init__", refuse)
    request = graph._request("load", None, None)
    object.__setattr__(request, "if_commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    monkeypatch.setattr(graph, "_request", lambda *_: request)
    with pytest.raises(PreconditionFailed):
        load(graph, [people(spark)], spark)


def test_workers_make_the_vectors_that_are_missing(spark, tmp_path):
    schema = 'node Doc { name: String @key  text: String  v: Vector(8) @embed("text") }'
    rows = [(f"d{number}", f"text {number % 3}") for number in range(20)]
    frame = spark.createDataFrame(rows, "name string, text string")
    graphs = [og.init(tmp_path / name, schema, embedding=MOCK) for name in ("spark", "local")]
    load(graphs[0], [TypeFrame("node:Doc", frame)], spark)
    graphs[1].load({"Doc": [{"name": name, "text": text} for name, text in rows]})
    states = [read_state(graph) for graph in graphs]
    assert states[0] == states[1]
    models = [
        [field.metadata for field in opened(graph).schema if field.name == "v"] for graph in graphs
    ]
    assert b"omnigraph.embedding_model" in models[0][0]
    assert models[0][0][b"omnigraph.embedding_model"] == models[1][0][b"omnigraph.embedding_model"]


def opened(graph):
    entry = graph.snapshot().entry("node:Doc")
    with graph._manifest.reading("node:Doc", entry) as handle:
        return handle
