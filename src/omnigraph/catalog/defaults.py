"""`@default`: the value of a required property that has no value.

The annotation is kept as text, which the type of the property reads; a text that says the same in
other words is kept in one form.
"""

from __future__ import annotations

import re
from typing import Any

from omnigraph.catalog.model import Annotation, Property
from omnigraph.lang.source_writer import plain_number
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.data_values import from_data

DEFAULT = "default"

_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_BOOLS = {"true": True, "false": False}


def default_value(property_: Property) -> Any:  # noqa: ANN401 - a value of any type
    """Return the value an entity has where none is given, or None when there is none."""
    text = next((a.value for a in property_.annotations if a.name == DEFAULT), None)
    if text is None or default_unsupported_reason(property_.type) is not None:
        return None
    try:
        return read_default(property_.type, text)
    except ValueError:
        # An older schema may carry an annotation of this name that meant something else.
        return None


def default_unsupported_reason(type_: PropertyType) -> str | None:
    """Say why properties of a type have no default, or return None."""
    if type_.nullable:
        return f"a {type_} is null unless it is given"
    if type_.is_list or type_.scalar in (Scalar.VECTOR, Scalar.BLOB):
        return f"a {type_} cannot have one"
    return None


def read_default(type_: PropertyType, text: str) -> Any:  # noqa: ANN401 - a value of any type
    """Return the value a text means for a type; raise ValueError when it means none."""
    value = from_data(type_, _parse_literal(type_, text))
    if type_.enum_values is not None and value not in type_.enum_values:
        raise ValueError(f"expected one of {', '.join(type_.enum_values)}, got '{text[:40]}'")
    return value


def default_annotation(type_: PropertyType, text: str) -> Annotation:
    """Return the annotation in its one form; raise ValueError when the text does not fit."""
    read_default(type_, text)
    value = _parse_literal(type_, text)
    if isinstance(value, bool):
        return Annotation(DEFAULT, text)
    return Annotation(DEFAULT, value if isinstance(value, str) else plain_number(value))


def _parse_literal(type_: PropertyType, text: str) -> str | int | float | bool:
    """Return the JSON value of a text."""
    if type_.spec.integer:
        if _INTEGER.fullmatch(text) is None:
            raise ValueError(f"expected integer number, got '{text[:40]}'")
        return int(text)
    if type_.numeric:
        if _NUMBER.fullmatch(text) is None:
            raise ValueError(f"expected number, got '{text[:40]}'")
        return float(text)
    if type_.scalar is Scalar.BOOL:
        if text not in _BOOLS:
            raise ValueError(f"expected true or false, got '{text[:40]}'")
        return _BOOLS[text]
    return text
