"""A graph opened read-only never writes, whatever is read."""

import contextlib

import pytest

import omnigraph.graph as og
from omnigraph.errors import InvalidInput
from tests.support.graphs import (
    NOTE,
    SHIP,
    Change,
    commit_with_intent,
    delete,
    dump,
    insert,
    upsert,
)


def stored(root):
    return sorted(
        (str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")
    )


@pytest.fixture
def written(graph):
    """A graph with history, branches, a tag, and an operation in flight that died."""
    first = insert(graph, NOTE, {"a": {"text": "x"}, "b": {"text": "y"}})
    graph.branches.create("side/line")
    upsert(graph, NOTE, {"a": {"text": "z"}}, branch="side/line")
    insert(graph, SHIP, {"s": {"name": "Aurora"}})
    delete(graph, NOTE, ["b"])
    graph.tags.create("old", at=first.id)

    def die(step):
        if step == "intent: complete":
            raise KeyboardInterrupt

    graph._manifest.datasets.observe = die
    with contextlib.suppress(KeyboardInterrupt):
        commit_with_intent(graph, Change("insert", NOTE, {"c": {}}))
    return graph


def read_everything(graph):
    for at in ("main", "side/line", "old", 2, graph.commits.list()[1].id):
        dump(graph, at)
        graph.entity_at("Note", "a", at)
    for branch in graph.branches.list():
        graph.branches.get(branch)
        for commit in graph.commits.list(branch):
            graph.commits.get(commit.id)
    graph.commits.merge_base("main", "side/line")
    graph.tags.list()
    graph.recoveries()
    graph.cleanup(keep=1)
    graph.as_actor("act-ada").snapshot()
    assert graph.verify().ok


def test_reading_everything_writes_nothing(written, tmp_path):
    before = stored(tmp_path)
    graph = og.open(written.uri, "ro")
    assert graph.mode == "ro"
    read_everything(graph)
    assert stored(tmp_path) == before


@pytest.mark.parametrize(
    "write",
    [
        lambda graph: graph.branches.create("b"),
        lambda graph: graph.branches.delete("side/line"),
        lambda graph: graph.tags.create("t"),
        lambda graph: graph.tags.delete("old"),
        lambda graph: graph.recover(),
        lambda graph: graph.cleanup(keep=1, confirm=True),
        lambda graph: graph.as_actor("act-ada").branches.create("b"),
    ],
    ids=["branch", "unbranch", "tag", "untag", "recover", "cleanup", "as actor"],
)
def test_every_write_is_refused(written, tmp_path, write):
    graph = og.open(written.uri, mode="ro")
    before = stored(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        write(graph)
    assert (caught.value.code, caught.value.message) == (
        "read_only",
        "this graph is open read-only",
    )
    assert stored(tmp_path) == before


@pytest.mark.parametrize("mode", ["", "r", "RW", "rw+"])
def test_other_modes_are_refused(graph, mode):
    with pytest.raises(InvalidInput, match="mode is 'rw' or 'ro'"):
        og.open(graph.uri, mode)
