"""Tags: names of commits that never move and keep what they name."""

import pytest

import omnigraph.graph as og
from omnigraph.errors import AlreadyExists, InvalidInput, NotFound
from tests.support.graphs import NOTE, clean_at_once, dump, insert, upsert


def notes(graph, at):
    return {id_: row["text"] for id_, row in dump(graph, at)[NOTE].items()}


def run_cleanup(graph):
    clean_at_once(graph, keep=1)


def test_tag_names_the_commit_it_was_given(graph):
    first = insert(graph, NOTE, {"a": {"text": "1"}})
    made = graph.as_actor("act-ada").tags.create("v1/rc.1")
    upsert(graph, NOTE, {"a": {"text": "2"}})
    assert (made.name, made.commit_id, made.actor) == ("v1/rc.1", first.id, "act-ada")
    assert og.open(graph.uri).tags.list() == [made]
    assert notes(og.open(graph.uri), "v1/rc.1") == {"a": "1"}


def test_tags_are_listed_by_name(graph):
    for name in ("b", "a/b", "a"):
        graph.tags.create(name)
    assert [tag.name for tag in graph.tags.list()] == ["a", "a/b", "b"]


def test_tag_never_moves(graph):
    graph.tags.create("t")
    insert(graph, NOTE, {"a": {}})
    with pytest.raises(AlreadyExists) as caught:
        graph.tags.create("t")
    assert caught.value.code == "tag_exists"
    assert notes(graph, "t") == {}


def test_forgotten_tag_is_gone_for_every_process_and_its_name_free(graph):
    other = og.open(graph.uri)
    graph.tags.create("t")
    assert [tag.name for tag in other.tags.list()] == ["t"]
    graph.tags.delete(" t ")
    assert other.tags.list() == []
    with pytest.raises(NotFound) as caught:
        other.snapshot("t")
    assert caught.value.code == "target_not_found"
    made = insert(graph, NOTE, {"a": {}})
    assert other.tags.create("t").commit_id == made.id


def test_missing_tag_is_not_found(graph):
    with pytest.raises(NotFound) as caught:
        graph.tags.delete("t")
    assert (caught.value.code, caught.value.message) == ("tag_not_found", "tag 't' does not exist")


def test_invalid_name_is_refused(graph):
    with pytest.raises(InvalidInput) as caught:
        graph.tags.create("a b")
    assert caught.value.code == "tag_name_invalid"


def test_tag_keeps_its_commit_from_cleanup_until_it_is_forgotten(graph):
    first = insert(graph, NOTE, {"a": {"text": "1"}})
    graph.tags.create("keep", at=first.id)
    for number in range(2, 5):
        upsert(graph, NOTE, {"a": {"text": str(number)}})
    run_cleanup(graph)
    assert notes(og.open(graph.uri), "keep") == {"a": "1"}
    assert graph.verify().problems == []
    graph.tags.delete("keep")
    before = sum(1 for _ in graph._manifest.objects.list("nodes"))
    run_cleanup(graph)
    assert sum(1 for _ in graph._manifest.objects.list("nodes")) < before


def test_tag_keeps_a_commit_whose_branch_is_deleted(graph):
    graph.branches.create("side")
    made = insert(graph, NOTE, {"a": {"text": "side"}}, branch="side")
    graph.tags.create("keep", at="side")
    graph.branches.delete("side")
    run_cleanup(graph)
    fresh = og.open(graph.uri)
    assert notes(fresh, "keep") == {"a": "side"}
    assert fresh.commits.get(made.id).branch == "side"
    assert fresh.verify().ok
    fresh.branches.create("again", from_="keep")
    assert notes(fresh, "again") == {"a": "side"}
    fresh.tags.delete("keep")
    run_cleanup(fresh)
    assert notes(og.open(graph.uri), "again") == {"a": "side"}
    assert og.open(graph.uri).verify().ok
