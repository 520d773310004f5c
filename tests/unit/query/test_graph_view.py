"""The view of a graph is a canvas where its packages are installed, else a drawing."""

import sys

import pytest

import omnigraph as og
from omnigraph.query import graph_view
from omnigraph.query.graph_view import GraphView

GRAPH = {
    "graph_commit_id": "01M7SEVCAW8CJN7T8YFAE1QN0Y",
    "nodes": [{"type": "Port", "id": "AAR", "label": "Aarhus"}],
    "edges": [],
    "truncated": False,
}
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def fresh():
    graph_view._widget_type.cache_clear()
    yield
    graph_view._widget_type.cache_clear()


def test_without_the_package_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    view = GraphView(GRAPH)
    with pytest.raises(og.OmniError, match=r"pip install 'omnigraph\[notebook\]'") as caught:
        view.widget()
    assert caught.value.code == "notebook_missing"
    shown = view._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert "<svg" in shown["text/html"]
    assert "pip install" in shown["text/html"]


def test_without_the_built_canvas_it_is_a_drawing(monkeypatch, tmp_path):
    pytest.importorskip("anywidget")
    monkeypatch.setattr(graph_view, "SCRIPT", tmp_path / "canvas.js")
    assert "make ui" in GraphView(GRAPH)._repr_mimebundle_()["text/html"]


def test_the_canvas_comes_with_the_drawing(monkeypatch, tmp_path):
    pytest.importorskip("anywidget")
    script = tmp_path / "canvas.js"
    script.write_text("export default {}")
    monkeypatch.setattr(graph_view, "SCRIPT", script)
    view = GraphView(GRAPH)
    shown = view._repr_mimebundle_(include=None, exclude=None)
    assert set(shown) == {"text/plain", "text/html", WIDGET}
    assert shown[WIDGET]["model_id"] == view.widget().model_id
    assert "pip install" not in shown["text/html"]
    assert view.widget() is view.widget()
    assert view.widget().nodes == GRAPH["nodes"]
    assert view.widget()._esm == "export default {}"
