"""Texts with the line ends of Unicode pass through every answer that is lines of JSON."""

import pytest

import omnigraph as og
from tests.support.serving import SCHEMA, serving

TEXT = "one\u2028two\u2029three\x85four\x0b\x0c\x1c\x1d\x1e\r\nfive"


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return a graph opened where it is stored, and as a server has it."""
    folder = tmp_path_factory.mktemp("lines") / "graph"
    graph = og.init(str(folder), schema=SCHEMA)
    graph.insert("Person", [{"name": "ann"}])
    graph.insert("Doc", [{"slug": TEXT, "title": TEXT}])
    with serving(f"--graph=g={folder}", "--unauthenticated") as server:
        yield graph, og.connect(server.url)


def test_an_export_has_the_same_lines(graphs):
    embedded, remote = graphs
    assert list(remote.export()) == list(embedded.export())


def test_a_baseline_has_the_same_lines(graphs):
    embedded, remote = graphs
    lines = list(remote.changes.baseline().lines)
    assert lines == list(embedded.changes.baseline().lines)


def test_a_difference_has_the_same_changes(graphs):
    embedded, remote = graphs
    first = embedded.commits.list()[-1].id
    assert list(remote.diff(first, "main")) == list(embedded.diff(first, "main"))
