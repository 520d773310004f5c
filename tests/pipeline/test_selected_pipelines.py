"""A selected part of a pipeline at a target, and the run that continues with the same choice."""

import pytest

import omnigraph as og

PIPELINE = """version: 1
variables: {FILE: nowhere}
sources: {people: {csv: "${FILE}.csv"}, cities: {csv: nowhere.csv}}
nodes: {Person: {source: people}, City: {source: cities}}
edges: {Knows: {source: people, from: name, to: name}}
targets: {dev: {branch: {name: dev, from: main}, variables: {FILE: people}}}
"""


def test_a_failed_run_continues_with_its_target_and_selection(spark, tmp_path):
    graph = og.init(
        tmp_path / "g",
        "node Person { name: String @key  age: I32 }\nnode City { name: String @key }\n"
        "edge Knows: Person -> Person",
    )
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "people.csv").write_text("name,age\nada,many\n")
    choice = {"target": "dev", "select": ["Person+"], "exclude": ["Knows"]}
    with pytest.raises(og.ValidationFailed):
        graph.pipeline.run(tmp_path / "p.yaml", **choice)
    [failed] = graph.pipeline.status()
    assert {word: failed.about[word] for word in choice} == choice
    (tmp_path / "people.csv").write_text("name,age\nada,36\n")
    report = graph.pipeline.resume(failed.id)
    assert (report.state, report.branch, list(report.types)) == ("finished", "dev", ["node:Person"])
    exported = list(graph.export("dev"))
    assert exported == ['{"type":"Person","data":{"id":"ada","age":36,"name":"ada"}}']
    assert list(graph.export("main")) == []
