"""The commands that Spark can do the work of, in this process, on the session that runs."""

import json
import re

import pytest
from click.testing import CliRunner

import omnigraph as og
from omnigraph.cli.app import cli
from omnigraph.errors import InvalidInput
from omnigraph.service import cluster
from tests.support.clusters import edit, write_cluster

SCHEMA = """
node Person { name: String @key  age: I32?  rank: F64? }
edge Knows: Person -> Person
"""
READ = "query q() { match { $a: Person  $a knows $b } return { $a.name, $b.age } order { $a } }"


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    for number, name in enumerate(("ada", "bo", "cy")):
        graph.load({"Person": [{"name": name, "age": number}]})
    graph.load({"Knows": [{"from": "ada", "to": "bo"}, {"from": "cy", "to": "bo"}]})
    return graph


def run(*words, code=0):
    done = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=True)
    if isinstance(done.exception, Exception) and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


def test_a_query_prints_the_same_rows(spark, graph):
    words = ("query", "--uri", graph.uri, "-e", READ)
    for format_ in ("json", "csv", "table"):
        local = run(*words, "--format", format_)
        assert run(*words, "--format", format_, "--engine", "spark") == local
    with pytest.raises(InvalidInput, match="timeout"):
        run(*words, "--engine", "spark", "--timeout", "3")


def test_maintenance_and_export_report_their_results(spark, graph, tmp_path):
    assert "fragments 3 -> 1" in run("optimize", graph.uri, "--engine", "spark")
    assert json.loads(run("verify", graph.uri, "--engine", "spark", "--json"))["ok"]
    output = run(
        *("export", graph.uri, "--engine", "spark", "--parts", tmp_path / "out"),
        *("--format", "ndjson", "--json"),
    )
    assert json.loads(output)["entities"] == {"edge:Knows": 2, "node:Person": 3}
    [part] = (tmp_path / "out" / "node-Person").iterdir()
    assert part.read_text().splitlines() == list(graph.export(types=["Person"]))


def test_a_run_reports_its_stages_and_tasks_while_it_works(spark, graph, tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_PROGRESS_SECONDS", "0.02")
    (tmp_path / "people.csv").write_text("name,age\ndee,4\neve,5\n")
    (tmp_path / "p.yaml").write_text(
        "version: 1\nsources: {people: {csv: people.csv}}\nnodes: {Person: {source: people}}\n"
    )
    words = ("pipeline", "run", tmp_path / "p.yaml", "--uri", graph.uri)
    lines = [line for line in run(*words).splitlines() if line.startswith("pipeline: ")]
    stages = dict.fromkeys(re.split("[:,] ", line)[1] for line in lines)
    assert {"stage", "validate"} <= set(stages)
    pattern = r"pipeline: \w+(, [\d,]+ rows)?(, \d+ of \d+ tasks)?, (\d+ min )?\d+ s"
    assert [line for line in lines if not re.fullmatch(pattern, line)] == []
    assert any(" tasks, " in line for line in lines)
    output = run(*words, "--force", "--quiet").splitlines()
    assert [line for line in output if line.startswith("pipeline: ")] == []


def test_a_pipeline_of_a_cluster_runs_by_name_under_the_policy_of_its_graph(spark, tmp_path):
    folder = write_cluster(tmp_path / "lab")
    edit(folder, "[read]", "[read, change]", file="readers.yaml")
    (folder / "loads").mkdir()
    (folder / "loads/weekly.yaml").write_text(
        "version: 1\nvariables: {FILE: null}\nsources: {people: {csv: '${FILE}'}}\n"
        "nodes: {Person: {source: people}}\n"
    )
    (folder / "loads/people.csv").write_text("name,age\nada,many\n")
    with (folder / "cluster.yaml").open("a") as file:
        file.write("pipelines:\n  weekly: { file: loads/weekly.yaml, graph: people }\n")
    assert cluster.import_state(folder).ok
    assert cluster.apply(folder).ok
    words = ("--cluster", folder, "--as", "act-ada", "--set", "FILE=people.csv", "--json")
    with pytest.raises(og.ValidationFailed):
        run("pipeline", "run", "weekly", *words)
    (folder / "loads/weekly.yaml").write_text("what was not applied is not run")
    (folder / "loads/people.csv").write_text("name,age\nada,36\n")
    people = og.open(folder / "graphs/people.omni")
    [failed] = people.pipeline.status()
    assert (failed.about["declared"], failed.about["file"]) == ("weekly", None)
    report = json.loads(run("pipeline", "resume", failed.id, *words, "--graph", "people"))
    assert (report["state"], report["actor"]) == ("finished", "act-ada")
    assert people.entity_at("Person", "ada") == {"id": "ada", "name": "ada", "age": 36}


def test_export_on_spark_writes_parts(graph, tmp_path):
    assert "needs --parts FOLDER" in run("export", graph.uri, "--engine", "spark", code=2)
    both = ("--parts", tmp_path / "a", "--parquet", tmp_path / "b")
    assert "--parquet and --parts are mutually exclusive" in run("export", graph.uri, *both, code=2)
    assert "exported 5 entities of 2 types" in run("export", graph.uri, "--parts", tmp_path / "c")


def test_an_analysis_is_stored_on_a_branch(spark, graph):
    words = ("--edges", "Knows", "--into", "Person.rank", "--branch", "ranks", "--from", "main")
    words += ("--engine", "spark")
    result = json.loads(
        run(
            "analyze",
            "pagerank",
            graph.uri,
            *words,
            *("--iterations", "1", "--as", "ann", "--json"),
        )
    )
    assert (result["nodes"], result["rounds"], result["commit"]["actor_id"]) == (3, 1, "ann")
    read = "query q() { match { $p: Person } return { $p.rank } order { $p.rank desc } limit 1 }"
    [best] = graph.query(read, at="ranks").rows
    assert best["p.rank"] == pytest.approx(0.05 + 0.85 * (2 / 3 + 1 / 9))
