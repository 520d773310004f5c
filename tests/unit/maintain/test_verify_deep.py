"""Deep verify reports every damage that could change an answer, within limited memory.

`DAMAGES=250` runs that many random damages; without it a few are.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.errors import GraphCorrupt
from omnigraph.maintain import verify_subprocess
from omnigraph.maintain.damaged_files import DamagedFile
from omnigraph.maintain.verify import IntegrityProblem
from omnigraph.maintain.verify_subprocess import verify_in_subprocess
from omnigraph.storage import Location
from omnigraph.storage.checksums import clear_checked_files
from omnigraph.storage.layout import dataset_path, version_file
from tests.support.damage import PEAK_BYTES, examine, make_graph
from tests.support.graphs import NOTE, SHIP, insert, upsert
from tests.support.program import omnigraph

FEW = (3, 5, 7, 10, 12, 16, 22, 26, 28, 33, 34)
"""Seeds of a few damages. Names of files are random, so a seed hits another file in each graph."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "graph"
    make_graph(folder)
    return folder


def test_random_damage_is_reported_or_harmless(whole):
    count = int(os.environ.get("DAMAGES", "0"))
    outcomes = examine(whole, range(count) if count else FEW)
    assert [outcome for outcome in outcomes if outcome.faults] == []
    assert max(outcome.peak for outcome in outcomes) < PEAK_BYTES
    reported = sum(outcome.reported for outcome in outcomes)
    print(f"{len(outcomes)} damages: {reported} reported, {len(outcomes) - reported} harmless")


# --- what deep compares --------------------------------------------------------------------------


@pytest.fixture
def graph(graph):
    insert(graph, NOTE, {"a": {"text": "x" * 50}, "b": {"text": "y" * 50}})
    insert(graph, SHIP, {"s": {"name": "Aurora", "tons": 7}})
    upsert(graph, NOTE, {"a": {"text": "z" * 50}})
    return graph


def folder(graph, table_key):
    entry = graph.snapshot().entries()[table_key]
    return Path(graph.uri) / dataset_path(table_key.partition(":")[0], *entry.key)


def flip(file, at):
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(bytes(data))


def newest(files):
    return max(files, key=lambda file: file.stat().st_mtime_ns)


def test_whole_graph_matches_its_checksums(graph):
    found = graph.verify(deep=True)
    assert found.to_json() == {
        "ok": True,
        "branches": 1,
        "commits": 4,
        "versions": 4,
        "files": 11,
        "files_without_checksum": 0,
        "problems": [],
    }


def test_flipped_value_of_a_property_is_found(graph):
    file = next(f for f in (folder(graph, NOTE) / "data").iterdir() if b"zzzz" in f.read_bytes())
    flip(file, file.read_bytes().index(b"zzzz"))
    with pytest.raises(GraphCorrupt, match="does not match its checksum") as caught:
        og.open(graph.uri).query("query q() { match { $n: Note } return { $n.text as t } }")
    assert caught.value.details["file"].endswith(f"data/{file.name}")
    commit = graph.commits.list()[0].id
    path = f"nodes/{folder(graph, NOTE).name}"
    problem = IntegrityProblem(
        path,
        f"version 3 is damaged: data/{file.name} does not match its checksum "
        f"(first shown by commit {commit})",
    )
    assert graph.verify(deep=True).problems == [problem]


def test_damaged_data_file_names_its_commit_its_entities_and_what_history_has(graph):
    insert(graph, NOTE, {"c": {"text": "new"}})
    upsert(graph, NOTE, {"b": {"text": "w" * 50}, "d": {"text": "w" * 50}})
    wrote = graph.commits.list()[0]
    file = next(f for f in (folder(graph, NOTE) / "data").iterdir() if b"wwww" in f.read_bytes())
    flip(file, file.read_bytes().index(b"wwww"))
    [damaged] = graph.verify(deep=True).damaged_files
    path = f"nodes/{folder(graph, NOTE).name}"
    assert damaged == DamagedFile(
        type_key=NOTE,
        file=f"{path}/data/{file.name}",
        derived=False,
        commit_id=wrote.id,
        branches=("main",),
        commits=1,
        rows=2,
        ids=("b",),  # no footprint, and no other version, proves d
        restorable={graph.commits.list()[1].id: ("b",)},
    )
    lines = omnigraph("verify", graph.uri, "--deep").out.splitlines()
    assert lines[1:6] == [
        f"damaged: {damaged.file} of node:Note, written by commit {wrote.id}",
        "  affects: 2 entities (1 with unreadable ids); 1 published version; branch main",
        "  entity: b",
        f"  restorable: 1 entity as of commit {graph.commits.list()[1].id}, an intact version",
        f"  next: {damaged.next_step}",
    ]
    facts = json.loads(omnigraph("verify", graph.uri, "--deep", "--json").out)
    assert facts["damaged_files"] == [damaged.to_json()]


