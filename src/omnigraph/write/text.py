"""This module reads cells of text files, where a property's type says what the text means."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from omnigraph.types import PropertyType, Scalar

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLS = {"true": True, "false": False}


def from_text(type_: PropertyType, text: str) -> Any:  # noqa: ANN401 - a value of any type
    """Return the JSON value a cell means; raise ValueError when it means none of its type."""
    if type_.is_list or type_.dimension is not None:
        return _array(text)
    if type_.spec.integer:
        if _INTEGER.fullmatch(text) is None:
            raise ValueError(f"expected integer number, got '{text[:40]}'")
        return int(text)
    if type_.numeric:
        if _NUMBER.fullmatch(text) is None:
            raise ValueError(f"expected number, got '{text[:40]}'")
        return float(text)
    if type_.scalar is Scalar.BOOL:
        if text.lower() not in _BOOLS:
            raise ValueError(f"expected true or false, got '{text[:40]}'")
        return _BOOLS[text.lower()]
    return text


def _array(text: str) -> Any:  # noqa: ANN401 - whatever stands there
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a JSON array, got '{text[:40]}'") from error


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")
