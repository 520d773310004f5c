"""This module lists the steps from one type of a property to another.

A type may become any that holds all its values, and whether null is one of them may change either
way: a property that becomes required is looked at when the change is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from omnigraph.catalog.model import TypeKind
from omnigraph.catalog.steps import (
    ExtendEnum,
    MakeOptional,
    MakeRequired,
    Step,
    UnsupportedChange,
    WidenProperty,
)
from omnigraph.lang import Code
from omnigraph.types import PropertyType, Scalar

WIDER = {Scalar.I32: Scalar.I64, Scalar.U32: Scalar.U64, Scalar.F32: Scalar.F64}
"""The type each number may become: values keep their meaning, in a column of their own."""


@dataclass(frozen=True, slots=True)
class Retyped:
    """A property that stays, by the name it has afterwards; `in_key`: ids are made from it."""

    kind: TypeKind
    type_name: str
    name: str
    in_key: bool = False


def retype_steps(place: Retyped, old: PropertyType, new: PropertyType) -> Iterator[Step]:
    """Yield what leads from one type to another, or the refusal."""
    names = (place.kind, place.type_name, place.name)
    plain = old.as_nullable(new.nullable)
    if plain != new:
        added = _added_values(plain, new)
        if added:
            yield ExtendEnum(*names, added)
        elif is_wider(plain, new) and not _changes_ids(place, plain):
            yield WidenProperty(*names, old.as_nullable(False), new.as_nullable(False))
        else:
            yield _refusal(place, old, new)
            return
    if old.nullable != new.nullable:
        yield MakeOptional(*names) if new.nullable else MakeRequired(*names)


def is_wider(old: PropertyType, new: PropertyType) -> bool:
    """Tell whether a type differs only by holding more values than those of an enum or number."""
    if old.enum_values is not None:
        return replace(old, enum_values=None) == new
    return old.scalar in WIDER and replace(old, scalar=WIDER[old.scalar]) == new


def _added_values(old: PropertyType, new: PropertyType) -> tuple[str, ...]:
    """Return the enum values a change adds; nothing when it is something else."""
    if old.enum_values is None or new.enum_values is None:
        return ()
    if not set(old.enum_values) < set(new.enum_values):
        return ()
    return tuple(sorted(set(new.enum_values) - set(old.enum_values)))


def _changes_ids(place: Retyped, old: PropertyType) -> bool:
    """Tell whether ids would read differently: a wider float has more digits."""
    return place.in_key and old.scalar is Scalar.F32


def _refusal(place: Retyped, old: PropertyType, new: PropertyType) -> Step:
    entity = f"{place.kind}:{place.type_name}.{place.name}"
    if is_wider(old.as_nullable(new.nullable), new):
        reason = f"the type of a key cannot change ({old} -> {new}): ids are made from it"
    else:
        reason = f"the type cannot change ({old} -> {new}); it may only become wider"
    return UnsupportedChange(entity, reason, Code.PROPERTY_TYPE_CHANGED)
