"""Creating graphs: one winner, nothing half-made in the way, nothing written for a bad schema."""

import pytest

import omnigraph.graph as og
from omnigraph.commit.graph_creation import create_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.errors import AlreadyExists, InvalidInput
from omnigraph.lang import SchemaError
from omnigraph.storage import locate
from tests.support.graphs import (
    CALLS_AT,
    NOTE,
    PORT,
    SCHEMA,
    SHIP,
    clean_at_once,
    dump,
    insert,
    make_graph,
)

EMPTY = {SHIP: {}, PORT: {}, NOTE: {}, CALLS_AT: {}}


class Killed(BaseException):
    """What stands for SIGKILL inside one process: nobody catches it."""


def kill_after(manifest, steps):
    seen = []

    def observe(step):
        seen.append(step)
        if len(seen) == steps:
            raise Killed

    manifest.datasets.observe = observe


def stored(root):
    return sorted((path, path.stat().st_mtime_ns) for path in root.rglob("*"))


def test_new_graph_is_empty_and_whole(graph):
    assert dump(graph) == EMPTY
    assert graph.snapshot().manifest_version == 1
    assert graph.snapshot().schema_source == SCHEMA
    assert {entry.version for entry in graph.snapshot().entries().values()} == {1}
    assert graph.verify().problems == []
    assert graph.mode == "rw"


def test_first_commit_says_how_the_graph_began(graph):
    (first,) = graph.commits.list()
    assert first.id == graph.snapshot().commit_id
    assert (first.operation, first.parents, first.branch) == ("init", (), "main")
    assert (first.actor, first.message, first.manifest_version) == (None, None, 1)
    assert first.schema_hash == graph.snapshot().head.schema_hash


def test_creator_is_the_actor_of_the_first_commit(tmp_path):
    manifest = Manifest(locate(tmp_path / "g"))
    create_graph(manifest, SCHEMA, actor="act-ada")
    assert [commit.actor for commit in og.open(tmp_path / "g").commits.list()] == ["act-ada"]


def test_identities_are_unique_among_graphs(tmp_path):
    one, other = (make_graph(str(tmp_path / name)) for name in ("one", "other"))
    keys = [entry.key for g in (one, other) for entry in g.snapshot().entries().values()]
    assert len(set(keys)) == len(keys) == 8
    assert one.snapshot().schema.domain != other.snapshot().schema.domain


def test_graph_that_exists_is_left_alone(graph, tmp_path):
    insert(graph, NOTE, {"a": {"text": "x"}})
    before = stored(tmp_path)
    with pytest.raises(AlreadyExists) as caught:
        og.init(graph.uri, "node Other { x: String }")
    assert caught.value.code == "already_initialized"
    assert caught.value.message == f"a graph already exists at {graph.uri}"
    assert stored(tmp_path) == before


def test_folder_with_other_files_in_it_can_hold_a_graph(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    graph = make_graph(str(tmp_path))
    assert graph.verify().problems == []
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_leftovers_of_a_killed_creator_do_not_block_the_next(tmp_path, steps):
    manifest = Manifest(locate(tmp_path / "g"))
    kill_after(manifest, steps)
    with pytest.raises(Killed):
        create_graph(manifest, SCHEMA)
    graph = make_graph(str(tmp_path / "g"))
    insert(graph, NOTE, {"a": {"text": "x"}})
    assert dump(graph) == {**EMPTY, NOTE: {"a": {"text": "x"}}}
    found = graph.verify()
    assert found.ok
    assert len(found.problems) == steps
    assert {problem.message for problem in found.problems} == {"no branch refers to this dataset"}
    clean_at_once(graph, keep=1)
    assert graph.verify().problems == []
    assert dump(og.open(graph.uri)) == {**EMPTY, NOTE: {"a": {"text": "x"}}}


@pytest.mark.parametrize("last", ["created dataset nodes", "created dataset edges"])
def test_of_two_creators_at_once_the_later_is_refused_and_harms_nobody(tmp_path, last):
    manifest, made = Manifest(locate(tmp_path / "g")), []

    def race(step):
        if step == last and not made:
            made.append(make_graph(str(tmp_path / "g")))
            insert(made[0], NOTE, {"a": {"text": "x"}})

    manifest.datasets.observe = race
    with pytest.raises(AlreadyExists) as caught:
        create_graph(manifest, SCHEMA)
    assert caught.value.code == "already_initialized"
    fresh = og.open(tmp_path / "g")
    assert dump(fresh)[NOTE] == {"a": {"text": "x"}}
    assert fresh.verify().ok


def test_creation_that_landed_without_its_answer_is_done(tmp_path, monkeypatch):
    manifest = Manifest(locate(tmp_path / "g"))
    create = manifest.datasets.create

    def lossy(path, rows):
        create(path, rows)
        if path == "__manifest":
            raise AlreadyExists("__manifest exists already")
        return 1

    monkeypatch.setattr(manifest.datasets, "create", lossy)
    create_graph(manifest, SCHEMA)
    assert dump(og.open(tmp_path / "g")) == EMPTY


def test_manifest_data_without_a_version_does_not_block(tmp_path):
    data = tmp_path / "g" / "__manifest" / "data"
    data.mkdir(parents=True)
    (data / "0.lance").write_bytes(b"half")
    assert make_graph(str(tmp_path / "g")).verify().problems == []


@pytest.mark.parametrize(
    "schema",
    ["node", "node Ship { name: Strin }", "edge E: A -> B", "node A { x: String } node A {}"],
)
def test_broken_schema_is_refused_and_nothing_is_written(tmp_path, schema):
    with pytest.raises(SchemaError) as caught:
        og.init(tmp_path / "g", schema)
    assert caught.value.diagnostics
    assert not (tmp_path / "g").exists()


# --- where the schema comes from ---------------------------------------------------------------


@pytest.mark.parametrize("form", [str, lambda path: path], ids=["text path", "path"])
def test_schema_is_read_from_a_file(tmp_path, form):
    path = tmp_path / "harbour.pg"
    path.write_text(SCHEMA, encoding="utf-8")
    graph = og.init(tmp_path / "g", form(path))
    assert graph.snapshot().schema_source == SCHEMA


def test_schema_on_one_line_is_text(tmp_path):
    graph = og.init(tmp_path / "g", "node Ship { name: String }")
    assert list(graph.snapshot().entries()) == [SHIP]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_bytes(b"node \xff {}"), "it is not UTF-8 text"),
    ],
    ids=["missing", "folder", "bytes"],
)
def test_schema_file_that_cannot_be_read_is_a_typed_error(tmp_path, make, says):
    path = tmp_path / "harbour.pg"
    make(path)
    with pytest.raises(InvalidInput, match=says) as caught:
        og.init(tmp_path / "g", str(path))
    assert caught.value.code == "schema_file_unreadable"
    assert "harbour.pg" in caught.value.message
    assert not (tmp_path / "g").exists()
