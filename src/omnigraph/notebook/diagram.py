"""Drawings as SVG: the types of a schema, and the nodes and edges of a graph."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.notebook.elements import Html, cut, element, join, plural, short, visible
from omnigraph.notebook.layout import Place, lay_out
from omnigraph.notebook.style import note, series

MAX_NODES = 60
"""Nodes of a drawing; a reader cannot follow more of them."""
_MARGIN = 26


@dataclass(frozen=True, slots=True)
class Box:
    """A node to draw, as a box or a disc, with one or two lines of text and a full description."""

    title: str
    about: str
    series: int
    subtitle: str | None = None


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from one box to another."""

    source: int
    target: int
    title: str
    about: str
    state: str = ""


def schema_diagram(types: Sequence[Mapping[str, Any]]) -> Html | None:
    """Return node types as boxes and edge types as arrows; None if there is no node type."""
    nodes = [type_ for type_ in types if type_["kind"] == "node"]
    shown = {type_["name"]: place for place, type_ in enumerate(nodes[:MAX_NODES])}
    boxes = [
        Box(
            title=type_["name"],
            about=type_["name"],
            series=series(type_["name"]),
            subtitle=None if type_.get("rows") is None else f"{type_['rows']:,}",
        )
        for type_ in nodes[:MAX_NODES]
    ]
    arrows = [
        Arrow(
            source=shown[type_["src"]],
            target=shown[type_["dst"]],
            title=type_["name"],
            about=f"{type_['name']}: {type_['src']} → {type_['dst']}",
        )
        for type_ in types
        if type_["kind"] == "edge" and type_["src"] in shown and type_["dst"] in shown
    ]
    if not boxes:
        return None
    label = f"Schema: {plural(len(boxes), 'node type')}, {plural(len(arrows), 'edge type')}"
    rest = len(nodes) - len(boxes)
    more = note(f"{plural(rest, 'more node type')} not shown") if rest else None
    return join(_draw_boxes(boxes, arrows, label), more)


def _draw_boxes(boxes: Sequence[Box], arrows: Sequence[Arrow], label: str) -> Html:
    height = 46.0
    widths = [max(88.0, min(len(box.title), 24) * 8.4 + 30) for box in boxes]
    links = [(arrow.source, arrow.target) for arrow in arrows]
    room = [width + 36 for width in widths]
    places = lay_out(room, links, height=height + 34, distance=150)
    frames = [(width, height) for width in widths]
    drawn = [
        element(
            "g",
            element("title", box.about),
            element(
                "rect",
                x=_number(place.x - width / 2),
                y=_number(place.y - height / 2),
                width=_number(width),
                height=_number(height),
                rx=10,
                class_="box",
            ),
            _text(place.x, place.y + (5 if box.subtitle is None else -2), short(box.title, 24), 14),
            None if box.subtitle is None else _text(place.x, place.y + 15, box.subtitle, 12, "sub"),
            class_=f"s{box.series}",
        )
        for box, place, width in zip(boxes, places, widths, strict=True)
    ]
    lines, names = _arrows(arrows, places, frames, 12)
    return _svg(label, places, frames, [*lines, *names, *drawn])


