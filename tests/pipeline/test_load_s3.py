"""A graph in a bucket is loaded on Spark as one in a folder, with runs, rejects and branches."""

import json

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.pipeline.runs.run import RunState
from tests.support.changes import read_state
from tests.support.spark_loads import SCHEMA, begin, knows, load, people

FILE = """version: 1
sources: {people: {csv: people.csv}}
nodes: {Person: {source: people}}
on_violation: reject
branch: {name: load, from: main}
publish: {merge_into: main, delete_branch: true}
"""


def test_a_graph_in_a_bucket_is_loaded_and_merged_into(spark, s3, tmp_path):
    graph = og.init(s3.fresh(), SCHEMA, storage_options=s3.options)
    done = load(graph, [people(spark), knows(spark)], spark, run=begin(graph))
    assert done.run.state is RunState.FINISHED

    (tmp_path / "people.csv").write_text("name,age\np1,100\np2,400\nnew,7\np3\n")
    (tmp_path / "p.yaml").write_text(FILE)
    report = graph.pipeline.run(tmp_path / "p.yaml")
    assert (report.given, report.accepted, report.rejected) == (4, 2, 2)
    assert report.types["node:Person"]["updated"] == 1
    assert {(e["rule"], e["source"]["row"]) for e in report.examples} == {
        ("range", 2),
        ("syntax", 4),
    }

    graph = og.open(graph.uri, storage_options=s3.options)
    state = read_state(graph)
    ages = {name: person["age"] for name, person in state["Person"].items()}
    assert ages == {**{f"p{n}": n for n in range(20)}, "p1": 100, "new": 7}
    assert len(state["Knows"]) == 19
    assert graph.branches.list() == ["main"]
    objects = graph._manifest.objects
    assert not IntentLog(objects).list()
    assert not [info for info in objects.list("__pipelines") if "/at/" in info.path]
    assert json.loads(objects.get(f"__pipelines/{report.run}/run.json"))["driver"] is None
    assert graph.verify().ok
