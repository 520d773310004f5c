"""Runs that are checked, selected, at a target, or proposed from data, killed and continued."""

import json

import pytest
from click.testing import CliRunner

import omnigraph as og
from omnigraph.cli.app import cli
from omnigraph.query.checks import ChecksFailed
from tests.support.changes import read_state
from tests.support.spark_kills import killed, opened

SCHEMA = """
node Person { name: String @key  age: I32? }
node Town { name: String @key }
edge Knows: Person -> Person @key(src, dst)
"""
CHECKED = """version: 1
sources: {people: {csv: people.csv}}
nodes: {Person: {source: people}}
branch: {name: nightly, from: main}
checks:
  two: {row_count: Person, min: MIN}
  young: {query: checks.gq, severity: warn}
"""
CHOSEN = """version: 1
variables: {FILE: nowhere}
sources: {people: {csv: "${FILE}.csv"}, towns: {csv: nowhere.csv}}
nodes: {Person: {source: people}, Town: {source: towns}}
edges: {Knows: {source: people, from: name, to: name}}
targets: {dev: {branch: {name: dev, from: main}, variables: {FILE: people}}}
"""
CHOICE = {"target": "dev", "select": ["Person+"], "exclude": ["Town"]}
CHECK_STEPS = ("prepared", "checked", "published")
CHOICE_STEPS = ("staging", "staged", "published")
INIT_STEPS = ("staging", "prepared", "published")


def place_of(folder, feature, step):
    return folder / f"pipeline-{feature} {step}"


@pytest.fixture(scope="module")
def graves(tmp_path_factory):
    """Kill a driver amid all these runs; return the folder of all."""
    folder = tmp_path_factory.mktemp("killed")
    steps = {"checks": CHECK_STEPS, "choice": CHOICE_STEPS, "init": INIT_STEPS}
    places = [place_of(folder, name, step) for name, all_ in steps.items() for step in all_]
    for place in places:
        place.mkdir()
        (place / "people.csv").write_text("name,age\nada,36\nbo,2\n")
        schema = place / "schema.pg"
        schema.write_text(SCHEMA)
        if "-init " in place.name:
            (place / "knows.csv").write_text("from,to,since\nada,bo,2024-01-01\n")
            files = [w for f in ("people.csv", "knows.csv") for w in ("--from", str(place / f))]
            command = ["pipeline", "init", *files, "--out", str(place), "--force"]
            made = CliRunner().invoke(cli, command)
            assert made.exit_code == 0, made.output
            (place / "pipeline.yaml").rename(place / "p.yaml")
        elif "-choice " in place.name:
            (place / "p.yaml").write_text(CHOSEN)
            (place / "choice.json").write_text(json.dumps(CHOICE))
        else:
            query = "query young() { match { $p: Person  $p.age < 18 } return { $p } }"
            (place / "checks.gq").write_text(query)
            (place / "p.yaml").write_text(CHECKED.replace("MIN", "2"))
        og.init(place / "graph", schema)
    killed(folder, [place.name for place in places])
    return folder


def resumed(place):
    """Resume the run of a place; return its graph, the run as it was left, and its report."""
    graph = opened(place / "graph")
    [run] = graph.pipeline.status()
    assert run.is_interrupted
    report = graph.pipeline.resume(run.id)
    assert report.state == "finished"
    assert graph.pipeline.run(place / "p.yaml", **options(place)).repeated
    assert graph.verify().ok
    return graph, run, report


def options(place):
    choice = place / "choice.json"
    return json.loads(choice.read_text()) if choice.exists() else {}


def ages(graph, at):
    return {name: person["age"] for name, person in read_state(graph, at)["Person"].items()}


@pytest.mark.parametrize("step", CHECK_STEPS)
def test_a_killed_run_is_published_only_if_its_checks_pass(quick, graves, step):
    place = place_of(graves, "checks", step)
    if step == "prepared":
        # Another writer has made the check fail meanwhile: what is published is checked again.
        graph = opened(place / "graph")
        [run] = graph.pipeline.status()
        graph.load({"Person": [{"name": "cy", "age": 1}]}, branch=run.branch)
        (place / "p.yaml").write_text(CHECKED.replace("MIN", "4"))
        with pytest.raises(og.InvalidInput, match="differ from those"):
            graph.pipeline.resume(run.id)
        (place / "p.yaml").write_text(CHECKED.replace("MIN", "2"))
        (place / "checks.gq").write_text(
            "query young() { match { $p: Person  $p.age < 18 } return { $p } order { $p } }"
        )
        report = graph.pipeline.resume(run.id)
        assert report.checks[1]["rows"] == [{"p": "bo"}, {"p": "cy"}]
        assert ages(graph, "nightly") == {"ada": 36, "bo": 2, "cy": 1}
        return
    graph, _, report = resumed(place)
    assert ages(graph, "nightly") == {"ada": 36, "bo": 2}
    assert ages(graph, "main") == {}
    if step == "checked":
        found = [(one["name"], one["passed"], one["count"]) for one in report.checks]
        assert found == [("two", True, 0), ("young", False, 1)]
        (place / "people.csv").write_text("name,age\ndee,1\n")
        (place / "p.yaml").write_text(CHECKED.replace("MIN", "9"))
        with pytest.raises(ChecksFailed):
            graph.pipeline.run(place / "p.yaml")
        assert ages(graph, "nightly") == {"ada": 36, "bo": 2}


@pytest.mark.parametrize("step", CHOICE_STEPS)
def test_a_killed_run_continues_with_its_target_and_selection(quick, graves, step):
    graph, run, report = resumed(place_of(graves, "choice", step))
    assert {word: run.about[word] for word in CHOICE} == CHOICE
    assert (report.branch, sorted(report.types)) == ("dev", ["edge:Knows", "node:Person"])
    assert ages(graph, "dev") == {"ada": 36, "bo": 2}
    ends = sorted((e["src"], e["dst"]) for e in read_state(graph, "dev")["Knows"].values())
    assert ends == [("ada", "ada"), ("bo", "bo")]
    assert list(graph.export("main")) == []


@pytest.mark.parametrize("step", INIT_STEPS)
def test_a_killed_run_of_a_proposed_pipeline_is_continued(quick, graves, step):
    graph, _, report = resumed(place_of(graves, "init", step))
    assert (report.accepted, report.rejected) == (3, 0)
    [knows] = [json.loads(line) for line in graph.export() if '"edge"' in line]
    assert (knows["from"], knows["to"], knows["data"]["since"]) == ("ada", "bo", "2024-01-01")
    people = [json.loads(line)["data"] for line in graph.export(types=["Person"])]
    assert people == [{"id": p, "age": a, "name": p} for p, a in (("ada", 36), ("bo", 2))]