def graph_drawing(nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> Html:
    """Return nodes as discs with their labels and edges as arrows, coloured by type.

    Nodes have `type`, `id`, `label` and maybe a `state`; edges `type` and the types and IDs of
    their ends.
    """
    if not nodes:
        return note("no nodes")
    degree = Counter[tuple[str, str]]()
    for edge in edges:
        degree[edge["src_type"], edge["src"]] += 1
        degree[edge["dst_type"], edge["dst"]] += 1
    keyed = {(node["type"], node["id"]): node for node in nodes}
    # The nodes with most edges say most, and keep the drawing connected.
    order = sorted(keyed, key=lambda key: -degree[key])[:MAX_NODES]
    places_of = {key: place for place, key in enumerate(order)}
    arrows = [
        Arrow(
            places_of[edge["src_type"], edge["src"]],
            places_of[edge["dst_type"], edge["dst"]],
            edge["type"],
            f"{cut(edge['src'], 80)} → {edge['type']} → {cut(edge['dst'], 80)}",
        )
        for edge in edges
        if {(edge["src_type"], edge["src"]), (edge["dst_type"], edge["dst"])} <= places_of.keys()
    ]
    labels = [str(keyed[key].get("label") or keyed[key]["id"]) for key in order]
    room = [max(40.0, min(len(label), 22) * 6.6 + 12) for label in labels]
    links = [(arrow.source, arrow.target) for arrow in arrows]
    places = lay_out(room, links, height=56, distance=92)
    radii = [min(15.0, 7 + math.sqrt(degree[key]) * 1.6) for key in order]
    frames = [(radius * 2, radius * 2) for radius in radii]
    discs = [
        element(
            "g",
            element("title", f"{key[0]} {cut(key[1], 80)}"),
            element(
                "circle",
                cx=_number(place.x),
                cy=_number(place.y),
                r=_number(radius),
                class_="box",
                stroke_width=2.5,
            ),
            _text(place.x, place.y + radius + 13, short(label, 22), 11.5, "halo"),
            class_=f"s{series(key[0])}",
        )
        for key, place, radius, label in zip(order, places, radii, labels, strict=True)
    ]
    lines, names = _arrows(arrows, places, frames, 9.5)
    named = names if len(order) <= MAX_NODES // 2 else []
    title = f"Graph: {plural(len(order), 'node')}, {plural(len(arrows), 'edge')}"
    spans = [(width, 60.0) for width in room]
    rest = len(keyed) - len(order)
    more = note(f"{plural(rest, 'more node')} not shown") if rest else None
    return join(
        _legend(sorted({key[0] for key in keyed})),
        _svg(title, places, spans, [*lines, *named, *discs]),
        more,
    )


def _legend(types: Sequence[str]) -> Html:
    shown = [
        element(
            "span",
            element("span", class_=f"dot s{series(name)}"),
            element("bdi", cut(name, 40)),
            class_="badge",
        )
        for name in types[:12]
    ]
    rest = len(types) - len(shown)
    return element("div", *shown, f"and {rest} more" if rest else None, class_="head")


def _arrows(
    arrows: Sequence[Arrow],
    places: Sequence[Place],
    frames: Sequence[tuple[float, float]],
    size: float,
) -> tuple[list[Html], list[Html]]:
    """Return the lines of arrows, and their names; several between two boxes are bent apart."""
    # Outputs of one page share their ids: an equal id has an equal arrow head.
    tip = f"omnigraph-tip-{size:g}".replace(".", "-")
    marker = element(
        "defs",
        element(
            "marker",
            element("path", d="M0 .6 7.4 4 0 7.4z", class_="tip"),
            id=tip,
            viewBox="0 0 8 8",
            refX=7,
            refY=4,
            markerWidth=7,
            markerHeight=7,
            orient="auto",
        ),
    )
    lines, names = [marker], []
    seen = Counter[frozenset[int]]()
    for arrow in arrows:
        pair = frozenset((arrow.source, arrow.target))
        path, middle = _curve(arrow, places, frames, seen[pair])
        seen[pair] += 1
        lines.append(
            element(
                "path",
                d=path,
                class_="edge",
                marker_end=Html(f"url(#{tip})"),
            )
        )
        names.append(
            element(
                "g",
                element("title", visible(arrow.about)),
                _text(middle.x, middle.y + 4, short(arrow.title, 24), size, "sub halo"),
            )
        )
    return lines, names


def _curve(
    arrow: Arrow, places: Sequence[Place], frames: Sequence[tuple[float, float]], nth: int
) -> tuple[str, Place]:
    """Return the path of the n-th arrow between two boxes, and where its name stands."""
    start, end = places[arrow.source], places[arrow.target]
    if arrow.source == arrow.target:
        width, height = frames[arrow.source]
        x, y, rise = start.x + width / 4, start.y - height / 2, 30 + nth * 20
        points = f"{_number(x - 18)} {_number(y - rise)} {_number(x + 18)} {_number(y - rise)}"
        path = f"M{_number(x - 10)} {_number(y)} C{points} {_number(x + 10)} {_number(y - 3)}"
        return path, Place(x, y - rise * 0.75 - 12)
    bend = (-1 if nth % 2 else 1) * math.ceil(nth / 2) * 44.0
    bend *= 1 if arrow.source < arrow.target else -1
    dx, dy = end.x - start.x, end.y - start.y
    length = math.hypot(dx, dy) or 1.0
    via = Place(
        (start.x + end.x) / 2 - dy / length * bend, (start.y + end.y) / 2 + dx / length * bend
    )
    one = _border(start, frames[arrow.source], via, 0)
    other = _border(end, frames[arrow.target], via, 4)
    path = (
        f"M{_number(one.x)} {_number(one.y)} Q{_number(via.x)} {_number(via.y)} "
        f"{_number(other.x)} {_number(other.y)}"
    )
    return path, Place((one.x + 2 * via.x + other.x) / 4, (one.y + 2 * via.y + other.y) / 4)


def _border(middle: Place, frame: tuple[float, float], towards: Place, gap: float) -> Place:
    """Return where the line from the middle of a box to a point leaves the box."""
    dx, dy = towards.x - middle.x or 0.01, towards.y - middle.y or 0.01
    scale = min((frame[0] / 2 + gap) / abs(dx), (frame[1] / 2 + gap) / abs(dy))
    return Place(middle.x + dx * scale, middle.y + dy * scale)


def _text(x: float, y: float, text: str, size: float, class_: str | None = None) -> Html:
    return element("text", text, x=_number(x), y=_number(y), font_size=size, class_=class_)


def _svg(
    label: str,
    places: Sequence[Place],
    frames: Sequence[tuple[float, float]],
    parts: Sequence[Html],
) -> Html:
    pairs = list(zip(places, frames, strict=True))
    left = min(place.x - frame[0] / 2 for place, frame in pairs) - _MARGIN
    right = max(place.x + frame[0] / 2 for place, frame in pairs) + _MARGIN
    top = min(place.y - frame[1] / 2 for place, frame in pairs) - _MARGIN - 16
    bottom = max(place.y + frame[1] / 2 for place, frame in pairs) + _MARGIN
    box = " ".join(_number(one) for one in (left, top, right - left, bottom - top))
    width = _number(right - left)
    drawn = element(
        "svg",
        *parts,
        viewBox=box,
        role="img",
        aria_label=label,
        style=f"max-width:{width}px;min-width:min({width}px,560px)",
    )
    return element("div", drawn, class_="scroll")


def _number(one: float) -> str:
    """Return a coordinate, short.

    >>> _number(12.0), _number(-0.04), _number(3.14159)
    ('12', '0', '3.1')
    """
    return f"{round(one, 1) + 0.0:g}"
