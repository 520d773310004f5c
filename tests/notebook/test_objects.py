"""Notebooks show every object that a person meets, embedded or remote, as it was looked at.

The files of `reference/` are the outputs that were looked at in a browser, without their style.
After a wanted change, `OMNIGRAPH_WRITE_REFERENCE=1` writes them again.
"""

import os
import pickle
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.query.graph_view import GraphView
from tests.support.deployments import ACTOR, TOKEN, serving_graphs
from tests.support.notebook_objects import (
    HARBOUR,
    ROUTES,
    Outline,
    local_objects,
    shown_objects,
    structure,
)

REFERENCE = Path(__file__).parent / "reference"
WRITES = os.environ.get("OMNIGRAPH_WRITE_REFERENCE") == "1"


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs") / "harbour"
    og.init(folder, HARBOUR / "schema.pg")
    return folder


@pytest.fixture(scope="module")
def embedded(empty, tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedded") / "harbour"
    graph = og.open(shutil.copytree(empty, folder), actor=ACTOR)
    shown = {name: (repr(one), one._repr_html_()) for name, one in shown_objects(graph)}
    return graph, shown


@contextmanager
def remote_graph(folder, where):
    with serving_graphs([shutil.copytree(folder, where / "harbour")], 1, where) as server:
        graph = og.connect(server.url, token=TOKEN, graph="harbour")
        try:
            yield graph
        finally:
            graph.close()


def test_outputs_are_those_that_were_looked_at(embedded):
    _, shown = embedded
    differ = []
    for name, (_, html) in shown.items():
        file = REFERENCE / f"{name.replace(' ', '-')}.html"
        if WRITES:
            file.write_text(structure(html), encoding="utf-8")
        if not file.is_file() or file.read_text(encoding="utf-8") != structure(html):
            differ.append(name)
    assert differ == []
    assert {f"{name.replace(' ', '-')}.html" for name in shown} == {
        file.name for file in REFERENCE.iterdir()
    }


def test_remote_objects_are_shown_like_embedded_ones(empty, embedded, tmp_path):
    _, shown = embedded
    with remote_graph(empty, tmp_path) as graph:
        remote = {name: one._repr_html_() for name, one in shown_objects(graph)}
        about = graph._repr_html_()
    assert {name: structure(html) for name, html in remote.items()} == {
        name: structure(html) for name, (_, html) in shown.items()
    }
    assert TOKEN not in about
    assert "8 nodes" in about


def test_outputs_hold_only_elements_without_scripts(embedded):
    graph, shown = embedded
    outputs = {name: html for name, (_, html) in shown.items()}
    outputs |= {name: one._repr_html_() for name, one in local_objects(graph)}
    assert {name: found for name, html in outputs.items() if (found := Outline(html).foreign)} == {}
    assert {name for name, html in outputs.items() if len(Outline(html).text) < 10} == set()


def test_plain_representations_fit_on_a_line(embedded):
    graph, _ = embedded
    assert repr(graph.query(ROUTES)) == "<Result routes: 3 rows of a.code, b.code>"
    assert repr(graph) == f"<Graph {graph.uri} on main>"
    assert repr(graph.schema) == "<Schema of main>"
    assert repr(graph.query(ROUTES).graph()) == "<GraphView: 4 nodes, 3 edges>"
    assert repr(graph.diff("survey", "main")) == "<Difference: iterate for its changes>"


def test_a_graph_that_cannot_be_read_says_why(empty):
    text = """version: 1
groups: { readers: [act-ada] }
rules:
  - id: reading
    allow: { actors: { group: readers }, actions: [read] }
"""
    stranger = og.open(empty, policy=text, actor="act-eve")
    shown = Outline(stranger._repr_html_()).text
    assert "not readable" in shown
    assert "act-eve" in shown


def test_showing_a_difference_consumes_nothing(embedded):
    graph, _ = embedded
    first_commit = graph.commits.list()[-1].id
    whole = list(graph.diff(first_commit, "main"))
    difference = graph.diff(first_commit, "main")
    first = next(difference)
    shown = Outline(difference._repr_html_()).text
    assert f"{len(whole) - 1} entities" in shown
    assert [first, *difference] == whole


def test_long_results_and_differences_say_how_much_is_missing(tmp_path):
    graph = og.init(tmp_path / "g", "node N { name: String @key }")
    before = graph.snapshot().commit_id
    graph.insert("N", [{"name": f"n{number:02}"} for number in range(30)])
    result = graph.query("query q() { match { $n: N } return { $n.name } order { $n.name } }")
    shown = Outline(result._repr_html_()).text
    assert "n19" in shown
    assert "n20" not in shown
    assert "10 more rows not shown" in shown
    difference = graph.diff(before, "main")
    assert "more than 20 entities" in Outline(difference._repr_html_()).text
    assert len(list(difference)) == 30
    page = graph.commits.changes(graph.commits.list(limit=1)[0].id)
    assert "10 more entities not shown" in Outline(page._repr_html_()).text


def test_the_graph_of_a_result_is_that_of_its_state(embedded, tmp_path):
    graph = og.init(tmp_path / "g", "node N { name: String @key } edge E: N -> N")
    graph.insert("N", [{"name": "a"}, {"name": "b"}])
    result = graph.query("query q() { match { $n: N } return { $n.name } }")
    graph.insert("N", [{"name": "c"}])
    assert [node["id"] for node in result.graph().nodes] == ["a", "b"]
    assert [node["id"] for node in result.graph(limit=1).nodes] == ["a"]
    assert isinstance(result.graph(), GraphView)


def test_a_pickled_result_keeps_its_rows(embedded):
    graph, _ = embedded
    result = graph.query(ROUTES)
    copy = pickle.loads(pickle.dumps(result))
    assert copy.rows == result.rows
    with pytest.raises(og.InvalidInput, match="not bound to a graph") as caught:
        copy.graph()
    assert caught.value.code == "result_unbound"
