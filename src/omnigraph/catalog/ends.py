"""This module says how tables call the ends of an edge: `from` and `to`, or `src` and `dst`.

Edge types may have properties called `from` and `to`. Then `src` and `dst` are the ends, which no
property of an edge can be called.
"""

from __future__ import annotations

from collections.abc import Container

_WORDS = {"src": "from", "dst": "to"}


def end_names(properties: Container[str]) -> dict[str, str]:
    """Return what each end is called where the properties of its edge stand beside it."""
    return {end: end if word in properties else word for end, word in _WORDS.items()}


def ends_meant(given: Container[str], properties: Container[str]) -> dict[str, str]:
    """Return the end that each word means among given names.

    `from` is the property of that name only where `src` is given, too.
    """
    taken = {word for end, word in _WORDS.items() if end in given and word in properties}
    meant = {name: end for end, word in _WORDS.items() for name in (end, word)}
    return {name: end for name, end in meant.items() if name not in taken}
