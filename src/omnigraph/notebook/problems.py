"""Errors, and what they list: diagnostics, violations and conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.notebook.changes import conflict_blocks
from omnigraph.notebook.elements import Html, element, plural
from omnigraph.notebook.results import records
from omnigraph.notebook.style import badge, document, head, note, section
from omnigraph.notebook.values import MAX_ROWS


def error_html(name: str, error: Mapping[str, Any]) -> str:
    """Return an error with what it lists."""
    details = error["details"]
    title = head(name, None, badge(error["code"], "remove"), badge(error["category"]))
    message = element("div", error["message"], class_="text")
    lists = [
        section(key.replace("_", " "), *_listed(key, one))
        for key, one in details.items()
        if isinstance(one, list | tuple) and one and isinstance(one[0], Mapping)
    ]
    return document(title, message, *lists)


def _listed(key: str, members: Sequence[Mapping[str, Any]]) -> list[Html]:
    if key == "merge_conflicts":
        return conflict_blocks(members)
    return [records(members)]


def diagnostics_html(texts: Sequence[str]) -> str:
    """Return diagnostics with the lines they point to."""
    shown = [element("div", element("code", text), class_="entity") for text in texts[:MAX_ROWS]]
    rest = len(texts) - len(shown)
    more = note(f"{plural(rest, 'more diagnostic')} not shown") if rest else None
    state = badge(plural(len(texts), "diagnostic"), "change") if texts else badge("valid", "add")
    return document(head("Check", None, state), *shown, more)
