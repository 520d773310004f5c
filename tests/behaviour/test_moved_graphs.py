"""A graph holds no address of its own: copied or moved anywhere, it is the same graph."""

import shutil
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.storage import ObjectStore, locate
from tests.support.graph_locations import Root
from tests.support.graphs import NOTE, PORT, clean_at_once, dump, insert, make_graph, upsert
from tests.support.operations import observed


def build(uri, options):
    graph = make_graph(uri, options)
    insert(graph, NOTE, {"n": {"text": "main"}})
    graph.tags.create("first")
    for name, source in (("a", "main"), ("b", "a"), ("c", "b"), ("fresh", "c"), ("gone", "c")):
        graph.branches.create(name, from_=source)
        if name != "fresh":
            upsert(graph, NOTE, {"n": {"text": name}, name: {}}, branch=name)
    graph.tags.create("kept", at="gone")
    graph.branches.delete("gone")
    graph.branches.delete("b", force=True)
    upsert(graph, PORT, {"p": {"city": "Oslo"}})


@pytest.fixture
def graph(graph_root, templates):
    """A graph with branches of branches, tags, and descendants of what was deleted."""
    templates.copy("branches of branches", build, *graph_root)
    return open_at(graph_root)


@pytest.fixture(params=["folder", "bucket"])
def elsewhere(request, tmp_path):
    """Another place, of either kind."""
    if request.param == "folder":
        return Root(str(tmp_path / "elsewhere" / "deep"), {})
    server = request.getfixturevalue("s3")
    return Root(f"{server.fresh()}/deep", server.options)


def copy(source, target):
    """Copy every object, as `aws s3 sync` and `cp -r` do."""
    one, other = (ObjectStore(locate(root.uri, root.options)) for root in (source, target))
    for info in one.list(""):
        content = one.get(info.path)
        assert content is not None
        other.put(info.path, content)


def remove(root):
    objects = ObjectStore(locate(root.uri, root.options))
    objects.delete([info.path for info in objects.list("")])


def open_at(root):
    return og.open(root.uri, storage_options=root.options)


def test_copy_is_the_same_graph_and_needs_the_original_no_more(graph, graph_root, elsewhere):
    before, tags = observed(graph), {tag: dump(graph, tag) for tag in ("first", "kept")}
    copy(graph_root, elsewhere)
    remove(graph_root)
    copied = open_at(elsewhere)
    assert observed(copied) == before
    assert {tag: dump(copied, tag) for tag in tags} == tags
    for line in before.branches.values():
        for commit_id in line.commits:
            dump(copied, commit_id)
    assert copied.verify().problems == []


@pytest.mark.parametrize(
    ("graph_root", "elsewhere"), [("local", "bucket"), ("s3", "folder")], indirect=True
)
def test_copy_goes_on_as_the_original_would(graph, graph_root, elsewhere):
    copy(graph_root, elsewhere)
    copied = open_at(elsewhere)
    for name in copied.branches.list():
        upsert(copied, NOTE, {"n": {"text": f"{name} again"}}, branch=name)
    copied.branches.create("from/old", from_="kept")
    copied.branches.create("from/new", from_="c")
    upsert(copied, NOTE, {"n": {"text": "newest"}}, branch="from/new")
    copied.branches.delete("c", force=True)
    copied.tags.delete("first")
    clean_at_once(copied, keep=1)
    fresh = open_at(elsewhere)
    assert dump(fresh, "from/old")[NOTE]["n"] == {"text": "gone"}
    assert dump(fresh, "from/new")[NOTE]["n"] == {"text": "newest"}
    assert fresh.verify().problems == []
    assert open_at(graph_root).verify().ok
    assert open_at(graph_root).branches.list() == ["a", "c", "fresh", "main"]


def test_folder_that_was_moved_is_the_same_graph(tmp_path):
    graph = make_graph(str(tmp_path / "here"))
    graph.branches.create("side")
    insert(graph, NOTE, {"n": {"text": "side"}}, branch="side")
    before = observed(graph)
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert not Path(graph.uri).exists()
    moved = og.open(tmp_path / "there")
    assert observed(moved) == before
    insert(moved, NOTE, {"m": {}}, branch="side")
    assert moved.verify().problems == []
