"""Pipelines run end to end on a real Spark: into a branch, past bad rows, back into main."""

import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.pipeline.errors import RunStopped
from omnigraph.pipeline.runs.requests import PipelineInterrupted
from omnigraph.pipeline.runs.run import RunState
from omnigraph.write.violations import ValidationFailed
from tests.support.program import ROOT

LIBRARY = ROOT / "samples" / "library"
SCHEMA = """
node Person { name: String @key  age: I32?  @range(age, 0..150) }
edge Knows: Person -> Person
"""
PEOPLE = """version: 1
sources:
  people: {csv: people.csv}
  more: {ndjson: "more*.ndjson"}
nodes: {Person: {source: people}}
"""


def entities(graph, *types, at=None):
    lines = [json.loads(line) for line in graph.export(at, types=types)]
    return sorted(
        (line["from"], line["to"])
        if "edge" in line
        else (line["data"]["name"], line["data"]["age"])
        for line in lines
    )


@pytest.fixture
def people(spark, tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    (tmp_path / "people.csv").write_text("name,age\nAda,36\nBob,400\n")
    (tmp_path / "more.ndjson").write_text(
        '{"type": "Person", "data": {"name": "Cy"}}\n'
        '{"edge": "Knows", "from": "Cy", "to": "Ada", "data": {}}\n'
    )
    (tmp_path / "p.yaml").write_text(PEOPLE)
    return graph


def test_articles_are_merged_from_a_branch_and_invalid_rows_rejected(spark, tmp_path):
    shutil.copytree(LIBRARY, tmp_path / "library")
    graph = og.init(tmp_path / "graph", LIBRARY / "schema.pg").as_actor("act-ada")
    graph.load(LIBRARY / "data.ndjson")
    file = tmp_path / "library" / "pipeline.yaml"
    file.write_text(file.read_text(encoding="utf-8").rstrip() + "\n  merge_into: main\n")
    phases = []
    report = graph.pipeline.run(file, progress=lambda update: phases.append(update.phase))

    assert report.is_done
    assert {key: (t["given"], t["accepted"], t["rejected"]) for key, t in report.types.items()} == {
        "edge:About": (13, 11, {"endpoint": 2}),
        "node:Article": (6, 5, {"required": 1}),
        "node:Topic": (3, 3, {}),
    }
    assert (report.given, report.accepted, report.rejected, report.unreadable) == (23, 19, 4, 1)
    stages = ["start", "extract", "stage", "validate", "embed", "publish", "merge"]
    assert [stage["name"] for stage in report.stages] == stages
    assert list(dict.fromkeys(phases)) == stages
    assert (report.merge["target"], report.merge["outcome"]) == ("main", "fast_forward")
    assert (report.commit["message"], report.actor) == ("articles of week-31", "act-ada")

    herring = graph.entity_at("Article", "herring")
    assert herring["title"] == "The silver darlings"
    assert (len(herring["embedding"]), len(herring["title_embedding"])) == (256, 64)
    assert [p["embedded"] for p in report.embedded[0]["properties"]] == [5, 5]
    assert report.embedded[0]["model"] == "wordllama-l2-supercat-256"
    assert graph.entity_at("Article", "untold") is None
    assert ("tariffs", "money") in entities(graph, "About")
    assert ("tariffs", "politics") not in entities(graph, "About")

    places = {(e.get("type"), e["rule"], e.get("source", {}).get("row")) for e in report.examples}
    assert {(None, "syntax", 7), ("Article", "required", 6), ("About", "endpoint", None)} <= places
    assert {e["row"] for e in report.examples if e["rule"] == "syntax"} == {
        "lost,1,A line that broke"
    }

    # The report is kept with the run.
    assert graph.pipeline.report(report.run) == graph.pipeline.report()
    assert graph.pipeline.report().to_json() == json.loads(json.dumps(report.to_json()))
    assert "weekly articles" in graph.pipeline.page()

    # The same files are not loaded twice.
    head = graph.snapshot().commit_id
    again = graph.pipeline.run(file)
    assert (again.repeated, again.commit) == (True, report.commit)
    assert graph.snapshot().commit_id == head
    assert [(run.id, run.state) for run in graph.pipeline.status()] == [
        (again.run, RunState.FINISHED),
        (report.run, RunState.FINISHED),
    ]


def test_a_run_that_fails_changes_nothing_and_can_be_resumed(people, tmp_path):
    before = people.snapshot().commit_id
    with pytest.raises(ValidationFailed) as refused:
        people.pipeline.run(tmp_path / "p.yaml")
    [violation] = refused.value.violations
    assert (violation.rule, violation.id, violation.source.number) == ("range", "Bob", 2)
    assert violation.source.name == str(tmp_path / "people.csv")
    assert people.snapshot().commit_id == before
    failed = people.pipeline.report()
    assert (failed.state, failed.error["code"], failed.is_done) == (
        "failed",
        "validation_failed",
        False,
    )
    assert "violation on Person.age" in people.pipeline.page()

    (tmp_path / "people.csv").write_text("name,age\nAda,36\nBob,40\n")
    report = people.pipeline.resume(failed.run)
    assert (report.run, report.state, report.error) == (failed.run, "finished", None)
    assert entities(people, "Person") == [("Ada", 36), ("Bob", 40), ("Cy", None)]
    assert entities(people, "Knows") == [("Cy", "Ada")]

    (tmp_path / "p.yaml").write_text(PEOPLE + "mode: append\n")
    with pytest.raises(InvalidInput) as changed:
        people.pipeline.resume(failed.run)
    assert changed.value.code == "pipeline_changed"


def test_an_interrupted_run_leaves_nothing_behind(people, tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nAda,36\n")
    before = people.snapshot().commit_id

    def stop(update):
        if update.phase == "validate":
            raise KeyboardInterrupt

    with pytest.raises(PipelineInterrupted) as stopped:
        people.pipeline.run(tmp_path / "p.yaml", progress=stop)
    assert not stopped.value.is_published
    assert people.snapshot().commit_id == before
    [stopped_run] = people.pipeline.status()
    assert stopped_run.state is RunState.FAILED
    report = people.pipeline.resume(stopped.value.run)
    assert (report.run, report.accepted) == (stopped.value.run, 3)
    assert entities(people, "Person") == [("Ada", 36), ("Cy", None)]


def test_a_run_is_refused_to_others_and_stops_when_they_abort_it(people, tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nAda,36\n")
    other, refused = og.open(people.uri), []

    def meddle(update):
        if update.phase == "validate":
            [run] = other.pipeline.status()
            with pytest.raises(RunStopped, match="is still running in process") as alive:
                other.pipeline.resume(run.id)
            refused.append(alive.value.code)
            assert other.pipeline.abort(run.id).state is RunState.ABORTED

    with pytest.raises(RunStopped, match="was aborted: nothing was published") as stopped:
        people.pipeline.run(tmp_path / "p.yaml", progress=meddle)
    assert (refused, stopped.value.code) == (["run_alive"], "run_aborted")
    assert entities(people, "Person") == []
    [run] = people.pipeline.status()
    assert (run.state, run.driver) == (RunState.ABORTED, None)
    objects = people._manifest.objects
    assert not IntentLog(objects).list()
    paths = [i.path for folder in ("nodes", "edges", "__pipelines") for i in objects.list(folder)]
    assert not [path for path in paths if "/data/" in path or "/at/" in path]
    report = people.pipeline.report()
    assert (report.state, report.error["code"]) == ("aborted", "run_aborted")


def test_a_run_that_was_taken_over_is_left_to_who_has_it(people, tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nAda,36\n")
    objects, taken = people._manifest.objects, []

    def take(update):
        if update.phase == "validate":
            [run] = people.pipeline.status()
            other = replace(run, driver=replace(run.driver, token="another"))
            taken.append(json.dumps(other.to_json()).encode())
            objects.put(run.path, taken[0])

    with pytest.raises(RunStopped, match="was taken over by process") as stopped:
        people.pipeline.run(tmp_path / "p.yaml", progress=take)
    assert stopped.value.code == "run_taken"
    [run] = people.pipeline.status()
    assert objects.get(run.path) == taken[0]
    [intent] = IntentLog(objects).list()
    assert intent.staged.id == run.commit_id
    objects.put(run.path, json.dumps(replace(run, driver=None).to_json()).encode())
    assert people.pipeline.resume(run.id).accepted == 3
    [done] = people.pipeline.status()
    assert done.stages["stage"] == run.stages["stage"]
    assert entities(people, "Person") == [("Ada", 36), ("Cy", None)]


DRIFT = """version: 1
sources: {people: {parquet: people}}
nodes: {Person: {source: people}}
"""


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("half", r"source `people`: .*2\.parquet.*not a Parquet file"),
        ("drift", r"source `people`: Failed to merge incompatible.*consider casting"),
        ("damage", r"a source cannot be read: repair or remove the file, and run it again"),
    ],
)
def test_files_that_cannot_be_read_together_are_reported_and_change_nothing(
    people, tmp_path, harm, said
):
    (tmp_path / "p.yaml").write_text(DRIFT)
    (tmp_path / "people").mkdir()
    one = pa.table({"name": [f"n{n}" for n in range(500)], "age": pa.array(range(500), pa.int32())})
    other = one.set_column(1, "age", one["age"].cast("string")) if harm == "drift" else one
    for number, table in enumerate((one, other), 1):
        pq.write_table(table, tmp_path / "people" / f"{number}.parquet")
    second = tmp_path / "people" / "2.parquet"
    whole = second.read_bytes()
    if harm == "half":
        second.write_bytes(whole[: len(whole) // 2])
    if harm == "damage":
        second.write_bytes(whole[:8] + b"\xff" * 600 + whole[608:])
    head = people.snapshot().commit_id
    with pytest.raises(OmniError, match=said):
        people.pipeline.run(tmp_path / "p.yaml")
    assert people.snapshot().commit_id == head
    assert not IntentLog(people._manifest.objects).list()
    assert people.verify().ok


def test_resumed_run_completes_the_steps_after_the_commit(people, tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nAda,36\nBob\n")
    rules = "on_violation: reject\nbranch: {name: load}\npublish: {merge_into: main}\n"
    (tmp_path / "p.yaml").write_text(PEOPLE + rules)

    def stop(update):
        if update.phase == "merge":
            raise KeyboardInterrupt

    with pytest.raises(PipelineInterrupted) as stopped:
        people.pipeline.run(tmp_path / "p.yaml", progress=stop)
    assert stopped.value.is_published
    assert entities(people, "Person") == []
    report = people.pipeline.resume(stopped.value.run)
    assert (report.accepted, report.unreadable, report.repeated) == (3, 1, False)
    assert (report.merge["outcome"], len(report.examples)) == ("fast_forward", 1)
    assert entities(people, "Person") == [("Ada", 36), ("Cy", None)]


def test_a_conflict_keeps_the_branch_and_is_reported(people, tmp_path):
    people.insert("Person", [{"name": "Ada", "age": 1}])
    people.branches.create("load")
    people.insert("Person", [{"name": "Ada", "age": 2}], mode="merge")
    (tmp_path / "people.csv").write_text("name,age\nAda,3\n")
    (tmp_path / "more.ndjson").write_text("")
    text = PEOPLE + "branch: {name: load}\npublish: {merge_into: main, delete_branch: true}\n"
    (tmp_path / "p.yaml").write_text(text)
    report = people.pipeline.run(tmp_path / "p.yaml")
    [conflict] = report.merge["conflicts"]
    assert (conflict["type_name"], conflict["entity_id"], report.is_done) == (
        "Person",
        "Ada",
        False,
    )
    assert people.branches.list() == ["load", "main"]
    assert people.entity_at("Person", "Ada")["age"] == 2
    assert people.entity_at("Person", "Ada", at="load")["age"] == 3


@pytest.mark.parametrize("limit", ["1", "35%"])
def test_too_many_rejects_refuse_everything(people, tmp_path, limit):
    (tmp_path / "people.csv").write_text("name,age\nAda,36\nBob,400\nCy\n")
    text = PEOPLE + f"on_violation: reject\nmax_rejects: {limit}\nrejects: ./aside\n"
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(OmniError) as refused:
        people.pipeline.run(tmp_path / "p.yaml")
    assert refused.value.code == "too_many_rejects"
    assert "2 of 5 rows were rejected" in str(refused.value)
    assert entities(people, "Person") == []
    found = [
        json.loads(line)
        for path in sorted((tmp_path / "aside").rglob("*.ndjson"))
        for line in path.read_text().splitlines()
    ]
    assert {(line["rule"], line["source"]["row"]) for line in found} == {
        ("range", 2),
        ("syntax", 3),
    }


def lines_in(folder):
    found = (path.read_text().splitlines() for path in sorted(folder.rglob("*.ndjson")))
    lines = [json.loads(line) for some in found for line in some]
    return sorted((line["rule"], line["source"]["row"]) for line in lines)


def test_runs_that_share_a_folder_of_rejects_report_their_own(people, tmp_path):
    text = PEOPLE + "on_violation: reject\nrejects: ./aside\n"
    (tmp_path / "p.yaml").write_text(text)
    (tmp_path / "people.csv").write_text("name,age\nAda,36\nBob,400\nCy\n")
    first = people.pipeline.run(tmp_path / "p.yaml")
    kept = lines_in(tmp_path / "aside")
    assert kept == [("range", 2), ("syntax", 3)]

    (tmp_path / "people.csv").write_text("name,age\nDee,1\nEve,2\nFay,3\nGus,500\nHal\n")

    def stop(update):
        if update.phase == "publish":
            raise KeyboardInterrupt

    with pytest.raises(PipelineInterrupted) as stopped:
        people.pipeline.run(tmp_path / "p.yaml", progress=stop)
    (tmp_path / "people.csv").write_text("name,age\nDee,1\nEve,2\nFay,3\nGus,500\n")
    second = people.pipeline.resume(stopped.value.run)
    for report, expected in ((first, kept), (second, [("range", 4)])):
        shown = sorted((row["rule"], row["source"]["row"]) for row in report.examples)
        assert shown == expected
        assert report.rejects == str(tmp_path / "aside" / report.run)
        assert lines_in(tmp_path / "aside" / report.run) == expected
        assert people.pipeline.report(report.run).examples == report.examples
