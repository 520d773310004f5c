"""What differs between states: entities with old and new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from omnigraph.notebook.elements import Html, cut, element, join, plural
from omnigraph.notebook.history import commit_line
from omnigraph.notebook.style import badge, document, head, note
from omnigraph.notebook.values import commit_id, moment, value

MAX_CHANGES = 20
"""Entities of a diff that are shown."""
MAX_PROPERTIES = 12
_TONES = {"insert": "add", "update": "change", "delete": "remove"}
_MISSING = object()


def changes_html(changes: Sequence[Mapping[str, Any]], *, total: int | None, more: bool) -> str:
    """Return changes; there are `total` of them, or an unknown number `more` than these."""
    if not changes:
        return document(head("Changes", None, badge("none")))
    number = len(changes) if total is None else total
    about = f"more than {number:,} entities" if more else plural(number, "entity", "entities")
    shown = [change_block(change) for change in changes[:MAX_CHANGES]]
    rest = number - len(shown)
    remark = None
    if more:
        remark = note(f"the first {len(shown)} are shown; iterate for all")
    elif rest:
        remark = note(f"{plural(rest, 'more entity', 'more entities')} not shown")
    return document(head("Changes", None, badge(about)), *shown, remark)


def commit_changes_html(
    cause: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], *, more: bool
) -> str:
    """Return what a commit changed, with the commit; `more` if these are not all of it."""
    number = plural(len(changes), "entity", "entities")
    shown = [change_block(change) for change in changes[:MAX_CHANGES]]
    rest = len(changes) - len(shown)
    who = cause.get("actor_id")
    title = head(
        "Changes",
        None,
        badge(number),
        badge(join("of ", commit_id(cause["graph_commit_id"]))),
        element("span", moment(cause["authored_at"]), class_="mute"),
        None if who is None else element("span", join("by ", who), class_="mute"),
    )
    remarks = [
        note(f"{plural(rest, 'more entity', 'more entities')} not shown") if rest else None,
        note("there are more pages") if more else None,
    ]
    return document(title, *shown, *remarks)


def change_html(change: Mapping[str, Any]) -> str:
    """Return one change as an output."""
    return document(change_block(change))


def history_html(changes: Sequence[Mapping[str, Any]], unknown_before: Sequence[str]) -> str:
    """Return the changes of an entity with their commits, the newest first."""
    shown = [
        element("div", commit_line(one["commit"]), change_block(one), class_="entity")
        for one in changes[:MAX_CHANGES]
    ]
    rest = len(changes) - len(shown)
    more = note(f"{plural(rest, 'more change')} not shown") if rest else None
    unknown = None
    if unknown_before:
        unknown = note(
            f"Older versions were cleaned up: unknown before {', '.join(unknown_before)}."
        )
    none = None if changes else note("no changes")
    count = badge(plural(len(changes), "change"))
    return document(head("History", None, count), *shown, more, none, unknown)


def change_block(change: Mapping[str, Any]) -> Html:
    """Return the entity of a change, and its old and new values side by side."""
    type_ = change["type"]
    name = type_["name"] if isinstance(type_, Mapping) else type_
    title = element(
        "div",
        badge(change["op"], _TONES[change["op"]]),
        element("span", name, class_="kind"),
        element("bdi", cut(change["id"], 200), class_="title"),
        class_="head",
    )
    images = [_flat(change.get(side)) for side in ("before", "after")]
    return element("div", title, _values(*images), class_="entity")


def _flat(image: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if image is None:
        return None
    return {**(image.get("endpoints") or {}), **image["properties"]}


def _values(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Html:
    """Return the values that differ, or all of an entity that was inserted or deleted."""
    one, other = before or {}, after or {}
    names = [
        name
        for name in dict.fromkeys([*one, *other])
        # Zero and negative zero are equal and not the same.
        if repr(one.get(name, _MISSING)) != repr(other.get(name, _MISSING))
    ]
    if before is None or after is None:
        names = [name for name in names if (one or other)[name] is not None]
    sides = [(before, "before", "old"), (after, "after", "new")]
    there = [side for side in sides if side[0] is not None]
    rows = [
        element(
            "tr",
            element("td", name, class_="mute"),
            *(element("td", value((image or {}).get(name)), class_=c) for image, _, c in there),
        )
        for name in names[:MAX_PROPERTIES]
    ]
    titles = [
        element("th", title, scope="col") for title in ("property", *(t for _, t, _ in there))
    ]
    shown = element("table", element("thead", element("tr", *titles)), element("tbody", *rows))
    rest = len(names) - len(rows)
    remark = f"{plural(rest, 'more property', 'more properties')} not shown" if rest else None
    return join(
        element("div", shown, class_="scroll") if rows else None,
        None if remark is None else note(remark),
    )


def conflict_blocks(conflicts: Sequence[Mapping[str, Any]]) -> list[Html]:
    """Return conflicts, each with the values of base, source and target side by side."""
    blocks = [_conflict(conflict) for conflict in conflicts[:MAX_CHANGES]]
    rest = len(conflicts) - len(blocks)
    if rest:
        blocks.append(note(f"{plural(rest, 'more conflict')} not shown"))
    return blocks


def _conflict(conflict: Mapping[str, Any]) -> Html:
    sides = {side: _flat(conflict.get(side)) for side in ("base", "source", "target")}
    title = element(
        "div",
        badge(str(conflict["kind"]).replace("_", " "), "remove"),
        element("span", conflict["type_name"] or "", class_="kind"),
        element("bdi", cut(str(conflict["entity_id"] or ""), 200), class_="title"),
        class_="head",
    )
    message = element("div", conflict["message"], class_="text")
    rows = []
    for name in dict.fromkeys(n for image in sides.values() for n in image or ()):
        ones = [None if image is None else image.get(name) for image in sides.values()]
        if len({repr(one) for one in ones}) > 1:
            cells = [
                element("td", _side(image, name), class_="same" if one == ones[0] else "new")
                for image, one in zip_longest(sides.values(), ones)
            ]
            rows.append(element("tr", element("td", name, class_="mute"), *cells))
    if not rows:
        return element("div", title, message, class_="entity")
    titles = [element("th", side, scope="col") for side in ("property", *sides)]
    rest = len(rows) - MAX_PROPERTIES
    shown = element(
        "table", element("thead", element("tr", *titles)), element("tbody", *rows[:MAX_PROPERTIES])
    )
    more = (
        note(f"{plural(rest, 'more property', 'more properties')} not shown") if rest > 0 else None
    )
    return element(
        "div", title, message, element("div", shown, class_="scroll"), more, class_="entity"
    )


def _side(image: Mapping[str, Any] | None, name: str) -> Html:
    if image is None:
        return element("span", "absent", class_="none")
    return value(image.get(name))
