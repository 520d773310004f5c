"""This module defines which way and how far edges are followed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Which way an edge is followed from the first endpoint to the second."""

    OUT = "out"
    IN = "in"
    BOTH = "both"

    @property
    def reversed(self) -> Direction:
        """The same edges seen from the second endpoint."""
        return {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}.get(self, self)


ANY_LENGTH = 2**31
"""The greatest number of hops where none is given."""


@dataclass(frozen=True, slots=True)
class Hops:
    """How many edges are followed, at least and at most."""

    minimum: int = 1
    maximum: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.maximum:
            raise ValueError(f"hops {self.minimum}..{self.maximum} are out of order")

    def __str__(self) -> str:
        return f"{{{self.minimum},{'' if self.maximum == ANY_LENGTH else self.maximum}}}"

    @property
    def is_single(self) -> bool:
        """Tell whether exactly one edge is followed."""
        return self.minimum == self.maximum == 1


ONE_HOP = Hops()
