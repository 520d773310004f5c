"""The options of graph algorithms, validated the same for both engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, TypeVar

from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.plan.expressions import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """The options of an algorithm that has none; the base of those of others."""

    @property
    def edge_property(self) -> str | None:
        """The numeric property of edges that is read, if any."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRankOptions(AnalysisOptions):
    """How to rank: the share that follows edges, and when to end."""

    damping: float = 0.85
    iterations: int = 50
    tolerance: float = 1e-6
    """The change of all ranks together, of 1 in all, below which nothing is repeated."""

    def __post_init__(self) -> None:
        _require_number("damping", self.damping)
        _require_iterations(self.iterations)
        _require_number("tolerance", self.tolerance)
        if self.damping >= 1:
            raise _invalid(f"damping must be less than 1, got {self.damping}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions(AnalysisOptions):
    """How often labels are passed on at most."""

    iterations: int = 20

    def __post_init__(self) -> None:
        _require_iterations(self.iterations)


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeOptions(AnalysisOptions):
    """Which edges to count: those that leave a node, those that arrive, or both."""

    direction: Direction = Direction.BOTH

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", _parse_direction(self.direction))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestPathOptions(AnalysisOptions):
    """From which node, along edges in which direction, and which property is their length."""

    source: str
    """The ID of the node; with several node types, `Type/id`."""
    weight: str | None = None
    """A numeric property of all edge types; without it every edge has length 1."""
    direction: Direction = Direction.OUT

    def __post_init__(self) -> None:
        if not isinstance(self.source, str):
            raise _invalid(f"source must be the ID of a node, got {self.source!r}")
        if not isinstance(self.weight, str | None):
            raise _invalid(f"weight must be the name of a property, got {self.weight!r}")
        object.__setattr__(self, "direction", _parse_direction(self.direction))

    @property
    def edge_property(self) -> str | None:
        """The weight."""
        return self.weight


_OptionsT = TypeVar("_OptionsT", bound=AnalysisOptions)


def parse_options(kind: type[_OptionsT], algorithm: str, options: Mapping[str, Any]) -> _OptionsT:
    """Return the options of an algorithm from what the caller gave by name.

    Raises:
        InvalidInput: an option is unknown, missing or has an invalid value.
    """
    names = [field.name for field in fields(kind)]
    unknown = [name for name in options if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        hint = did_you_mean(unknown[0], names)
        raise _invalid(
            f"{algorithm} has no option '{unknown[0]}'; its options: {known}"
            + (f" ({hint})" if hint else "")
        )
    try:
        return kind(**options)
    except TypeError as error:  # an argument without a default
        missing = [name for name in names if f"'{name}'" in str(error)]
        if not missing:
            raise
        raise _invalid(f"{algorithm} needs the option {', '.join(missing)}") from None


def _require_number(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isfinite(value) or value < 0:  # type: ignore[arg-type, operator] # checked
        raise _invalid(f"{name} must be a number from 0 up, got {value!r}")


def _require_iterations(value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _invalid(f"iterations must be 1 or more, got {value!r}")


def _parse_direction(value: object) -> Direction:
    try:
        return Direction(value)  # type: ignore[arg-type] # or raises
    except ValueError:
        message = f"direction must be one of {', '.join(Direction)}, got '{value}'"
        raise _invalid(message) from None


def _invalid(message: str) -> InvalidInput:
    return InvalidInput(message, code="analysis_option_invalid")
