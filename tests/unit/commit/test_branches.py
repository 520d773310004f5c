"""Branches: made from anything, deleted by rules, named freely, never mistaken for another."""

import pytest
from ulid import ULID

import omnigraph.graph as og
from omnigraph.commit.branches import delete_branch
from omnigraph.errors import (
    AlreadyExists,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    VersionReclaimed,
)
from tests.support.graphs import NOTE, clean_at_once, delete, dump, insert, upsert


def notes(graph, at="main"):
    return {id_: row["text"] for id_, row in dump(graph, at)[NOTE].items()}


def refused(code, action):
    with pytest.raises((AlreadyExists, InvalidInput, NotFound)) as caught:
        action()
    assert caught.value.code == code
    return caught.value


# --- create ------------------------------------------------------------------------------------


def test_new_branch_shows_what_it_was_made_from(graph):
    base = insert(graph, NOTE, {"a": {"text": "x"}})
    made = graph.as_actor("act-ada").branches.create("side")
    assert (made.name, made.parent, made.fork_commit) == ("side", "main", base.id)
    assert (made.actor, made.deleting) == ("act-ada", False)
    assert ULID.from_str(made.lineage_id)
    assert graph.branches.get("side") == made == og.open(graph.uri).branches.get("side")
    assert notes(graph, "side") == {"a": "x"}
    assert graph.snapshot("side").commit_id == base.id
    assert graph.commits.list("side") == graph.commits.list()


def test_branch_is_made_from_commit_tag_time_snapshot_and_branch(graph):
    first = insert(graph, NOTE, {"a": {"text": "1"}})
    graph.tags.create("t", at=first.id)
    second = upsert(graph, NOTE, {"a": {"text": "2"}})
    upsert(graph, NOTE, {"a": {"text": "3"}})
    sources = {
        "commit": (first.id, "1"),
        "tag": ("t", "1"),
        "time": (second.created_at, "2"),
        "version": (second.manifest_version, "2"),
        "snapshot": (graph.snapshot(second.id), "2"),
        "branch": ("commit", "1"),
        "grandchild": ("branch", "1"),
    }
    for name, (source, _) in sources.items():
        graph.branches.create(name, from_=source)
    fresh = og.open(graph.uri)
    assert {n: notes(fresh, n)["a"] for n in sources} == {n: t for n, (_, t) in sources.items()}
    assert fresh.branches.get("grandchild").parent == "branch"
    assert fresh.verify().problems == []


def test_branch_of_a_branch_of_a_commit_goes_its_own_way(graph):
    first = insert(graph, NOTE, {"a": {"text": "1"}})
    upsert(graph, NOTE, {"a": {"text": "2"}})
    graph.branches.create("one", from_=first.id)
    upsert(graph, NOTE, {"b": {"text": "one"}}, branch="one")
    graph.branches.create("two", from_="one")
    delete(graph, NOTE, ["a"], branch="two")
    assert [notes(graph, at) for at in ("main", "one", "two")] == [
        {"a": "2"},
        {"a": "1", "b": "one"},
        {"b": "one"},
    ]
    assert [commit.branch for commit in graph.commits.list("two")] == ["two", "one", "main", "main"]
    assert graph.commits.merge_base("main", "two") == (first.id,)
    assert og.open(graph.uri).verify().problems == []


def test_names_with_shared_prefixes_are_different_branches(graph):
    names = ["a", "a/b", "a/b/c", "ab", "a.b", "a-b", "A", "ä"]
    for name in names:
        graph.branches.create(name)
        insert(graph, NOTE, {name: {"text": name}}, branch=name)
    assert {name: notes(graph, name) for name in names} == {name: {name: name} for name in names}
    assert og.open(graph.uri).branches.list() == sorted([*names, "main"])
    graph.branches.delete("a")
    graph.branches.delete("a/b/c")
    assert {n: notes(graph, n) for n in ("a/b", "ab")} == {
        "a/b": {"a/b": "a/b"},
        "ab": {"ab": "ab"},
    }


def test_name_is_trimmed(graph):
    assert graph.branches.create("  side ").name == "side"
    assert graph.branches.get(" side").name == "side"


def test_name_that_is_taken_is_refused(graph):
    graph.branches.create("side")
    error = refused("branch_exists", lambda: og.open(graph.uri).branches.create("side"))
    assert error.message == "branch 'side' already exists"
    assert graph._manifest.stored_lineages() == {graph.branches.get("side").lineage_id}


def test_invalid_name_is_refused_and_nothing_is_made(graph):
    refused("branch_name_invalid", lambda: graph.branches.create("a b"))
    assert graph._manifest.stored_lineages() == set()


def test_unknown_source_is_not_found(graph):
    refused("target_not_found", lambda: graph.branches.create("side", from_="nobody"))
    assert graph.branches.list() == ["main"]


def test_commit_that_was_cleaned_up_cannot_be_branched(graph):
    first = insert(graph, NOTE, {"a": {"text": "1"}})
    upsert(graph, NOTE, {"a": {"text": "2"}})
    upsert(graph, NOTE, {"a": {"text": "3"}})
    clean_at_once(graph, keep=1)
    for create in (graph.branches.create, graph.tags.create):
        with pytest.raises(VersionReclaimed, match="version 2 of node:Note has been cleaned up"):
            create("late", first.id)
    assert graph.branches.list() == ["main"]
    assert graph.tags.list() == []
    assert graph.verify().problems == []


