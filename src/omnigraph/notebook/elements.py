"""HTML elements from texts that are not trusted."""

from __future__ import annotations

import re
from html import escape

MAX_TEXT = 400
"""Characters of a text that are shown."""

_HIDDEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b"
    "\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e007f]"
)
"""Signs that cannot be seen or that change how other text is drawn; they are shown by number."""
_VOID = {"path", "rect", "circle", "line"}


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def visible(text: str) -> str:
    r"""Return a text without signs that hide or reorder others.

    >>> visible("safe\u202egnp.exe")
    'safe⟨202E⟩gnp.exe'
    """
    return _HIDDEN.sub(lambda sign: f"⟨{ord(sign[0]):04X}⟩", text)


def cut(text: str, most: int = MAX_TEXT) -> str:
    """Return the start of a text, with what is missing.

    >>> cut("abcdef", 3)
    'abc… (3 more characters)'
    """
    if len(text) <= most:
        return text
    rest = len(text) - most
    return f"{text[:most]}… ({rest:,} more character{'s' if rest > 1 else ''})"


def short(text: str, most: int) -> str:
    """Return the start of a text for a place that has no room for more."""
    return visible(text if len(text) <= most else f"{text[: most - 1]}…")


def html(child: object, most: int = MAX_TEXT) -> Html:
    """Return a child of an element as HTML; texts are cut, made visible and escaped."""
    if isinstance(child, Html):
        return child
    return Html(escape(visible(cut(str(child), most))))


def join(*children: object) -> Html:
    """Return children one after the other; None is nothing."""
    return Html("".join(html(child) for child in children if child is not None))


def element(name: str, *children: object, **attributes: object) -> Html:
    """Return an element; `class_` and `for_` lose the underscore, None is no attribute.

    >>> element("b", "<script>", class_="name")
    '<b class="name">&lt;script&gt;</b>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html(value, 2_000)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> plural(1, "row"), plural(1200, "row"), plural(0, "property", "properties")
    ('1 row', '1,200 rows', '0 properties')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def public_uri(uri: str) -> str:
    """Return an address without the name and password that it may carry.

    >>> public_uri("https://ada:secret@example.org/graphs/crm?token=1")
    'https://example.org/graphs/crm'
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return uri
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
