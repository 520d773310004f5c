"""Incremental sources: each run reads what is new, exactly once, also when a driver is killed."""

import os
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import Contention, InvalidInput, OmniError
from omnigraph.pipeline.config.spec import PipelineError
from omnigraph.pipeline.load import spark_load
from omnigraph.pipeline.load.check_gate import CheckGate
from tests.support.spark_kills import killed

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
CURSOR = """version: 1
name: nightly
sources:
  people: {csv: people.csv, incremental: {cursor: "cast(at as timestamp)"}}
  ages: {sql: "select name, cast(age as int) as age from people"}
nodes: {Person: {source: ages}}
mode: append
"""
FILES = """version: 1
name: nightly
sources: {knows: {KIND: knows, incremental: {files: new}}}
edges: {Knows: {source: knows}}
mode: append
"""


@pytest.fixture
def graph(quick, tmp_path):
    return og.init(tmp_path / "g", SCHEMA)


def people(folder, *rows):
    lines = ["name,age,at", *(f"{name},{age},{at}" for name, age, at in rows)]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")


def ages(graph, at="main"):
    found = graph.query("query q() { match { $p: Person } return { $p, $p.age } }", at=at).rows
    return {row["p"]: row["p.age"] for row in found}


def edges(graph):
    query = "query q() { match { $a: Person  $a knows $b } return { $a, $b } }"
    return sorted((row["a"], row["b"]) for row in graph.query(query).rows)


ADA, BO = ("ada", 1, "2026-01-01T00:00:00Z"), ("bo", 2, "2026-01-02T00:00:00.000001Z")
CY, DEE = ("cy", 3, "2026-01-02T00:00:00.000002Z"), ("dee", 4, "")


