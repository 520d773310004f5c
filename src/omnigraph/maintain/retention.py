"""The retention of a graph: what automatic cleanup keeps, stored with the graph.

Without a declared retention nothing is removed automatically.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from omnigraph.errors import FormatUnsupported, GraphCorrupt, InvalidInput
from omnigraph.storage import ObjectStore
from omnigraph.types.duration import format_duration, parse_duration

SETTINGS = "__settings.json"
"""The object of a graph that holds its settings."""
SETTINGS_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The commits that cleanup keeps: the newest of each branch, and those younger than an age.

    The limits are those of `graph.cleanup`: what either of them keeps is kept.
    """

    keep: int | None = None
    older_than: timedelta | None = None

    def __post_init__(self) -> None:
        if self.keep is None and self.older_than is None:
            message = "a retention needs a number of commits to keep, an age, or both"
            raise InvalidInput(message, code="retention_invalid")
        keep: object = self.keep  # callers may pass anything
        if keep is not None and not _is_count(keep):
            message = f"the number of commits to keep must be an integer from 0 on: {keep!r}"
            raise InvalidInput(message, code="retention_invalid")
        age: object = self.older_than
        if age is not None and (not isinstance(age, timedelta) or age < timedelta(0)):
            message = f"the age of a retention must be a duration from 0 on: {age!r}"
            raise InvalidInput(message, code="retention_invalid")

    def __str__(self) -> str:
        parts = [] if self.keep is None else [f"keep {self.keep:,} commits of each branch"]
        if self.older_than is not None:
            parts.append(f"keep commits younger than {format_duration(self.older_than)}")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the wire form, as `parse` reads it."""
        age = None if self.older_than is None else format_duration(self.older_than)
        members = {"keep": self.keep, "older_than": age}
        return {name: value for name, value in members.items() if value is not None}

    @classmethod
    def parse(cls, value: object) -> Retention:
        """Read `{keep: 1000, older_than: 30d}`; raise InvalidInput if it is invalid."""
        if not isinstance(value, Mapping) or not value.keys() <= {"keep", "older_than"}:
            message = "a retention has the members `keep` and `older_than`, e.g. 1000 and 30d"
            raise InvalidInput(message, code="retention_invalid")
        age = value.get("older_than")
        try:
            older_than = None if age is None else parse_duration(str(age))
        except ValueError as error:
            raise InvalidInput(str(error), code="retention_invalid") from error
        return cls(keep=value.get("keep"), older_than=older_than)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def read_retention(objects: ObjectStore) -> Retention | None:
    """Return the retention stored with a graph, if any."""
    data = objects.get(SETTINGS)
    if data is None:
        return None
    try:
        document = json.loads(data)
        version, value = document["version"], document["retention"]
        checksum = document.get("checksum")
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(str(error)) from error
    if version != SETTINGS_VERSION:
        message = f"{SETTINGS} has version {version}, not {SETTINGS_VERSION}: upgrade omnigraph"
        raise FormatUnsupported(message, found=str(version))
    if checksum is not None and checksum != _checksum(value):  # older releases wrote none
        raise _unreadable("it does not match its checksum")
    try:
        return None if value is None else Retention.parse(value)
    except InvalidInput as error:
        raise _unreadable(str(error)) from error


def _unreadable(cause: str) -> GraphCorrupt:
    return GraphCorrupt(f"{SETTINGS} cannot be read: set the retention again", cause=cause)


def write_retention(objects: ObjectStore, retention: Retention | None) -> None:
    """Store the retention of a graph; None declares none."""
    value = None if retention is None else retention.to_json()
    document = {"version": SETTINGS_VERSION, "retention": value, "checksum": _checksum(value)}
    objects.put(SETTINGS, json.dumps(document, indent=2).encode())


def _checksum(value: object) -> str:
    canonical = json.dumps(value, sort_keys=True).encode()
    return hashlib.blake2b(canonical, digest_size=8).hexdigest()
