"""Checks run on the staged state: nothing that fails one becomes visible."""

import pytest

import omnigraph as og
from omnigraph.pipeline.load.check_gate import CheckGate
from omnigraph.query.checks import ChecksFailed

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
QUERIES = """
query loners() { match { $p: Person  not { $p knows $q } } return { $p, $p.age } order { $p } }
query old() { match { $p: Person  $p.age > 100 } return { $p } }
"""
PIPELINE = """version: 1
sources: {people: {csv: people.csv}, knows: {csv: knows.csv}}
nodes: {Person: {source: people}}
edges: {Knows: {source: knows}}
branch: {name: nightly, from: main}
checks:
  loners: {query: checks.gq, name: loners, severity: SEVERITY}
  old: {query: checks.gq, name: old}
  three: {row_count: Person, min: 3, max: 3}
"""


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load({"Person": [{"name": "ada", "age": 1}]})
    (tmp_path / "checks.gq").write_text(QUERIES)
    (tmp_path / "people.csv").write_text("name,age\nbo,2\ncy,3\n")
    (tmp_path / "knows.csv").write_text("from,to\nada,bo\nbo,ada\n")
    return graph


def test_checks_see_the_state_that_publishing_would_make_visible(spark, graph, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE.replace("SEVERITY", "fail"))
    before = graph.snapshot().commit_id
    with pytest.raises(ChecksFailed) as failed:
        graph.pipeline.run(path)
    cy = {"kind": "node", "type": "Person", "id": "cy"}
    found = {
        "name": "loners",
        "severity": "fail",
        "passed": False,
        "message": "query 'loners' returned 1 row",
        "count": 1,
        "rows": [{"p": "cy", "p.age": 3}],
        "entities": [cy],
    }
    assert failed.value.details["checks"][0] == found
    assert graph.snapshot().commit_id == before
    assert graph.branches.list() == ["main"]
    report = graph.pipeline.report()
    assert (report.state, report.error["code"], report.commit) == ("failed", "checks_failed", None)
    assert [(one["name"], one["passed"]) for one in report.checks] == [
        ("loners", False),
        ("old", True),
        ("three", True),
    ]
    assert report.checks[0] == found
    assert "<h2>Checks</h2>" in graph.pipeline.page()
    assert "Person cy" in graph.pipeline.page()
    path.write_text(PIPELINE.replace("SEVERITY", "warn"))
    report = graph.pipeline.run(path)
    assert (report.state, report.checks[0]["count"]) == ("finished", 1)
    assert "check" in [stage["name"] for stage in report.stages]
    people = graph.query("query q() { match { $p: Person } return { $p } }", at="nightly").rows
    assert sorted(row["p"] for row in people) == ["ada", "bo", "cy"]


def test_checks_run_again_when_another_writer_changes_what_they_read(
    spark, graph, tmp_path, monkeypatch
):
    text = PIPELINE.replace("branch: {name: nightly, from: main}\n", "")
    text = text.replace("SEVERITY", "warn").replace("Knows: {source: knows}", "")
    path = tmp_path / "p.yaml"
    path.write_text(text.replace(", knows: {csv: knows.csv}", "").replace("edges: {}\n", ""))
    counts = []

    def racing(self, snapshot):
        counts.append((snapshot.entry("node:Person").rows, snapshot.entry("edge:Knows").rows))
        if len(counts) == 1:
            graph.load({"Knows": [{"from": "ada", "to": "ada"}]})
        return checked(self, snapshot)

    checked = CheckGate.check
    monkeypatch.setattr(CheckGate, "check", racing)
    report = graph.pipeline.run(path)
    assert counts == [(3, 0), (3, 1)]
    assert (report.state, report.checks[0]["count"]) == ("finished", 2)