def test_a_cursor_reads_each_row_once_on_each_branch(graph, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(CURSOR)
    people(tmp_path, ADA, BO)
    report = graph.pipeline.run(path)
    assert report.given == 2
    read = {"cursor": "cast(at as timestamp)", "after": None}
    assert report.sources[0]["incremental"] == {**read, "to": "2026-01-02T00:00:00.000001+00:00"}
    # `append` would fail if a row were read again.
    people(tmp_path, ADA, BO, CY)
    plan = graph.pipeline.plan(path, count=True)
    assert plan.types["node:Person"]["rows"] == 1
    path.write_text(CURSOR + "branch: {name: side, from: main}\n")
    assert graph.pipeline.run(path).given == 1
    assert ages(graph, "side") == {"ada": 1, "bo": 2, "cy": 3}
    path.write_text(CURSOR)
    first, report = report, graph.pipeline.run(path)
    assert report.sources[0]["incremental"]["after"] == "2026-01-02T00:00:00.000001+00:00"
    assert report.previous["seconds"] > 0
    assert report.previous["run"] == graph.pipeline.status()[1].id != first.run
    assert graph.pipeline.report().previous == report.previous
    assert ages(graph) == {"ada": 1, "bo": 2, "cy": 3}
    assert graph.verify().ok

    people(tmp_path, ADA, BO, CY, BO)
    report = graph.pipeline.run(path)
    assert (report.given, report.commit["counts"]) == (0, {})
    people(tmp_path, ADA, BO, CY, DEE)
    assert graph.pipeline.run(path).given == 1
    assert ages(graph)["dee"] == 4
    path.write_text(CURSOR.replace("append", "merge"))
    assert graph.pipeline.run(path, full_refresh=True).given == 4
    assert graph.pipeline.run(path, force=True).given == 1, "a row without a cursor is read again"


def test_a_failed_run_reads_no_further(graph, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(CURSOR)
    people(tmp_path, ADA, ADA)
    with pytest.raises(OmniError, match="@unique"):
        graph.pipeline.run(path)
    people(tmp_path, ADA)
    assert graph.pipeline.run(path).accepted == 1


def test_two_runs_at_once_do_not_read_the_same_rows(graph, tmp_path, monkeypatch):
    path = tmp_path / "p.yaml"
    path.write_text(
        CURSOR.replace("append", "merge") + "checks: {any: {row_count: Person, min: 0}}\n"
    )
    people(tmp_path, ADA, BO)
    other = og.open(graph.uri)
    checked, runs = CheckGate.check, []

    def racing(self, snapshot):
        if not runs:
            runs.append("begun")
            runs.append(other.pipeline.run(path, force=True).accepted)
        return checked(self, snapshot)

    monkeypatch.setattr(CheckGate, "check", racing)
    with pytest.raises(Contention, match="nightly/people"):
        graph.pipeline.run(path, force=True)
    assert runs == ["begun", 2]
    [_, mine] = sorted(graph.pipeline.status(), key=lambda run: run.state == "failed")
    report = graph.pipeline.resume(mine.id)
    assert (report.given, report.state) == (0, "finished")
    assert ages(graph) == {"ada": 1, "bo": 2}


def test_a_run_without_new_rows_does_not_hide_how_far_another_one_got(graph, tmp_path, monkeypatch):
    path = tmp_path / "p.yaml"
    path.write_text(CURSOR)
    people(tmp_path, ADA)
    graph.pipeline.run(path)
    other, publish, runs = og.open(graph.uri), spark_load.publish_with_retry, []

    def racing(*given):
        if not runs:
            runs.append("begun")
            people(tmp_path, ADA)  # as a replica that lags behind has them
            runs.append(other.pipeline.run(path, force=True).given)
        return publish(*given)

    people(tmp_path, ADA, BO)
    monkeypatch.setattr(spark_load, "publish_with_retry", racing)
    assert graph.pipeline.run(path, force=True).given == 1
    assert runs == ["begun", 0]
    people(tmp_path, ADA, BO, CY)
    assert graph.pipeline.run(path).given == 1
    assert ages(graph) == {"ada": 1, "bo": 2, "cy": 3}


def test_other_types_and_cursors_are_refused(graph, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(CURSOR)
    people(tmp_path, ADA)
    graph.pipeline.run(path)
    people(tmp_path, ADA, BO)
    path.write_text(CURSOR.replace('"cast(at as timestamp)"', "at"))
    with pytest.raises(InvalidInput, match="earlier runs used `cast"):
        graph.pipeline.run(path)
    knows = "edges: {Knows: {source: people, from: name, to: name}}\n"
    path.write_text(CURSOR + knows)
    with pytest.raises(InvalidInput, match="edge:Knows was not loaded by earlier runs"):
        graph.pipeline.run(path)
    assert ages(graph) == {"ada": 1}
    path.write_text((CURSOR + knows).replace("append", "merge"))
    assert graph.pipeline.run(path, full_refresh=True).accepted == 4
    with pytest.raises(InvalidInput, match="earlier runs also loaded edge:Knows") as refused:
        graph.pipeline.run(path, select=["Person"], force=True)
    assert refused.value.code == "watermark_mismatch"


def test_a_cursor_whose_type_changed_is_compared_or_refused(graph, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(
        CURSOR.replace("csv: people.csv", "json: people.jsonl")
        .replace('"cast(at as timestamp)"', "at")
        .replace("append", "merge")
    )

    def run(*at):
        lines = (f'{{"name": "n{number}", "age": 1, "at": {it}}}' for number, it in enumerate(at))
        (tmp_path / "people.jsonl").write_text("\n".join(lines) + "\n")
        return graph.pipeline.run(path).given

    assert run("1.5", "10.0") == 2
    assert run("9", "10", "11") == 1
    assert run("11", "11.5") == 1
    assert run("null") == 1
    with pytest.raises(InvalidInput, match="the cursor of earlier runs was double, not string"):
        run("11", '"12"')
    assert run("11.5", "12") == 1
    path.write_text(path.read_text().replace("cursor: at", "cursor: date(at)"))
    with pytest.raises(InvalidInput, match="earlier runs used `at`"):
        graph.pipeline.run(path)

    path.write_text(CURSOR.replace("csv: people.csv", "parquet: p").replace("nightly", "times"))
    path.write_text(path.read_text().replace('"cast(at as timestamp)"', "at"))
    days = pa.array([20454, 20455], pa.int32())  # 2026-01-01 and the next day
    (tmp_path / "p").mkdir()
    table = pa.table({"name": ["a", "b"], "age": [1, 2], "at": days.cast(pa.date32())})
    pq.write_table(table, tmp_path / "p/x.parquet")
    assert graph.pipeline.run(path).given == 2
    moments = pa.array([20455 * 86_400, 20455 * 86_400 + 1]).cast(pa.timestamp("s", "UTC"))
    table = pa.table({"name": ["b", "c"], "age": [2, 3], "at": moments})
    pq.write_table(table, tmp_path / "p/x.parquet")
    assert graph.pipeline.run(path).given == 1


@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
def test_new_files_are_read_once_and_changed_ones_again(graph, tmp_path, kind):
    graph.load({"Person": [{"name": name} for name in "abc"]})
    path, folder = tmp_path / "p.yaml", tmp_path / "knows"
    path.write_text(FILES.replace("KIND", kind))
    folder.mkdir()

    def write(name, *ends):
        file = folder / name
        if kind == "parquet":
            pq.write_table(
                pa.table({"from": [e[0] for e in ends], "to": [e[1] for e in ends]}), file
            )
        elif kind == "csv":
            file.write_text("\n".join(["from,to", *(",".join(end) for end in ends)]))
        else:
            file.write_text("\n".join(f'{{"from": "{a}", "to": "{b}"}}' for a, b in ends))

    write("a b%20.x", "ab", "bc")
    assert graph.pipeline.run(path).given == 2
    write("2.x", "ca")
    report = graph.pipeline.run(path)
    assert (report.given, report.sources[0]["incremental"]) == (1, {"files": "new"})
    assert report.sources[0]["files"] == 1
    assert edges(graph) == [("a", "b"), ("b", "c"), ("c", "a")]
    assert graph.pipeline.run(path, force=True).given == 0
    write("2.x", "cb", "ac")
    os.utime(folder / "2.x", (time.time() + 5, time.time() + 5))
    assert graph.pipeline.run(path).given == 2
    assert len(edges(graph)) == 5
    assert graph.verify().ok


def test_mistakes_are_reported(tmp_path, graph):
    path = tmp_path / "p.yaml"
    people(tmp_path, ADA)
    mistakes = {
        "{}": "needs exactly one of `cursor` and `files`",
        "{cursor: at, files: new}": "needs exactly one of `cursor` and `files`",
        "{files: old}": "`files` must be one of `new`, got `old`",
    }
    for text, message in mistakes.items():
        path.write_text(CURSOR.replace('{cursor: "cast(at as timestamp)"}', text))
        with pytest.raises(PipelineError, match=message):
            graph.pipeline.validate(path)
    path.write_text(CURSOR.replace("cast(at as timestamp)", "missing"))
    with pytest.raises(PipelineError, match="missing"):
        graph.pipeline.plan(path)


STEPS = ("staging", "staged", "prepared", "published")
KILLED = STEPS if os.environ.get("SOAK_SECONDS") else ("staging", "prepared")
"""`make soak` kills at each step; here and in other modules of pipelines some steps are enough."""


@pytest.fixture(scope="module")
def graves(tmp_path_factory):
    """Kill a driver at several steps of a second run; return the folder of all."""
    folder = tmp_path_factory.mktemp("killed")
    for step in KILLED:
        place = folder / f"pipeline {step}"
        place.mkdir()
        (place / "p.yaml").write_text(CURSOR)
        people(place, ADA, BO)
        og.init(place / "graph", SCHEMA)
    killed(folder, [f"pipeline {step}" for step in KILLED])
    return folder


@pytest.mark.parametrize("step", KILLED)
def test_a_killed_run_is_resumed_and_the_next_one_reads_what_is_new(quick, graves, step):
    place = graves / f"pipeline {step}"
    graph = og.open(place / "graph")
    [run] = graph.pipeline.status()
    people(place, ADA, BO, CY)  # as if it had come while nobody was at work
    report = graph.pipeline.resume(run.id)
    assert report.state == "finished"
    # What was staged before the kill is published as it was; what was not is read now.
    first = {"ada": 1, "bo": 2, **({"cy": 3} if step == "staging" else {})}
    assert ages(graph) == first
    assert graph.pipeline.run(place / "p.yaml").given == 3 - len(first)
    assert ages(graph) == {"ada": 1, "bo": 2, "cy": 3}
    assert graph.pipeline.run(place / "p.yaml", force=True).given == 0
    assert graph.verify().ok
