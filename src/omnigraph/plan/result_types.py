"""The type of an expression that is computed from others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from omnigraph.types import PropertyType, Scalar

INTEGER = PropertyType(Scalar.I64)
DECIMAL = PropertyType(Scalar.F64)


@dataclass(frozen=True, slots=True)
class ResultRule:
    """How the type of a result follows from those of the arguments; None is a mismatch."""

    about: str
    of: Callable[[Sequence[PropertyType]], PropertyType | None]


def common_type(types: Sequence[PropertyType]) -> PropertyType | None:
    """Return the type that holds the values of all types, not nullable; None if there is none.

    Integers of different types become `I64`, and any number beside a decimal one `F64`.
    """
    first, *others = (type_.as_nullable(False) for type_ in types)
    found: PropertyType | None = first
    for other in others:
        found = None if found is None else _common(found, other)
    return found


def _common(one: PropertyType, other: PropertyType) -> PropertyType | None:
    if one == other:
        return one
    if not one.comparable_with(other):
        return None
    if one.scalar is other.scalar:
        return PropertyType(one.scalar, is_list=one.is_list)  # enums of different values
    is_whole = one.spec.integer and other.spec.integer
    return PropertyType(Scalar.I64 if is_whole else Scalar.F64, is_list=one.is_list)


def any_nullable(types: Sequence[PropertyType]) -> bool:
    """Return whether any of the types is nullable."""
    return any(type_.nullable for type_ in types)


def _arithmetic(types: Sequence[PropertyType]) -> PropertyType:
    whole = all(type_.spec.integer for type_ in types)
    return (INTEGER if whole else DECIMAL).as_nullable(any_nullable(types))


def _first_present(types: Sequence[PropertyType]) -> PropertyType | None:
    found = common_type(types)
    return None if found is None else found.as_nullable(all(type_.nullable for type_ in types))


def _list_of(types: Sequence[PropertyType]) -> PropertyType:
    return PropertyType(types[0].scalar, is_list=True)


LIST_OF = ResultRule("a list of the type of `value`", _list_of)
ARITHMETIC = ResultRule("`I64` of integers, else `F64`; null beside a null", _arithmetic)
COMMON = ResultRule("the common type of the arguments", _first_present)


def computed(type_: PropertyType) -> ResultRule:
    """Return the rule of a value that is null when an argument is."""
    return ResultRule(
        f"`{type_}`; null beside a null", lambda types: type_.as_nullable(any_nullable(types))
    )
