"""Pipelines, streams, frames and analyses do not reach a protected branch without a proposal."""

import json

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import omnigraph as og
from omnigraph import pipeline
from omnigraph.errors import OmniError
from omnigraph.pipeline.runs.run_lease import RunLease
from tests.support.frames import exported

pytestmark = pytest.mark.usefixtures("quick")
SCHEMA = "node Person { name: String @key  rank: I64? }\nedge Knows: Person -> Person\n"
RULES = [{"branches": ["main", "release/*"], "require": {"approvals": 1}}]
POLICY = f"""version: 1
groups: {{ team: [act-ada, act-bo] }}
rules:
  - {{ id: a, allow: {{ actors: {{ group: team }}, actions: [read, export, change] }} }}
  - id: b
    allow: {{ actors: {{ group: team }}, actions: [branch_create, branch_delete, branch_merge] }}
protect: {json.dumps(RULES)}
"""
PIPELINE = """version: 1
sources: {people: {csv: people.csv}}
nodes: {Person: {source: people}}
BRANCH
"""
TARGETS = {
    "main": "",
    "a new protected branch": "branch: {name: release/new, from: main}",
    "merged into main": "branch: {name: incoming, from: main}\npublish: {merge_into: main}",
}


@pytest.fixture(params=["stored", "by the policy"])
def graph(request, tmp_path):
    made = og.init(tmp_path / "g", SCHEMA, actor="act-ada")
    made.load({"Person": [{"name": "ada"}, {"name": "bo"}]})
    made.load({"Knows": [{"from": "ada", "to": "bo"}]})
    (tmp_path / "people.csv").write_text("name,rank\ncy,3\n")
    if request.param == "stored":
        made.protection.set(RULES)
        return made
    return og.open(tmp_path / "g", policy=POLICY, actor="act-ada")


def people(spark):
    return spark.createDataFrame([("dee",)], "name string")


def refused(call):
    with pytest.raises((OmniError, PySparkException, StreamingQueryException)) as caught:
        call()
    return getattr(caught.value, "code", None) or str(caught.value)


def test_spark_does_not_reach_a_protected_branch(spark, graph, tmp_path):
    before, rows = graph.commits.list("main"), exported(graph, "Person")
    for branch in TARGETS.values():
        file = tmp_path / "p.yaml"
        file.write_text(PIPELINE.replace("BRANCH", branch))
        assert "branch_protected" in refused(lambda: graph.pipeline.run(file)), branch  # noqa: B023
    calls = {
        "frame": lambda: pipeline.write(people(spark), graph, "Person"),
        "frame, new branch": lambda: pipeline.write(
            people(spark), graph, "Person", branch="release/f", from_="main"
        ),
        "load": lambda: graph.load({"Person": people(spark)}, engine="spark"),
        "analysis": lambda: graph.pipeline.analyze("degrees", ["Knows"], "Person.rank"),
    }
    for name, call in calls.items():
        assert "branch_protected" in refused(call), name
    assert graph.commits.list("main") == before
    assert exported(graph, "Person") == rows
    assert set(graph.branches.list()) <= {"main", "incoming"}


def test_a_resumed_run_may_bypass_as_before(spark, tmp_path, monkeypatch):
    made = og.init(tmp_path / "g", SCHEMA, actor="act-ada")
    made.protection.set(RULES)
    (tmp_path / "people.csv").write_text("name,rank\ncy,3\n")
    (tmp_path / "p.yaml").write_text(PIPELINE.replace("BRANCH", ""))
    bypass = (
        "  - { id: c, allow: { actors: { group: team }, actions: [bypass_protection] } }\nprotect:"
    )
    policy = POLICY.replace("protect:", bypass)
    graph = og.open(tmp_path / "g", policy=policy, actor="act-ada")
    with monkeypatch.context() as patched:
        prepared = RunLease.prepared

        def dying(*given):
            prepared(*given)
            raise SystemExit

        patched.setattr(RunLease, "prepared", dying)
        patched.setattr(RunLease, "_abort", lambda *_: None)  # as if the process was killed
        with pytest.raises(SystemExit):
            graph.pipeline.run(tmp_path / "p.yaml")
    [run] = graph.pipeline.status()
    report = graph.pipeline.resume(run.id)
    assert "stage" not in {stage["name"] for stage in report.stages}
    assert list(exported(graph, "Person")) == ["cy"]
    assert graph.commits.list()[0].bypass


def test_streams_do_not_reach_a_protected_branch(spark, tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, actor="act-ada")
    copy = og.init(tmp_path / "copy", SCHEMA)
    graph.load({"Person": [{"name": "ada"}]})
    copy.protection.set(RULES)
    before = copy.commits.list()
    options = pipeline.StreamOptions(
        checkpoint=str(tmp_path / "check"), trigger={"availableNow": True}
    )

    def flow():
        changes = pipeline.read_changes(spark, graph, start="beginning")
        pipeline.stream_into(changes, copy, options).awaitTermination()

    assert "is protected" in refused(flow)
    writer = people(spark).write.format("omnigraph").mode("append").option("type", "Person")
    assert "is protected" in refused(lambda: writer.save(copy.uri))
    assert copy.commits.list() == before
    copy.protection.clear()
    flow()
    assert list(exported(copy, "Person")) == ["ada"]


def test_pipeline_on_a_branch_is_merged_by_its_proposal(spark, graph, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.replace("BRANCH", "branch: {name: incoming, from: main}"))
    graph.pipeline.run(file)
    made = graph.proposals.create("incoming", into="main", title="One more")
    [change] = made.diff()
    assert (change.op, change.id) == ("insert", "cy")
    graph.as_actor("act-bo").proposals.get(made.number).review("approve")
    made.merge()
    assert sorted(exported(graph, "Person")) == ["ada", "bo", "cy"]
