"""A graph in one file: with or without its history, from and to anywhere."""

import base64
import json
import tarfile
from pathlib import Path

import lance
import pytest

import omnigraph.graph as og
from omnigraph.errors import AlreadyExists, InvalidInput, OmniError
from tests.support.program import omnigraph

SCHEMA = """
node Person { name: String @key  age: I64?  photo: Blob?  v: Vector(2)? }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "graph", SCHEMA)
    photo = "base64:" + base64.b64encode(b"x" * 200_000).decode()
    rows = [
        {"type": "Person", "data": {"name": "Ada", "age": 36, "photo": photo}},
        {"type": "Person", "data": {"name": "Bob", "v": [1, 2]}},
        {"edge": "Knows", "from": "Ada", "to": "Bob", "data": {"id": "k", "since": "2024-05-01"}},
    ]
    made.load("\n".join(json.dumps(row) for row in rows).encode())
    made.tags.create("first")
    made.branches.create("side")
    made.insert("Person", [{"name": "Eve"}], branch="side")
    made.mutate('query q() { delete Person where name = "Bob" }')
    return made


def lines(graph, at="main"):
    return list(graph.export(at))


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
@pytest.mark.parametrize("at", ["main", "side", "first"])
def test_one_state(graph, tmp_path, name, at):
    made = graph.export_archive(tmp_path / name, at)
    assert (made.history, made.commit_id) == (False, graph.snapshot(at).commit_id)
    found = og.import_archive(tmp_path / name, tmp_path / "copy", actor="ada")
    assert found.entities == made.entities == len(lines(graph, at))
    copy = og.open(tmp_path / "copy")
    assert lines(copy) == lines(graph, at)
    assert copy.schema.source == graph.schema.source
    assert [c.operation for c in copy.commits.list()] == ["load", "init"]


def test_the_model_of_vectors_is_kept(tmp_path):
    schema = "node Doc { k: String @key  v: Vector(2)?  w: Vector(2)? }"
    graph = og.init(tmp_path / "graph", schema, embedding={"kind": "mock", "model": "m1"})
    rows = [{"k": "a", "v": [1.0, 0.0], "w": [1.0, 0.0]}, {"k": "b", "w": [0.0, 1.0]}]
    graph.load({"Doc": rows}, vectors_from={"Doc.v": "m1"})
    graph.export_archive(tmp_path / "a.tar")
    og.import_archive(tmp_path / "a.tar", tmp_path / "copy")
    copy = og.open(tmp_path / "copy", embedding={"kind": "mock", "model": "m1"})
    nearest = 'query q() { match { $d: Doc } return { $d.k } order { nearest($d.v, "x") } limit 2 }'
    assert copy.query(nearest).rows == graph.query(nearest).rows == [{"d.k": "a"}]
    with pytest.raises(OmniError) as caught:
        copy.query(nearest.replace("$d.v", "$d.w"))
    assert caught.value.code == "embedding_model_unknown"


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_all_of_the_history(graph, tmp_path, name):
    graph.optimize()
    graph.export_archive(tmp_path / name, history=True)
    og.import_archive(tmp_path / name, tmp_path / "copy")
    copy = og.open(tmp_path / "copy")
    for at in ("main", "side", "first", *(commit.id for commit in graph.commits.list())):
        assert lines(copy, at) == lines(graph, at)
    assert [c.id for c in copy.commits.list()] == [c.id for c in graph.commits.list()]
    copy.merge("side")
    copy.insert("Person", [{"name": "New"}])
    assert copy.verify().ok
    assert "New" not in "".join(lines(graph))


def test_a_bucket_is_as_good_as_a_folder(graph, tmp_path, s3):
    uri = s3.fresh()
    graph.export_archive(tmp_path / "a.tar", history=True)
    og.import_archive(tmp_path / "a.tar", uri, storage_options=s3.options)
    there = og.open(uri, storage_options=s3.options)
    assert lines(there) == lines(graph)
    there.export_archive(tmp_path / "back.tar", history=True)
    og.import_archive(tmp_path / "back.tar", tmp_path / "back")
    assert lines(og.open(tmp_path / "back"), "side") == lines(graph, "side")


def test_nothing_is_overwritten(graph, tmp_path):
    graph.export_archive(tmp_path / "a.tar")
    with pytest.raises(AlreadyExists) as caught:
        graph.export_archive(tmp_path / "a.tar")
    assert caught.value.code == "archive_exists"
    with pytest.raises(AlreadyExists) as caught:
        og.import_archive(tmp_path / "a.tar", graph.uri)
    assert caught.value.code == "already_initialized"


def test_files_that_are_no_archives(tmp_path, graph):
    (tmp_path / "text").write_text("hello")
    with tarfile.open(tmp_path / "other.tar", "w") as other:
        other.add(tmp_path / "text", "text")
    graph.export_archive(tmp_path / "whole.tar", history=True)
    whole = (tmp_path / "whole.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: len(whole) // 2])
    for name in ("text", "other.tar", "missing.tar", "cut.tar"):
        with pytest.raises((InvalidInput, OmniError)) as caught:
            og.import_archive(tmp_path / name, tmp_path / f"from-{name}")
        assert caught.value.code in ("archive_unreadable", "graph_not_found")
        with pytest.raises(OmniError, match="no graph"):
            og.open(tmp_path / f"from-{name}")


def test_from_the_command_line(graph, tmp_path):
    file = tmp_path / "a.tar.gz"
    ran = omnigraph("export", graph.uri, "--archive", file, "--history")
    assert (ran.code, ran.err) == (0, "")
    assert "with all of its history" in ran.out
    facts = json.loads(omnigraph("import", file, str(tmp_path / "copy"), "--json").out)
    assert (facts["history"], facts["graph_commit_id"]) == (True, graph.snapshot().commit_id)
    assert omnigraph("export", graph.uri, "--history").code == 2
    assert omnigraph("import", tmp_path / "none", str(tmp_path / "x")).code == 1


# --- repair --------------------------------------------------------------------------------------


def test_repair_shows_other_programs_what_main_shows(graph):
    found = {r.type_key: str(r.action) for r in graph.repair()}
    assert found["node:Person"] == "preview"
    healed = {r.type_key: str(r.action) for r in graph.repair(confirm=True)}
    assert healed["node:Person"] == "healed"
    assert {r.action for r in graph.repair()} == {"no_op"}
    entry = graph.snapshot().entry("node:Person")
    [folder] = (graph_folder(graph) / "nodes").iterdir()
    assert lance.dataset(str(folder)).count_rows() == entry.rows
    assert graph.verify().ok
    facts = json.loads(omnigraph("repair", graph.uri, "--json").out)
    assert {d["classification"] for d in facts["datasets"]} == {"no_drift"}


def graph_folder(graph):
    return Path(graph.uri)


def test_what_is_needed_and_what_is_not_is_reported(graph):
    report = graph.cleanup(keep=1)
    files = [f for kind in ("nodes", "edges") for f in (graph_folder(graph) / kind).rglob("*")]
    listed = sum(file.stat().st_size for file in files if file.is_file())
    assert report.bytes_kept + report.bytes_removed == listed


def test_an_entity_whose_key_is_an_empty_text_is_imported(tmp_path):
    graph = og.init(tmp_path / "empty key", "node Tag { name: String @key }\nedge Near: Tag -> Tag")
    graph.insert("Tag", [{"name": ""}])
    graph.insert("Near", [{"from": "", "to": ""}])
    graph.export_archive(tmp_path / "graph.tar")
    og.import_archive(tmp_path / "graph.tar", tmp_path / "copy")
    assert lines(og.open(tmp_path / "copy")) == lines(graph)
