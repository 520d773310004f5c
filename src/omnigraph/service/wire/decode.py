"""Decode JSON bodies; report malformed JSON and invalid members."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from omnigraph.errors import InvalidInput
from omnigraph.service.wire.requests import DEPRECATED_FIELD_NAMES, ChangeRequest

_BodyT = TypeVar("_BodyT")


def decode(body: bytes, shape: type[_BodyT]) -> _BodyT:
    """Return a body in its shape; raise InvalidInput for anything else."""
    value = _parsed(body)
    if shape is ChangeRequest:
        value = _accept_deprecated_names(value)
    try:
        return msgspec.convert(_without_nulls(value, shape), shape)
    except msgspec.ValidationError as error:
        raise _invalid_body(str(error)) from error


def decode_optional(body: bytes, shape: type[_BodyT]) -> _BodyT:
    """Return a body that may be empty or null, which means that nothing in it is set."""
    if not body.strip() or body.strip() == b"null":
        return shape()
    try:
        return decode(body, shape)
    except InvalidInput as error:
        # An optional body has one error code for malformed and invalid JSON.
        raise InvalidInput(error.message, code="body_malformed") from error


def _parsed(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        message = f"the body is not JSON: {reason}"
        raise InvalidInput(message, code="body_malformed") from error


def _accept_deprecated_names(value: object) -> object:
    """Let members have the names they once had."""
    if not isinstance(value, dict):
        return value
    for old, new in DEPRECATED_FIELD_NAMES.items():
        if old in value and new in value:
            raise _invalid_body(f"`{old}` is another name of `{new}`: give one of them")
    return {DEPRECATED_FIELD_NAMES.get(name, name): member for name, member in value.items()}


def _without_nulls(value: object, shape: type) -> object:
    """Leave out members that are null and need not be given: null says nothing about them."""
    if not isinstance(value, dict):
        return value
    free = _optional_members(shape)
    return {name: one for name, one in value.items() if one is not None or name not in free}


@cache  # finding the fields of a class takes longer than reading a small body
def _optional_members(shape: type) -> frozenset[str]:
    fields = msgspec.structs.fields(shape)
    return frozenset(field.encode_name for field in fields if not field.required)


def _invalid_body(reason: str) -> InvalidInput:
    message = f"invalid request body: {reason}"
    return InvalidInput(message, code="body_invalid")
