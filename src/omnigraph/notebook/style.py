"""The visual language of notebooks: the parts of an output, and their style element.

Colours follow the theme of the notebook where it states one (JupyterLab, VS Code, Colab),
otherwise that of the system.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from omnigraph.notebook.elements import Html, element, join

_FILE = Path(__file__).with_name("style.css")
_SERIES = 8


@cache
def _style() -> Html:
    """Return the style element, in as few characters as is easy."""
    text = re.sub(r"/\*.*?\*/", "", _FILE.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"\s*([{};,])\s*", r"\1", re.sub(r"\s+", " ", text))
    return Html(f"<style>{text.strip()}</style>")


def document(*parts: object) -> str:
    """Return an output of a notebook."""
    return str(element("div", _style(), *parts, class_="omnigraph"))


def head(kind: str, title: object = None, *badges: object) -> Html:
    """Return the first line: what it is, its name, its state."""
    named = None if title is None else element("span", title, class_="title")
    return element("div", element("span", kind, class_="kind"), named, *badges, class_="head")


def badge(text: object, tone: str = "") -> Html:
    """Return a state or a number in a pill; `tone` is `add`, `change`, `remove` or `accent`."""
    return element("span", text, class_=f"badge {tone}".strip())


def section(title: object, *parts: object) -> Html:
    """Return a part of an output with a title."""
    return join(element("div", title, class_="section"), *parts)


def note(*parts: object) -> Html:
    """Return a remark."""
    return element("div", *parts, class_="note")


def series(type_name: str) -> int:
    """Return the number of the colour of a type, as Studio has it."""
    total = 7
    for sign in type_name:
        total = (total * 31 + ord(sign)) % 2**32
    return total % _SERIES
