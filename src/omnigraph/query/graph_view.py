"""A view of nodes and edges for notebooks: the canvas of Studio, or a drawing without scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, TypeAlias

from omnigraph.errors import Category, OmniError
from omnigraph.notebook.elements import plural
from omnigraph.notebook.results import subgraph_html

SCRIPT = files("omnigraph.notebook") / "canvas" / "canvas.js"
"""The canvas: a module that `make ui` builds."""
_INSTALL = "pip install 'omnigraph[notebook]'"


class GraphView:
    """Nodes and edges that a notebook shows.

    With the packages of `omnigraph[notebook]` it is a canvas, on which nodes are moved, selected
    and zoomed. Without them, and where no script runs, it is a drawing.
    """

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self._graph = graph
        self._widget: Any = None

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The nodes, each with `type`, `id` and `label`."""
        return [dict(node) for node in self._graph["nodes"]]

    @property
    def edges(self) -> list[dict[str, Any]]:
        """The edges, each with `type` and the types and IDs of its ends."""
        return [dict(edge) for edge in self._graph["edges"]]

    def __repr__(self) -> str:
        nodes, edges = len(self._graph["nodes"]), len(self._graph["edges"])
        return f"<GraphView: {plural(nodes, 'node')}, {plural(edges, 'edge')}>"

    def widget(self) -> Any:  # noqa: ANN401 - a class of an optional package
        """Return the canvas as an ipywidget.

        Raises:
            OmniError: `notebook_missing` if a package is not installed, or the canvas not built.
        """
        if self._widget is None:
            self._widget = _widget_type()(nodes=self.nodes, edges=self.edges)
        return self._widget

    def _repr_html_(self) -> str:
        return subgraph_html(self._graph)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """Return the drawing, and the canvas where it can be had; a notebook shows the best."""
        plain = {"text/plain": repr(self)}
        try:
            canvas = self.widget()._repr_mimebundle_()
        except OmniError as error:
            remark = f"This is a drawing: {error.message}."
            return {**plain, "text/html": subgraph_html(self._graph, remark)}
        # A widget returns its data alone, or with metadata.
        data = canvas[0] if isinstance(canvas, tuple) else canvas
        return {**data, **plain, "text/html": self._repr_html_()}


ReadGraph: TypeAlias = Callable[[int | None], GraphView]
"""Reads a view, with a limit of nodes or the default one."""


@cache
def _widget_type() -> Any:  # noqa: ANN401 - a class of an optional package
    try:
        anywidget, traitlets = import_module("anywidget"), import_module("traitlets")
    except ImportError as error:
        raise _missing(f"the canvas needs '{error.name}': {_INSTALL}") from error
    if not SCRIPT.is_file():
        raise _missing("the canvas is not built: run `make ui`")
    members = {
        "_esm": SCRIPT.read_text(encoding="utf-8"),
        "nodes": traitlets.List().tag(sync=True),
        "edges": traitlets.List().tag(sync=True),
        "__doc__": "Nodes and edges on the canvas of Studio.",
    }
    return type("GraphCanvas", (anywidget.AnyWidget,), members)


def _missing(message: str) -> OmniError:
    return OmniError(message, code="notebook_missing", category=Category.INVALID)
