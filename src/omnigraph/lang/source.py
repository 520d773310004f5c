"""Source text with its name; lines and columns of offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple


class TextSpan(NamedTuple):
    """A half-open range of character offsets in one source."""

    start: int
    end: int

    def to(self, other: TextSpan) -> TextSpan:
        """Return the range from here to the end of `other`."""
        return TextSpan(self.start, other.end)


NO_SPAN = TextSpan(0, 0)
"""The span of a tree that was built rather than read."""


class TextPosition(NamedTuple):
    """A position: line and column from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class SourceText:
    """Source text with the name shown in messages."""

    text: str
    name: str = "<text>"
    _line_starts: list[int] = field(default_factory=list, repr=False)

    def position(self, offset: int) -> TextPosition:
        """Return line and column of a character offset."""
        starts = self._starts()
        line = bisect_right(starts, min(offset, len(self.text)))
        return TextPosition(line, min(offset, len(self.text)) - starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Return one line, counted from 1, without its line break."""
        starts = self._starts()
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def _starts(self) -> list[int]:
        if not self._line_starts:
            breaks = (match.end() for match in re.finditer("\n", self.text))
            self._line_starts.extend([0, *breaks])
        return self._line_starts


# ----------------------------------------------------------------------
# Tree nodes of both languages
#
# Trees compare by meaning: spans do not count, so a tree equals its printed and re-read self.


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """A part of a syntax tree, with its span."""

    span: TextSpan = field(default=NO_SPAN, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Name(SyntaxNode):
    """An identifier."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TypeExpr(SyntaxNode):
    """A written type: `String`, `[I32]?`, `enum(a, b)`, `Vector(3)`.

    `base` is the scalar's spelling, or `enum`; enum values keep the order they were written in.
    """

    base: str
    is_list: bool = False
    nullable: bool = False
    enum_values: tuple[Name, ...] = ()
    dimension: int | None = None
