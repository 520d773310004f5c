"""The difference of two states: an iterator of changes that notebooks show."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from omnigraph.changes.model import Change
from omnigraph.notebook.changes import MAX_CHANGES, changes_html


class Difference(Iterator[Change]):
    """Changes that can be gone through once; showing the first ones does not consume them."""

    def __init__(self, changes: Iterator[Change]) -> None:
        self._changes = changes
        self._read = deque[Change]()

    def __next__(self) -> Change:
        return self._read.popleft() if self._read else next(self._changes)

    def __repr__(self) -> str:
        return "<Difference: iterate for its changes>"

    def _repr_html_(self) -> str:
        self._read.extend(islice(self._changes, MAX_CHANGES + 1 - len(self._read)))
        first = [change.to_json() for change in self._read]
        more = len(first) > MAX_CHANGES
        return changes_html(first[:MAX_CHANGES], total=None, more=more)
