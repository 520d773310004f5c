"""This module turns key values into the id of an entity, the same way on every surface."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from omnigraph.types.property_type import PropertyType


def key_text(value: Any, type_: PropertyType) -> str:
    """Render one stored value as canonical scalar text; raise ValueError if it has none."""
    if value is None:
        raise ValueError("null cannot identify an entity")
    render = type_.spec.key_text
    if render is None or type_.is_list:
        raise ValueError(f"a {type_} value cannot identify an entity")
    return render(value)


def entity_id(members: Sequence[tuple[Any, PropertyType]]) -> str:
    """Return the id made of key members, which must be ordered by stable property id.

    >>> from omnigraph.types import PropertyType, Scalar
    >>> entity_id([(42, PropertyType(Scalar.I64))])
    '42'
    >>> entity_id([(42, PropertyType(Scalar.I64)), (True, PropertyType(Scalar.BOOL))])
    '["42","true"]'
    """
    if not members:
        raise ValueError("a key has at least one member")
    texts = [key_text(value, type_) for value, type_ in members]
    if len(texts) == 1:
        return texts[0]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
