"""This module reads which changes somebody asks for, and refuses what cannot be meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeVar

from omnigraph.catalog import AcceptedSchema, TypeKind
from omnigraph.changes.model import Op, Scope
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean

KINDS = (TypeKind.NODE, TypeKind.EDGE)
_WordT = TypeVar("_WordT", bound=StrEnum)


def read_scope(
    kinds: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    ops: Sequence[str] | None = None,
) -> Scope:
    """Return the scope some words ask for; asking for every kind or op is asking for none."""
    asked = frozenset(_word("kind", kind, KINDS) for kind in _listed(kinds))
    wanted = frozenset(_word("op", op, tuple(Op)) for op in _listed(ops))
    return Scope(
        kinds=frozenset() if len(asked) == len(KINDS) else asked,
        types=frozenset(_listed(types)),
        ops=frozenset() if len(wanted) == len(Op) else wanted,
    )


def check_types(scope: Scope, schemas: Iterable[AcceptedSchema]) -> None:
    """Raise NotFound for a type that none of the schemas has."""
    known = {t.name for schema in schemas for kind in KINDS for t in schema.of_kind(kind)}
    for name in sorted(scope.types - known):
        hint = did_you_mean(name, known)
        message = f"unknown type '{name}'" + (f": {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=name)


def _listed(words: Sequence[str] | None) -> Sequence[str]:
    return (words,) if isinstance(words, str) else words or ()


def _word(what: str, word: str, known: Sequence[_WordT]) -> _WordT:
    found = next((value for value in known if value == word), None)
    if found is None:
        message = f"unknown {what} '{word}': {did_you_mean(word, known)}"
        raise InvalidInput(message, code=f"unknown_{what}", **{what: word})
    return found
