"""This module reads paths so that an encoded slash is no slash.

A branch such as `review/x` travels as `review%2Fx`. Routes are matched part by part: what was
encoded stays within its part, so that no name can lead to another route.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

_SLASH = "\0"
"""Stands for an encoded slash while a route is looked for; a path with this itself is refused."""


def parted(scope: Mapping[str, Any]) -> str | None:
    """Return the path of a request, decoded part by part, or None if it cannot be one."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    parts = []
    for part in raw.partition(b"?")[0].split(b"/"):
        try:
            text = unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            return None
        if _SLASH in text:
            return None
        parts.append(text.replace("/", _SLASH))
    return "/".join(parts)


def original(part: str) -> str:
    """Return a part of a path as it was meant."""
    return part.replace(_SLASH, "/")
