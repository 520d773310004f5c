"""This module holds source text with its name and answers where an offset is."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """A half-open range of character offsets in one source."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """Return the range from here to the end of `other`."""
        return Span(self.start, other.end)


NO_SPAN = Span(0, 0)
"""The span of a tree that was built rather than read."""


class Position(NamedTuple):
    """A place as people count it: line and column from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Text to be read, with the name people know it by."""

    text: str
    name: str = "<text>"
    _line_starts: list[int] = field(default_factory=list, repr=False)

    def position(self, offset: int) -> Position:
        """Return line and column of a character offset."""
        starts = self._starts()
        line = bisect_right(starts, min(offset, len(self.text)))
        return Position(line, min(offset, len(self.text)) - starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Return one line, counted from 1, without its line break."""
        starts = self._starts()
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def _starts(self) -> list[int]:
        if not self._line_starts:
            starts = [0]
            offset = self.text.find("\n")
            while offset >= 0:
                starts.append(offset + 1)
                offset = self.text.find("\n", offset + 1)
            self._line_starts.extend(starts)
        return self._line_starts