def test_commit_whose_manifest_version_is_gone_can_still_be_branched(graph):
    first = insert(graph, NOTE, {"a": {"text": "1"}})
    insert(graph, NOTE, {"b": {"text": "2"}})
    graph.tags.create("keep", at=first.id)
    clean_at_once(graph, keep=1)
    with pytest.raises(VersionReclaimed):
        graph._manifest.main.at(first.manifest_version)
    graph.branches.create("side", from_=first.id)
    fresh = og.open(graph.uri)
    assert notes(fresh, "side") == {"a": "1"}
    assert [c.id for c in fresh.commits.list("side")] == [c.id for c in graph.commits.list()][1:]
    assert fresh.verify().problems == []


# --- delete ------------------------------------------------------------------------------------


def test_deleted_branch_is_gone_for_every_process(graph):
    graph.branches.create("side")
    insert(graph, NOTE, {"a": {}}, branch="side")
    other = og.open(graph.uri)
    assert notes(other, "side") == {"a": None}
    graph.branches.delete("side")
    for process in (graph, other, og.open(graph.uri)):
        assert process.branches.list() == ["main"]
        refused("branch_not_found", lambda p=process: p.branches.get("side"))
        refused("target_not_found", lambda p=process: p.snapshot("side"))
        refused("branch_not_found", lambda p=process: p.commits.list("side"))
        refused("branch_not_found", lambda p=process: insert(p, NOTE, {"b": {}}, branch="side"))
    assert graph.verify().ok


@pytest.mark.parametrize(
    ("name", "code"), [("main", "branch_name_invalid"), ("nobody", "branch_not_found")]
)
def test_main_and_missing_branches_are_not_deleted(graph, name, code):
    refused(code, lambda: graph.branches.delete(name))


def test_branch_with_descendants_is_not_deleted(graph):
    for name, source in (("a", "main"), ("b", "a"), ("c", "a"), ("d", "b")):
        graph.branches.create(name, from_=source)
    error = refused("branch_has_descendants", lambda: graph.branches.delete("a"))
    assert "has child branches: b, c;" in error.message
    insert(graph, NOTE, {"x": {}}, branch="a")
    assert graph.branches.list() == ["a", "b", "c", "d", "main"]


def test_forced_deletion_hands_descendants_to_the_parent(graph):
    for name, source in (("a", "main"), ("b", "a"), ("c", "b"), ("d", "b")):
        graph.branches.create(name, from_=source)
        insert(graph, NOTE, {name: {"text": name}}, branch=name)
    graph.branches.delete("b", force=True)
    assert {n: graph.branches.get(n).parent for n in "acd"} == {"a": "main", "c": "a", "d": "a"}
    fresh = og.open(graph.uri)
    assert notes(fresh, "c") == {"a": "a", "b": "b", "c": "c"}
    assert notes(fresh, "d") == {"a": "a", "b": "b", "d": "d"}
    insert(fresh, NOTE, {"more": {"text": "m"}}, branch="c")
    for name in "cda":
        fresh.branches.delete(name)
    assert fresh.verify().ok


def test_commits_of_a_deleted_parent_live_on_in_its_descendants(graph):
    graph.branches.create("a")
    inherited = insert(graph, NOTE, {"a": {"text": "a"}}, branch="a")
    graph.branches.create("b", from_="a")
    own = insert(graph, NOTE, {"b": {"text": "b"}}, branch="b")
    graph.branches.delete("a", force=True)
    fresh = og.open(graph.uri)
    assert [c.id for c in fresh.commits.list("b")][:2] == [own.id, inherited.id]
    assert notes(fresh, inherited.id) == {"a": "a"}
    assert fresh.snapshot(inherited.id).branch == "b"
    made = fresh.branches.create("again", from_=inherited.id)
    assert (made.parent, notes(fresh, "again")) == ("b", {"a": "a"})
    assert og.open(graph.uri).verify().ok


def test_branch_made_again_is_another_branch(graph):
    first = graph.branches.create("side")
    insert(graph, NOTE, {"old": {"text": "old"}}, branch="side")
    watcher, before = og.open(graph.uri), graph.snapshot("side")
    assert notes(watcher, "side") == {"old": "old"}
    graph.branches.delete("side")
    second = graph.branches.create("side")
    insert(graph, NOTE, {"new": {"text": "new"}}, branch="side")
    assert first.lineage_id != second.lineage_id
    assert notes(watcher, "side") == notes(graph, "side") == {"new": "new"}
    assert watcher.branches.get("side") == second
    assert notes(graph, before) == {"old": "old"}


def test_snapshot_of_a_deleted_branch_cannot_be_a_source(graph):
    graph.branches.create("side")
    insert(graph, NOTE, {"a": {}}, branch="side")
    old = graph.snapshot("side")
    graph.branches.delete("side")
    for _ in range(2):
        error = refused("branch_not_found", lambda: graph.branches.create("other", from_=old))
        assert error.message == "branch 'side' does not exist"
        clean_at_once(graph, keep=1)
    assert graph.branches.list() == ["main"]
    assert graph._manifest.stored_lineages() == set()


def test_branch_that_changes_while_it_is_deleted_stays(graph, monkeypatch):
    graph.branches.create("side")
    other, since = og.open(graph.uri), graph.snapshot("side")
    other.snapshot("side")

    def change(step):
        if step == "branch: announced":
            insert(other, NOTE, {"a": {}}, branch="side")

    monkeypatch.setattr(graph._manifest.datasets, "observe", change)
    with pytest.raises(PreconditionFailed):
        delete_branch(graph._manifest, "side", unchanged_since=since)
    monkeypatch.undo()
    assert graph.branches.get("side").deleting is False
    newest = graph.snapshot("side")
    assert newest.commit_id != since.commit_id
    delete_branch(graph._manifest, "side", unchanged_since=newest)
    assert not graph.branches.exists("side")
