"""A change of an entity, and filters over changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from omnigraph.catalog import AcceptedSchema, TypeKind
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.notebook.changes import change_html
from omnigraph.policy.permissions import ALL_TYPES, TypeScope


class ChangeOp(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class EntityImage:
    """An entity as a state shows it: its properties and, of an edge, the ids of its ends."""

    properties: Mapping[str, Any]
    endpoints: tuple[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts: dict[str, Any] = {"properties": dict(self.properties)}
        if self.endpoints is not None:
            facts["endpoints"] = dict(zip(("from", "to"), self.endpoints, strict=True))
        return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happened to one entity; an insert has no `before`, a delete no `after`."""

    kind: TypeKind
    type: str
    id: str
    op: ChangeOp
    before: EntityImage | None = None
    after: EntityImage | None = None

    @property
    def changed(self) -> list[str]:
        """The properties that an update changed, ends of an edge as `from` and `to`."""
        if self.before is None or self.after is None:
            return []
        one, other = self.before, self.after
        names = dict.fromkeys([*one.properties, *other.properties])
        # Zero and negative zero are equal and not the same.
        pairs = ((n, one.properties.get(n), other.properties.get(n)) for n in names)
        properties = [name for name, old, new in pairs if repr(old) != repr(new)]
        ends = zip(("from", "to"), one.endpoints or (), other.endpoints or (), strict=False)
        return [*(name for name, old, new in ends if old != new), *properties]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        facts = {"kind": str(self.kind), "type": self.type, "id": self.id, "op": str(self.op)}
        return facts | self.images_json()

    def _repr_html_(self) -> str:
        return change_html(self.to_json())

    def images_json(self) -> dict[str, Any]:
        """Return the wire form of the images that it has."""
        images = {"before": self.before, "after": self.after}
        return {name: image.to_json() for name, image in images.items() if image is not None}


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes to return, by kind, type and op (an empty set: all), and what may be seen."""

    kinds: frozenset[TypeKind] = field(default_factory=frozenset)
    types: frozenset[str] = field(default_factory=frozenset)
    ops: frozenset[ChangeOp] = field(default_factory=frozenset)
    sight: TypeScope = ALL_TYPES

    def covers(self, kind: TypeKind, name: str) -> bool:
        """Return whether changes of a type are requested."""
        return (not self.kinds or kind in self.kinds) and (not self.types or name in self.types)

    def wants(self, op: ChangeOp) -> bool:
        """Return whether changes of this op are requested."""
        return not self.ops or op in self.ops


# ----------------------------------------------------------------------
# Parsing and validation of change filters.


ENTITY_KINDS = (TypeKind.NODE, TypeKind.EDGE)
_WordT = TypeVar("_WordT", bound=StrEnum)


def parse_change_filter(
    kinds: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    ops: Sequence[str] | None = None,
) -> ChangeFilter:
    """Return the filter of some words; all kinds or ops are the same as none."""
    chosen_kinds = frozenset(_parse_word("kind", kind, ENTITY_KINDS) for kind in _parse_list(kinds))
    chosen_ops = frozenset(_parse_word("op", op, tuple(ChangeOp)) for op in _parse_list(ops))
    return ChangeFilter(
        kinds=frozenset() if len(chosen_kinds) == len(ENTITY_KINDS) else chosen_kinds,
        types=frozenset(_parse_list(types)),
        ops=frozenset() if len(chosen_ops) == len(ChangeOp) else chosen_ops,
    )


def check_filter_types(scope: ChangeFilter, schemas: Iterable[AcceptedSchema]) -> None:
    """Raise NotFound for a type that none of the schemas has."""
    names = {t.name for schema in schemas for kind in ENTITY_KINDS for t in schema.of_kind(kind)}
    for name in sorted(scope.types - names):
        hint = did_you_mean(name, names)
        message = f"unknown type '{name}'" + (f": {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=name)


def _parse_list(words: Sequence[str] | None) -> Sequence[str]:
    return (words,) if isinstance(words, str) else words or ()


def _parse_word(what: str, word: str, words: Sequence[_WordT]) -> _WordT:
    member = next((value for value in words if value == word), None)
    if member is None:
        message = f"unknown {what} '{word}': {did_you_mean(word, words)}"
        raise InvalidInput(message, code=f"unknown_{what}", **{what: word})
    return member
