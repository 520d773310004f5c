"""Lets a test say what time it is when a commit is made."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any

from omnigraph.commit import publish


class Clock:
    """Stands for `datetime` where commits take their time from; it goes where it is told."""

    def __init__(self, monkeypatch: Any, start: datetime) -> None:
        self.instant = start
        monkeypatch.setattr(publish, "datetime", self)

    def now(self, zone: tzinfo | None = None) -> datetime:
        """Return the time a test has set."""
        return self.instant.astimezone(zone)
