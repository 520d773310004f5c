"""Graphs and their schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.notebook.diagram import schema_diagram
from omnigraph.notebook.elements import Html, element, join, plural
from omnigraph.notebook.history import commit_line
from omnigraph.notebook.style import badge, document, head, note, section
from omnigraph.notebook.values import facts, table


def graph_html(graph: Mapping[str, Any]) -> str:
    """Return a graph: where it is, its types with counts, its newest commit.

    `problem` is why its state could not be read.
    """
    actor = graph["actor"]
    title = head(
        "Graph",
        graph["uri"],
        badge(join("on ", graph["branch"]), "accent"),
        None if actor is None else badge(join("as ", actor)),
        badge("read-only") if graph["mode"] == "ro" else None,
    )
    if "problem" in graph:
        return document(title, note(badge("not readable", "remove"), " ", graph["problem"]))
    commit = graph.get("commit")
    newest = None if commit is None else section("Newest commit", commit_line(commit))
    return document(title, *_types(graph["types"]), newest)


def snapshot_html(branch: str, commit_id: str, types: Sequence[Mapping[str, Any]]) -> str:
    """Return a state with its types and counts."""
    title = head("Snapshot", None, badge(join("of ", branch), "accent"))
    return document(title, facts({"commit": element("code", commit_id)}), *_types(types))


def types_html(types: Sequence[Mapping[str, Any]]) -> str:
    """Return the types of a state and their counts."""
    return document(head("Types"), *_types(types))


def _types(types: Sequence[Mapping[str, Any]]) -> list[Html | None]:
    if not types:
        return [note("no types")]
    counted = {
        kind: sum(type_["rows"] or 0 for type_ in types if type_["kind"] == kind)
        for kind in ("node", "edge")
    }
    numbers = [badge(plural(number, kind)) for kind, number in counted.items()]
    rows = [(type_["name"], type_["kind"], *_ends(type_), type_["rows"]) for type_ in types]
    listed = table(("type", "kind", "from", "to", "entities"), rows)
    return [
        element("div", *numbers, class_="head"),
        schema_diagram(types),
        element("details", element("summary", plural(len(types), "type")), listed),
    ]


def _ends(type_: Mapping[str, Any]) -> tuple[object, object]:
    if type_["kind"] == "node":
        return join(), join()
    return type_["src"], type_["dst"]


def schema_html(types: Sequence[Mapping[str, Any]]) -> str:
    """Return the types of a schema: a diagram, and each property with its type."""
    kinds = {kind: sum(type_["kind"] == kind for type_ in types) for kind in ("node", "edge")}
    numbers = [badge(plural(number, f"{kind} type")) for kind, number in kinds.items()]
    blocks = [_type_block(type_) for type_ in types]
    listed = element("details", element("summary", "properties"), *blocks)
    if not types:
        return document(head("Schema", None, *numbers))
    return document(head("Schema", None, *numbers), schema_diagram(types), listed)


def _type_block(type_: Mapping[str, Any]) -> Html:
    ends = f"{type_['src']} → {type_['dst']}" if type_["kind"] == "edge" else None
    title = element(
        "div",
        element("span", type_["kind"], class_="kind"),
        element("span", type_["name"], class_="title"),
        None if ends is None else element("span", ends, class_="mute"),
        class_="head",
    )
    properties = type_["properties"]
    columns = ("property", "type", "rules")
    rows = [(one["name"], one["type"], one["rules"] or join()) for one in properties]
    return element("div", title, table(columns, rows) if rows else None, class_="entity")
