"""The public face: what it delegates, what it refuses, what it returns."""

from datetime import UTC, datetime, timedelta

import pytest

import omnigraph.graph as og
from omnigraph.commit.model import Commit
from omnigraph.errors import InvalidInput, NotFound
from tests.support.graphs import CALLS_AT, NOTE, PORT, SHIP, Change, commit, delete, insert, upsert

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def harbour(graph):
    commit(
        graph,
        Change("insert", SHIP, {"aurora": {"name": "Aurora", "tons": 7}}),
        Change("insert", PORT, {"o'brien": {"city": "Cork"}}),
        Change("insert", CALLS_AT, {"c": {"src": "aurora", "dst": "o'brien", "fee": 3}}),
    )
    return graph


# --- opening -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [str, lambda path: path, lambda path: f"file://{path}"])
def test_graph_is_opened_by_path_text_and_uri(harbour, tmp_path, form):
    opened = og.open(form(tmp_path / "graph"))
    assert opened.uri == harbour.uri == str(tmp_path / "graph")
    assert opened.snapshot().commit_id == harbour.snapshot().commit_id


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_place_without_a_graph_is_not_found_and_left_alone(tmp_path, make, mode):
    make(tmp_path / "g")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NotFound) as caught:
        og.open(tmp_path / "g", mode)
    assert caught.value.code == "graph_not_found"
    assert caught.value.message == f"no graph at {tmp_path / 'g'}"
    assert sorted(tmp_path.rglob("*")) == before


def test_actor_of_a_bound_graph_stands_on_what_it_makes(harbour):
    ada = harbour.as_actor("act-ada")
    assert (ada.actor, harbour.actor) == ("act-ada", None)
    assert ada.branches.create("side").actor == "act-ada"
    assert ada.tags.create("t").actor == "act-ada"
    assert harbour.branches.list() == ["main", "side"]


# --- entities ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_name", "id_", "row"),
    [
        ("Ship", "aurora", {"id": "aurora", "name": "Aurora", "tons": 7}),
        ("Port", "o'brien", {"id": "o'brien", "city": "Cork", "depth": None}),
        ("CallsAt", "c", {"id": "c", "src": "aurora", "dst": "o'brien", "fee": 3}),
        ("Ship", "AURORA", None),
        ("Note", "aurora", None),
    ],
)
def test_entity_is_read_as_it_is(harbour, type_name, id_, row):
    assert harbour.entity_at(type_name, id_) == row


def test_entity_is_read_as_it_was(harbour):
    first = harbour.snapshot()
    harbour.branches.create("side")
    upsert(harbour, SHIP, {"aurora": {"name": "Borealis"}}, branch="side")
    second = delete(harbour, SHIP, ["aurora"])
    harbour.tags.create("before", at=first)
    aurora = {"id": "aurora", "name": "Aurora", "tons": 7}
    borealis = {"id": "aurora", "name": "Borealis", "tons": None}
    for at, row in [
        ("main", None),
        (second.id, None),
        (first, aurora),
        (first.commit_id, aurora),
        (first.manifest_version, aurora),
        ("before", aurora),
        ("side", borealis),
    ]:
        assert harbour.entity_at("Ship", "aurora", at) == row


@pytest.mark.parametrize("type_name", ["Nobody", "", "ship", "edge:Ship", "node:"])
def test_entity_of_an_unknown_type_is_not_found(harbour, type_name):
    with pytest.raises(NotFound) as caught:
        harbour.entity_at(type_name, "aurora")
    assert caught.value.code == "unknown_type"


# --- history -----------------------------------------------------------------------------------


def test_commits_are_listed_newest_first_with_what_a_branch_inherited(harbour):
    harbour.branches.create("side")
    own = insert(harbour, NOTE, {"a": {}}, branch="side")
    later = insert(harbour, NOTE, {"b": {}})
    main, side = harbour.commits.list(), harbour.commits.list("side")
    assert [c.operation for c in main] == ["load", "load", "init"]
    assert main[0] == later
    assert side == [own, *main[1:]]
    assert harbour.commits.list(limit=2) == main[:2]
    assert harbour.commits.list(limit=0) == []
    with pytest.raises(InvalidInput, match="cannot be negative: -1"):
        harbour.commits.list(limit=-1)


def test_commit_is_found_on_whatever_branch_it_is(harbour):
    harbour.branches.create("side")
    own = insert(harbour, NOTE, {"a": {}}, branch="side")
    assert harbour.commits.get(own.id) == og.open(harbour.uri).commits.get(own.id) == own
    with pytest.raises(NotFound) as caught:
        harbour.commits.get("nobody")
    assert caught.value.code == "commit_not_found"


def test_merge_base_is_where_two_states_parted(harbour):
    fork = harbour.snapshot().commit_id
    harbour.branches.create("side")
    own = insert(harbour, NOTE, {"a": {}}, branch="side")
    later = insert(harbour, NOTE, {"b": {}})
    assert harbour.commits.merge_base("main", "side") == (fork,)
    assert harbour.commits.merge_base(own.id, later.id) == (fork,)
    assert harbour.commits.merge_base("side", fork) == (fork,)
    assert harbour.commits.merge_base("main", "main") == (later.id,)


def test_commit_tells_the_wire_what_it_is(harbour):
    harbour.branches.create("side")
    own = insert(harbour, NOTE, {"a": {}}, branch="side")
    assert own.to_json() == {
        "graph_commit_id": own.id,
        "graph_branch": "side",
        "graph_manifest_version": own.manifest_version,
        "parent_commit_id": harbour.commits.list()[0].id,
        "merged_parent_commit_id": None,
        "actor_id": None,
        "created_at": (own.created_at - EPOCH) // timedelta(microseconds=1),
        "message": '["insert"]',
        "operation": "load",
        "counts": {},
    }
    assert Commit.from_json(own.to_json()) == own
    first = harbour.commits.list()[-1].to_json()
    assert (first["graph_branch"], first["parent_commit_id"]) == (None, None)


# --- upkeep ------------------------------------------------------------------------------------


def test_upkeep_is_reached_through_the_face(harbour):
    assert harbour.recover() == []
    assert harbour.recover(stale_after=timedelta(0)) == []
    assert harbour.recoveries() == []
    assert harbour.verify().ok
    assert harbour.cleanup(older_than=timedelta(days=30)).dry_run
    with pytest.raises(InvalidInput):
        harbour.cleanup()


def test_messages_and_actors_are_unicode(graph):
    before = graph.snapshot().commit_id
    note = {"Note": [{"id": "n"}]}
    for bound, message in ((graph, "half \ud800"), (graph.as_actor("half \ud800"), None)):
        with pytest.raises(InvalidInput, match="is not valid Unicode") as caught:
            bound.load(note, message=message)
        assert caught.value.code == "text_invalid"
    assert graph.snapshot().commit_id == before
    assert graph.load(note, message="whole \U0001f6a2").commit.message == "whole \U0001f6a2"