def test_ids_of_a_damaged_file_are_proven_by_the_footprint_of_its_commit(tmp_path):
    graph = og.init(tmp_path / "graph", "node Port { code: String @key  size: I32? }")
    graph.insert("Port", [{"code": "HAM"}])
    commit = graph.insert("Port", [{"code": "OSL", "size": 7}, {"code": "RTM"}]).commit
    file = newest((folder(graph, "node:Port") / "data").iterdir())
    file.write_bytes(file.read_bytes() + b"0")
    [damaged] = graph.verify(deep=True).damaged_files
    assert (damaged.commit_id, damaged.ids) == (commit.id, ("OSL", "RTM"))
    assert (damaged.rows, damaged.restorable) == (2, {})


def test_damaged_version_file_affects_all_entities_of_its_type(graph):
    entry = graph.snapshot().entries()[NOTE]
    flip(folder(graph, NOTE) / version_file(entry.physical), 100)
    [damaged] = graph.verify(deep=True).damaged_files
    assert (damaged.rows, damaged.ids, damaged.branches) == (2, (), ("main",))


def test_damaged_index_affects_no_entity(graph):
    graph.optimize()
    file = next(folder(graph, NOTE).glob("_indices/*/page_data.lance"))
    flip(file, file.stat().st_size // 2)
    [damaged] = graph.verify(deep=True).damaged_files
    assert (damaged.derived, damaged.rows, damaged.ids) == (True, 0, ())
    assert damaged.next_step.startswith("an index is derived")


def test_flipped_value_in_a_row_of_the_manifest_is_a_typed_error(graph):
    file = newest((Path(graph.uri) / "__manifest" / "data").iterdir())
    flip(file, file.stat().st_size // 2)
    clear_checked_files()  # what this process wrote counts as compared
    with pytest.raises(GraphCorrupt) as caught:
        og.open(graph.uri)
    assert caught.value.details["file"] == f"__manifest/data/{file.name}"
    found = verify_in_subprocess(Location(graph.uri))
    assert [file.name in problem.message for problem in found.problems] == [True]


@pytest.mark.parametrize("deep", [False, True])
def test_damaged_branch_is_not_a_problem_of_main_and_hides_none(graph, deep):
    graph.branches.create("side")
    lineage = Path(graph.uri) / "__branches" / graph._manifest.branch("side").lineage_id
    insert(graph, SHIP, {"t": {"name": "Emma"}}, branch="side")
    file = newest((lineage / "data").iterdir())
    insert(graph, SHIP, {"u": {"name": "Olga"}}, branch="side")
    flip(file, file.stat().st_size // 2)
    other = next(f for f in (folder(graph, NOTE) / "data").iterdir() if b"zzzz" in f.read_bytes())
    flip(other, other.read_bytes().index(b"zzzz"))
    problems = og.open(graph.uri, mode="ro").verify(deep=deep).problems
    of_branch = {p.where for p in problems if file.name in p.message}
    assert of_branch == {"branch side", *([f"__branches/{lineage.name}"] if deep else [])}
    path = f"nodes/{folder(graph, NOTE).name}"
    found = [p.where for p in problems if other.name in p.message]
    assert found == [path if deep else f"branch main, {path}"]


def test_lost_version_only_history_shows_is_found(graph):
    old = graph.snapshot(graph.commits.list()[1].id).entries()[NOTE]
    (folder(graph, NOTE) / version_file(old.physical)).unlink()
    assert graph.verify().ok
    [problem] = graph.verify(deep=True).problems
    assert problem.message.startswith("version 2 is incomplete: _versions/d")


def test_graph_of_an_older_release_is_decoded_and_optimize_adds_the_checksum_of_rows(graph):
    state = graph._manifest.main.state()
    rows = state.rows("object_type = 'table_version'")
    bare = [_without_files(found.row) for found in rows]
    state.lineage.swap(state, state.head, bare, rows)
    _forget_row_sum(graph)
    found = graph.verify(deep=True)
    assert (found.ok, found.files, found.unsummed) == (True, 0, 11)
    assert [problem.message for problem in found.problems] == [
        "its rows have no checksum: an older release wrote them; `optimize` adds one"
    ]
    og.open(graph.uri).optimize()
    assert og.open(graph.uri).verify(deep=True).problems == []


def _without_files(row):
    metadata = json.loads(row["metadata"])
    metadata.pop("files")
    return NewManifestRow(**{**row, "metadata": json.dumps(metadata)})


def _forget_row_sum(graph):
    state = graph._manifest.main.state()
    bare = replace(state, head=replace(state.head, row_checksum=None))
    state.lineage.swap(bare, bare.head)


def test_child_that_dies_is_a_problem(graph, monkeypatch):
    monkeypatch.setattr(verify_subprocess, "_PROGRAM", "import os; os.abort()")
    [problem] = graph.verify(deep=True).problems
    assert problem.message.startswith("reading it ended a process with limited memory (SIGABRT")
    monkeypatch.setattr(verify_subprocess, "_PROGRAM", "import time; time.sleep(60)")
    [problem] = verify_in_subprocess(Location(graph.uri), silence=0.2).problems
    assert problem.message.startswith("reading it took longer than 0 seconds")
