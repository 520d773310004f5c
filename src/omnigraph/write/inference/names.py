"""Names of types and properties, made from the names of files and columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Mapping

_PROPERTY = re.compile(r"[a-z_][A-Za-z0-9_]*")
_TYPE = re.compile(r"[A-Z][A-Za-z0-9_]*")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IRREGULAR = {
    "people": "person",
    "persons": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "mice": "mouse",
    "geese": "goose",
    "feet": "foot",
    "teeth": "tooth",
    "indices": "index",
    "vertices": "vertex",
    "analyses": "analysis",
    "movies": "movie",
    "news": "news",
    "series": "series",
    "species": "species",
    "data": "data",
}
_PLURALS = (
    ("ies", "y"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("s", ""),
)


def property_name(column: str, taken: Container[str], number: int) -> str:
    """Return a valid name of a property that is not taken, the name of the column if possible.

    >>> property_name("Full Name", {"id"}, 1)
    'full_name'
    """
    name = column
    if _PROPERTY.fullmatch(column) is None:
        words = split_words(column)
        name = "_".join(words) or f"column_{number}"
        name = f"_{name}" if name[0].isdigit() else name
    return unused_name(name, taken)


def type_name(words: Iterable[str]) -> str:
    """Return words as the name of a type.

    >>> type_name(["works", "at"])
    'WorksAt'
    """
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if _TYPE.fullmatch(name) else f"Type{name}"


def is_type_name(text: str) -> bool:
    """Return whether text is a valid name of a type."""
    return _TYPE.fullmatch(text) is not None


def unused_name(name: str, taken: Container[str]) -> str:
    """Return a name, with a number behind it if it is taken."""
    number, candidate = 2, name
    while candidate in taken:
        candidate = f"{name}_{number}"
        number += 1
    return candidate


def split_words(text: str) -> list[str]:
    """Return the lower-case ASCII words of a name.

    >>> split_words("citingPaper_ID")
    ['citing', 'paper', 'id']
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    parts = re.split(r"[^A-Za-z0-9]+", plain)
    return [word.lower() for part in parts for word in _WORD_START.split(part) if word]


def singular(words: list[str]) -> list[str]:
    """Return words whose last one is not in the plural.

    >>> singular(["ship", "companies"])
    ['ship', 'company']
    """
    if not words:
        return words
    *rest, last = words
    if last in _IRREGULAR:
        return [*rest, _IRREGULAR[last]]
    for end, start in _PLURALS:
        if last.endswith(end) and len(last) > len(end) + 1:
            return [*rest, last.removesuffix(end) + start]
    return words


# --- what names say ----------------------------------------------------------------------------


ID_COLUMN = "id"
_KEY_WORDS = (
    *("id", "uuid", "guid", "key", "code", "slug", "email", "sku", "isbn", "doi", "orcid"),
    *("handle", "username", "login", "uri", "url", "number", "no", "name"),
)
_REFERENCE_WORDS = ("id", "uuid", "guid", "key", "code", "slug")
_ENDPOINT_PAIRS: tuple[tuple[str, str], ...] = (
    ("from", "to"),
    ("src", "dst"),
    ("source", "target"),
    ("source", "destination"),
    ("subject", "object"),
    ("head", "tail"),
    ("parent", "child"),
)


OWN_KEY_RANK = 1
"""The rank of `id`, and of a key that has the name of its type, such as `person_id`."""


def key_rank(column: str, table: list[str]) -> int | None:
    """Return how much a column of a table is named like a key, less is more; None when it is not.

    `table` are the words of what one row is.
    """
    words = split_words(column)
    if not words:
        return None
    if words == [ID_COLUMN]:
        return 0
    own = words[:-1] == table or words == table
    if own and words[-1] in _KEY_WORDS:
        return 1
    if len(words) == 1 and words[0] in _KEY_WORDS:
        return 2 + _KEY_WORDS.index(words[0])
    return None


def endpoint_pair(columns: Iterable[str]) -> tuple[str, str] | None:
    """Return the two columns that are named as the ends of an edge."""
    bases: dict[str, str] = {}
    for column in columns:
        bases.setdefault("_".join(reference_words(column)), column)
    for start, end in _ENDPOINT_PAIRS:
        if start in bases and end in bases:
            return bases[start], bases[end]
    return None


def reference_words(column: str) -> list[str]:
    """Return what a column refers to: its words without `id` and the like."""
    words = split_words(column)
    if len(words) > 1 and words[-1] in _REFERENCE_WORDS:
        return words[:-1]
    if len(words) == 1 and words[0].endswith("id") and len(words[0]) > 4:
        return [words[0].removesuffix("id")]
    return words


def has_reference_suffix(column: str) -> bool:
    """Return whether a column is named as a reference, such as `company_id`."""
    return reference_words(column) != split_words(column)


def names_type(
    column: str, types: Mapping[int, tuple[list[str], Iterable[list[str]]]]
) -> list[int]:
    """Return the types that a column names, given the words of their names and of their keys.

    `author`, `author_id`, `author_name` and `first_author_id` name a type `Author` with the key
    `name`.
    """
    words, base = split_words(column), reference_words(column)
    exact = [
        number
        for number, (name, keys) in types.items()
        if name == base or any(words == [*name, *key] for key in keys)
    ]
    if exact or not has_reference_suffix(column):
        return exact
    return [number for number, (name, _) in types.items() if base[-len(name) :] == name]
