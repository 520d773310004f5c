"""This module says which names branches and tags may have."""

from __future__ import annotations

import re

from omnigraph.commit.model import MAIN
from omnigraph.errors import InvalidInput

MAX_NAME = 200

_SEGMENT = re.compile(r"[\w.-]+")
_COMMIT_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def check_name(name: str, what: str = "branch") -> str:
    """Return a trimmed name, or raise InvalidInput saying what is wrong with it."""
    trimmed = name.strip()
    problem = _problem(trimmed)
    if problem is not None:
        message = f"'{trimmed[:80]}' cannot be a {what} name: {problem}"
        raise InvalidInput(message, code=f"{what}_name_invalid", name=trimmed[:MAX_NAME])
    return trimmed


def is_commit_id(text: str) -> bool:
    """Tell whether a text has the form of a commit id."""
    return _COMMIT_ID.fullmatch(text) is not None


def _problem(name: str) -> str | None:
    if not name:
        return "it is empty"
    if len(name) > MAX_NAME:
        return f"it is longer than {MAX_NAME} characters"
    if name == MAIN:
        return "main always exists"
    if name.startswith("__"):
        return "names that start with `__` are reserved"
    if is_commit_id(name):
        return "it looks like a commit id"
    if name.endswith(".lock") or ".." in name:
        return "`..` and a final `.lock` are not allowed"
    if not all(_SEGMENT.fullmatch(segment) for segment in name.split("/")):
        return "use letters, digits, `.`, `-`, `_`, and `/` between parts"
    return None
