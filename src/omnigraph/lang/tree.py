"""This module defines the tree nodes both languages share.

Trees compare by meaning: spans do not count, so a tree equals its printed and re-read self.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.lang.source import NO_SPAN, Span


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier where it stands."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TypeExpr:
    """A written type: `String`, `[I32]?`, `enum(a, b)`, `Vector(3)`.

    `base` is the scalar's spelling, or `enum`; enum values keep the order they were written in.
    """

    base: str
    is_list: bool = False
    nullable: bool = False
    enum_values: tuple[Name, ...] = ()
    dimension: int | None = None
    span: Span = field(default=NO_SPAN, compare=False)
