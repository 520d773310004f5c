"""A driver that is killed amid staging: what its tasks have finished is not staged again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.pipeline.load import staged_load
from omnigraph.pipeline.load.staged_load import read_staged
from omnigraph.pipeline.runs.run_lease import RunLease
from omnigraph.write.load import find_start_snapshot
from tests.support.changes import read_state
from tests.support.processes import LONG
from tests.support.spark_loads import begin

SCHEMA = "node Person { name: String @key  age: I32?  @range(age, 0..150) }"
PIPELINE = """version: 1
sources: {people: {csv: "people-*.csv"}}
nodes: {Person: {source: people, where: name != 'nobody'}}
on_violation: reject
spark: {master: "local[2]", memory: 512m}
"""
FILES, ROWS = 8, 15_000


def files_of(graph):
    return {i.path for i in graph._manifest.objects.list("nodes") if "/data/" in i.path}


def parts_of(graph):
    found = Path(graph.uri).glob("__pipelines/*/staged/frame-*.json")
    return {path.stem: json.loads(path.read_bytes())["result"] for path in found}


@pytest.fixture(scope="module")
def grave(tmp_path_factory):
    """Kill a driver when some of its tasks have finished, and return its folder."""
    place = tmp_path_factory.mktemp("killed") / "place"
    place.mkdir()
    for number in range(FILES):
        rows = (f"p{number}-{n},{400 if n == 7 else n % 90}\n" for n in range(ROWS))
        (place / f"people-{number}.csv").write_text("name,age\n" + "".join(rows))
    (place / "p.yaml").write_text(PIPELINE)
    graph = og.init(place / "graph", SCHEMA)
    words = [sys.executable, "-m", "omnigraph.cli", "pipeline", "run", str(place / "p.yaml")]
    command = [*words, "--uri", graph.uri, "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        deadline = time.monotonic() + LONG
        while not list(Path(graph.uri).glob("__pipelines/*/staged/frame-*.json")):
            assert driver.poll() is None, driver.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(driver.pid, signal.SIGKILL)
    time.sleep(2)  # tasks that run now end with their Java
    return place


def rejected(report):
    parts = Path(report.rejects).glob("*.ndjson")
    lines = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    return Counter((Path(v["source"]["file"]).name, v["source"]["row"], v["rule"]) for v in lines)


def check_loaded(graph, report):
    assert (report.state, report.accepted, report.rejected) == (
        "finished",
        FILES * (ROWS - 1),
        FILES,
    )
    assert rejected(report) == {(f"people-{n}.csv", 8, "range"): 1 for n in range(FILES)}
    ages = {name: person["age"] for name, person in read_state(graph)["Person"].items()}
    every = ((number, n) for number in range(FILES) for n in range(ROWS) if n != 7)
    assert ages == {f"p{number}-{n}": n % 90 for number, n in every}
    assert graph.verify().ok
    assert parts_of(graph) == {}


def test_finished_tasks_are_not_staged_again(quick, grave, tmp_path):
    copy = shutil.copytree(grave, tmp_path / "copy")
    graph = og.open(grave / "graph")
    kept, before = parts_of(graph), files_of(graph)
    assert 0 < len(kept) < FILES
    [run] = graph.pipeline.status()
    assert "stage" not in run.stages
    paths = {
        file["path"]
        for result in kept.values()
        for type_ in result["types"]
        for fragment in type_["fragments"]
        for file in fragment["files"]
    }
    check_loaded(graph, graph.pipeline.resume(run.id))
    published = {path.rpartition("/")[2] for path in files_of(graph)}
    assert paths <= published
    assert len(published) == FILES  # also those of tasks that the kill interrupted are gone
    assert len(before) >= len(kept)

    # The same files elsewhere may be other files: nothing that tasks have staged is used.
    graph = og.open(copy / "graph")
    check_loaded(graph, graph.pipeline.resume(run.id, copy / "p.yaml"))
    published = {path.rpartition("/")[2] for path in files_of(graph)}
    assert (paths & published, len(published)) == (set(), FILES)


@pytest.mark.parametrize("harm", ["half", "elsewhere", None])
def test_a_kept_part_is_staged_again_if_it_is_damaged_or_begins_elsewhere(
    quick, grave, tmp_path, harm
):
    graph = og.init(tmp_path / "graph", SCHEMA)
    text = PIPELINE.replace("people-*", f"{grave}/people-0")
    (tmp_path / "p.yaml").write_text(text)

    def observe(name):
        if name == "pipeline: finished stage":
            shutil.copytree(tmp_path / "graph", tmp_path / "dead", dirs_exist_ok=True)

    graph._manifest.datasets.observe = observe
    graph.pipeline.run(tmp_path / "p.yaml")

    # As if the driver had died just before it recorded the stage.
    graph = og.open(tmp_path / "dead")
    [run] = graph.pipeline.status()
    assert list(run.stages) == ["stage"]
    dead = replace(run, stages={}, driver=None)
    graph._manifest.objects.put(run.path, json.dumps(dead.to_json()).encode())
    [part] = Path(graph.uri).glob("__pipelines/*/staged/frame-*.json")
    staged = files_of(graph)
    if harm == "half":
        part.write_bytes(part.read_bytes()[:100])
    elif harm == "elsewhere":
        part.write_text(json.dumps({**json.loads(part.read_bytes()), "first": [0, 9]}))
    report = graph.pipeline.resume(run.id)
    assert (report.accepted, report.rejected) == (ROWS - 1, 1)
    assert rejected(report) == {("people-0.csv", 8, "range"): 1}
    assert len(files_of(graph)) == 1
    assert (files_of(graph) == staged) is (harm is None)


def test_the_record_of_a_run_does_not_grow_with_the_number_of_tasks(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(staged_load, "fragment_from_json", FakeFragment)
    sizes = []
    for tasks in (10, 10_000):
        graph = og.init(tmp_path / str(tasks), SCHEMA)
        source = find_start_snapshot(graph._manifest, "main", None)[0]
        request, objects = graph._request("load", None, None), graph._manifest.objects
        with RunLease(graph._manifest, request, source, begin(graph), lambda: None) as lease:
            lease.staged([result(number) for number in range(tasks)], [("people", "row")])
            lease.finish_stage("stage", {"schema": "s", "base": {}})
            sizes.append(len(objects.get(lease.run.path)))
            staged = read_staged(objects, lease.run).types["node:Person"]
        assert (staged.rows, len(staged.fragments)) == (1_000 * tasks, tasks)
        assert objects.get(f"{lease.run.folder}/staged/results.json") is None
    assert sizes[0] == sizes[1]


class FakeFragment:
    physical_rows = 1_000

    def __init__(self, document):
        self.files = document["files"]


def result(number):
    """Return what a task reports of a thousand rows."""
    fragment = {"id": 0, "files": [{"path": f"{number}.lance"}], "physical_rows": 1_000}
    staged = {"table_key": "node:Person", "path": "nodes/1", "given": 1_000, "rows": 1_000}
    more = {"fresh": False, "gives": [], "lacks": {}, "wordless": {}, "at": f"at/{number}"}
    none = {"listed": [], "totals": {}}
    types = [{**staged, **more, "fragments": [fragment]}]
    return {"is_whole": True, "read": none, "checked": none, "rejected": {}, "types": types}
