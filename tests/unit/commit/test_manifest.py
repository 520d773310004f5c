"""What a process knows of a graph stays right when others change it underneath."""

import shutil
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.commit import lineage
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import without_branch
from omnigraph.commit.model import Branch
from omnigraph.errors import GraphCorrupt, NotFound
from tests.support.graphs import NOTE, dump, insert, upsert
from tests.support.history import grow


def lose(graph, branch):
    """Remove the lineage of a branch that is still named."""
    shutil.rmtree(Path(graph.uri) / "__branches" / branch.lineage_id)


@pytest.fixture
def broken(graph):
    """A graph one branch of which has lost its lineage."""
    graph.branches.create("whole")
    branch = graph.branches.create("lost")
    insert(graph, NOTE, {"a": {"text": "x"}}, branch="lost")
    insert(graph, NOTE, {"b": {"text": "y"}}, branch="whole")
    lose(graph, branch)
    return graph


@pytest.mark.parametrize("fresh", [False, True], ids=["same process", "fresh"])
def test_branch_without_its_lineage_is_not_found_and_the_others_go_on(broken, fresh):
    graph = og.open(broken.uri) if fresh else broken
    for read in (
        lambda: graph.snapshot("lost"),
        lambda: graph.commits.list("lost"),
        lambda: insert(graph, NOTE, {"c": {}}, branch="lost"),
    ):
        with pytest.raises(NotFound) as caught:
            read()
        assert caught.value.code in ("branch_not_found", "target_not_found")
    assert dump(graph, "whole")[NOTE] == {"b": {"text": "y"}}
    own = graph.commits.list("whole")[0]
    assert graph.commits.get(own.id) == own


def test_lineage_that_is_gone_counts_as_closed(broken):
    lost = broken._manifest.registered_branches()["lost"]
    assert broken._manifest.is_closed(lost)
    broken.branches.delete("lost")
    assert broken.branches.list() == ["main", "whole"]
    assert broken.verify().ok


def test_names_are_read_again_only_when_they_changed(graph):
    manifest = graph._manifest
    graph.branches.create("side")
    known = manifest.registered_branches()
    insert(graph, NOTE, {"a": {}})
    assert manifest.registered_branches() is known
    og.open(graph.uri).tags.create("t")
    assert manifest.registered_branches() is not known
    assert manifest.registered_branches() == known
    assert [tag.name for tag in manifest.tags().values()] == ["t"]


def test_names_this_process_changed_are_known_without_reading_them(graph, monkeypatch):
    manifest = graph._manifest
    graph.branches.create("a")
    graph.tags.create("t")
    assert list(manifest.tags()) == ["t"]
    read = []
    monkeypatch.setattr(LineageState, "names", lambda state, kind: read.append(kind))
    branch = graph.branches.create("b")
    assert (list(manifest.registered_branches()), list(manifest.tags())) == (["a", "b"], ["t"])
    assert manifest.registered_branches()["b"] == branch
    assert read == []
    monkeypatch.undo()
    graph.branches.delete("a")
    graph.tags.delete("t")
    fresh = og.open(graph.uri)._manifest
    assert (manifest.registered_branches(), manifest.tags()) == (
        fresh.registered_branches(),
        fresh.tags(),
    )
    assert manifest.registered_branches() == {"b": branch}


def test_names_are_found_however_much_is_merged_around_them(graph, monkeypatch):
    monkeypatch.setattr(lineage, "MAX_TAIL_FRAGMENTS", 3)
    monkeypatch.setattr(lineage, "TIER_GROWTH", 2)
    expected = set()
    for number in range(60):
        if number % 7 == 0:
            graph.branches.create(f"b{number}")
            expected.add(f"b{number}")
        if number % 9 == 0:
            graph.tags.create(f"t{number}")
        if number % 20 == 19:
            graph.branches.delete(gone := min(expected))
            expected.remove(gone)
        upsert(graph, NOTE, {"n": {"text": str(number)}})
        fresh = og.open(graph.uri)
        assert set(fresh.branches.list()) == {"main", *expected}
        assert len(fresh.tags.list()) == number // 9 + 1
    assert fresh.verify().ok


def test_names_are_looked_for_in_few_fragments_of_a_long_history(graph):
    for number in range(20):
        graph.branches.create(f"b{number}")
    grow(graph, NOTE, 500)
    for number in range(40):
        upsert(graph, NOTE, {"n": {"text": str(number)}})
    state = og.open(graph.uri)._manifest.main.state()
    looked_at = [f for f in state.handle.get_fragments() if f.fragment_id >= state.head.names]
    assert sum(fragment.count_rows() for fragment in looked_at) < 80
    assert len(state.names("graph_branch")) == 20


def test_schema_that_is_not_there_is_corruption(graph):
    with pytest.raises(GraphCorrupt, match="accepted schema nothing is missing"):
        graph._manifest.schema("nothing", graph._manifest.main.state())


def test_descendants_of_a_branch_that_goes_are_handed_to_its_parent():
    branches = {
        name: Branch(name=name, lineage_id=name, parent=parent)
        for name, parent in (("a", "main"), ("b", "a"), ("c", "b"), ("d", "a"))
    }
    left = without_branch(branches, "a")
    assert {name: branch.parent for name, branch in left.items()} == {
        "b": "main",
        "c": "b",
        "d": "main",
    }
