"""Branches and tags whose making or deletion was interrupted, raced, or answered by silence."""

import pytest

import omnigraph.graph as og
from omnigraph.commit import publish
from omnigraph.errors import AlreadyExists, Contention, NotFound
from tests.support.graphs import NOTE, clean_at_once, dump, insert


class Killed(BaseException):
    """What stands for SIGKILL inside one process: nobody catches it."""


def at_step(graph, step, action):
    """Do something when a step is reached, once."""

    def observe(reached):
        if reached == step:
            graph._manifest.datasets.observe = lambda step: None
            action()

    graph._manifest.datasets.observe = observe


def die():
    raise Killed


def interrupt(graph, step, action):
    at_step(graph, step, die)
    with pytest.raises(Killed):
        action()
    return og.open(graph.uri)


def lose_answers(graph, monkeypatch, count=1):
    """Let swaps of main take effect and still look as if another writer had been first."""
    monkeypatch.setattr(publish, "sleep", lambda seconds: None)
    swap, lost = graph._manifest.main.swap, []

    def lossy(*arguments):
        made = swap(*arguments)
        if len(lost) < count:
            lost.append(1)
            raise Contention("publishing: another writer was first")
        return made

    graph._manifest.main.swap = lossy


# --- interrupted -------------------------------------------------------------------------------


def test_lineage_that_was_never_registered_blocks_nobody_and_is_swept(graph):
    survivor = interrupt(graph, "branch: lineage made", lambda: graph.branches.create("side"))
    assert survivor.branches.list() == ["main"]
    (leftover,) = survivor.verify().problems
    assert leftover.harmless
    assert leftover.where.startswith("lineage ")
    survivor.branches.create("side")
    insert(survivor, NOTE, {"a": {}}, branch="side")
    report = clean_at_once(survivor, keep=9)
    assert report.lineages_removed == 1
    assert og.open(graph.uri).verify().problems == []
    assert dump(og.open(graph.uri), "side")[NOTE] == {"a": {"text": None}}


@pytest.mark.parametrize("step", ["branch: announced", "branch: closed"])
@pytest.mark.parametrize("next_", ["create", "delete", "cleanup"])
def test_interrupted_deletion_is_finished_by_whoever_comes_next(graph, step, next_):
    graph.branches.create("side")
    insert(graph, NOTE, {"old": {}}, branch="side")
    graph.branches.create("child", from_="side")
    survivor = interrupt(graph, step, lambda: graph.branches.delete("side", force=True))
    assert survivor.verify().ok
    closed = step == "branch: closed"
    assert survivor.branches.list() == ["child", "main"] + ["side"] * (not closed)
    if not closed:
        insert(survivor, NOTE, {"still": {}}, branch="side")
        survivor.branches.delete("side", force=True)
    elif next_ == "delete":
        with pytest.raises(NotFound):
            survivor.branches.delete("side")
    elif next_ == "cleanup":
        clean_at_once(survivor, keep=9)
    survivor.branches.create("side")
    assert dump(survivor, "side")[NOTE] == {}
    assert survivor.branches.get("child").parent == "main"
    assert dump(survivor, "child")[NOTE] == {"old": {"text": None}}
    assert og.open(graph.uri).verify().ok


# --- raced -------------------------------------------------------------------------------------


def test_name_taken_meanwhile_is_refused_and_the_lineage_removed(graph):
    rival = og.open(graph.uri)
    at_step(graph, "branch: lineage made", lambda: rival.branches.create("side"))
    with pytest.raises(AlreadyExists, match="branch 'side' already exists"):
        graph.branches.create("side")
    lineage_id = rival.branches.get("side").lineage_id
    assert graph._manifest.stored_lineages() == {lineage_id}


def test_parent_deleted_meanwhile_is_noticed(graph):
    graph.branches.create("parent")
    insert(graph, NOTE, {"a": {}}, branch="parent")
    rival = og.open(graph.uri)
    at_step(graph, "branch: lineage made", lambda: rival.branches.delete("parent"))
    with pytest.raises(NotFound, match="branch 'parent' does not exist"):
        graph.branches.create("child", from_="parent")
    assert graph.branches.list() == ["main"]
    assert og.open(graph.uri).verify().ok


def test_child_made_while_its_parent_leaves_is_never_lost(graph):
    graph.branches.create("parent")
    insert(graph, NOTE, {"a": {}}, branch="parent")
    rival = og.open(graph.uri)
    at_step(graph, "branch: announced", lambda: rival.branches.create("child", from_="parent"))
    graph.branches.delete("parent")
    assert graph.branches.list() == ["child", "main"]
    assert graph.branches.get("child").parent == "main"
    assert dump(og.open(graph.uri), "child")[NOTE] == {"a": {"text": None}}


def test_branch_deleted_twice_at_once_is_deleted_once(graph):
    graph.branches.create("side")
    rival = og.open(graph.uri)
    at_step(graph, "branch: announced", lambda: rival.branches.delete("side"))
    graph.branches.delete("side")
    assert graph.branches.list() == ["main"]


# --- answers that were lost --------------------------------------------------------------------


def test_branch_whose_registration_landed_without_its_answer_is_made(graph, monkeypatch):
    lose_answers(graph, monkeypatch)
    made = graph.branches.create("side")
    fresh = og.open(graph.uri)
    assert fresh.branches.get("side") == made
    insert(fresh, NOTE, {"a": {}}, branch="side")
    assert fresh.verify().problems == []


def test_deletion_that_landed_without_its_answer_is_done(graph, monkeypatch):
    graph.branches.create("side")
    lose_answers(graph, monkeypatch, count=2)
    graph.branches.delete("side")
    assert og.open(graph.uri).branches.list() == ["main"]


def test_tag_that_landed_without_its_answer_is_made_and_forgotten(graph, monkeypatch):
    lose_answers(graph, monkeypatch)
    made = graph.tags.create("t")
    assert og.open(graph.uri).tags.list() == [made]
    lose_answers(graph, monkeypatch)
    graph.tags.delete("t")
    assert og.open(graph.uri).tags.list() == []
