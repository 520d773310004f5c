"""The same frames on a real standalone cluster and through Spark Connect."""

import subprocess
import sys

import pytest

import omnigraph.graph as og
from tests.support.frames import exported

LONG = 600
"""Seconds nobody waits for unless something hangs."""

PROGRAM = """
import sys
import omnigraph.graph as og
from omnigraph import pipeline

master, uri = sys.argv[1:]
config = {"spark.executor.memory": "512m"} if master.startswith("spark:") else {}
graph = og.open(uri)
with pipeline.session(master, memory="512m", config=config) as spark:
    ships = pipeline.read(spark, graph, "Ship", where=[("tons", "<", 3)])
    heavier = ships.selectExpr("concat(name, '2') as name", "tons + 10 as tons")
    result = pipeline.write(heavier, graph, "Ship")
    assert result.total == 2, result
    writer = ships.selectExpr("name", "tons + 20 as tons").write.format("omnigraph")
    writer.mode("append").options(type="Ship", mode="merge").save(uri)
"""


@pytest.mark.parametrize("kind", ["spark_master", "spark_remote"])
def test_cluster_reads_and_writes_like_one_process(request, tmp_path, kind):
    master = request.getfixturevalue(kind)
    graph = og.init(tmp_path / "graph", "node Ship { name: String @key  tons: I64? }")
    graph.load({"Ship": [{"name": "Ada", "tons": 1}]})
    graph.load({"Ship": [{"name": "Bee", "tons": 2}, {"name": "Cat", "tons": 3}]})
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, master, graph.uri],
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert run.returncode == 0, run.stderr
    found = {name: ship["tons"] for name, ship in exported(graph, "Ship").items()}
    assert found == {"Ada": 21, "Bee": 22, "Cat": 3, "Ada2": 11, "Bee2": 12}
    assert len(graph.commits.list()) == 5
