"""Decide which blob URIs a graph may refer to: none, or those below allowed bases.

A URI is below a base when all parts of the base's path come first in its own. Whatever could make
two readers disagree about where a URI leads (credentials, queries, dot segments, encoded slashes)
is refused before anything is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

from omnigraph.errors import InvalidInput

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>.*)", re.S)
_ENCODED = re.compile(r"%(2[eEfF]|5[cC]|00)")
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")


@dataclass(frozen=True, slots=True)
class _ParsedUri:
    """A URI taken apart: where it is, and the parts of its path."""

    scheme: str
    authority: str
    parts: tuple[str, ...]

    def holds(self, other: _ParsedUri) -> bool:
        """Return whether another place is this one or below it."""
        same = (self.scheme, self.authority) == (other.scheme, other.authority)
        return same and other.parts[: len(self.parts)] == self.parts


@dataclass(frozen=True, slots=True)
class ExternalBlobs:
    """The bases below which blobs may stay where they are; without any, none may."""

    bases: tuple[_ParsedUri, ...] = ()

    @classmethod
    def below(cls, bases: Iterable[str]) -> ExternalBlobs:
        """Allow what is below the bases, which must not overlap."""
        places = []
        for base in bases:
            try:
                places.append(_parse_uri(base))
            except ValueError as error:
                message = f"'{base}' cannot be a base of external blobs: {error}"
                raise InvalidInput(message, code="external_blobs_invalid", base=base) from error
        for one, other in permutations(places, 2):
            if one.holds(other):
                message = "two bases of external blobs overlap"
                raise InvalidInput(message, code="external_blobs_invalid")
        return cls(tuple(places))

    def check(self, uri: str) -> None:
        """Raise ValueError when a blob must not refer to a URI."""
        if not self.bases:
            raise ValueError(f"external blob '{uri[:80]}' is refused: this graph allows none")
        place = _parse_uri(uri)
        if not any(base.holds(place) for base in self.bases):
            raise ValueError(f"external blob '{uri[:80]}' is below no allowed base")


def _parse_uri(uri: str) -> _ParsedUri:
    match = _URI.fullmatch(uri)
    if match is None:
        raise ValueError("it is not an absolute URI")
    scheme, authority, path = match.groups()
    if "@" in authority:
        raise ValueError("a blob URI has no credentials")
    if "?" in path or "#" in path:
        raise ValueError("a blob URI has no query and no fragment")
    if _UNSAFE.search(uri) or _ENCODED.search(path):
        raise ValueError("a blob URI has no backslash, blank or encoded dot or slash")
    parts = path.split("/")[1:]
    if parts and parts[-1] == "":
        parts.pop()
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError("a blob URI has no empty and no dot segment")
    return _ParsedUri(scheme.lower(), authority.lower(), tuple(parts))


NO_EXTERNAL_BLOBS = ExternalBlobs()
