"""Markers on the fields of requests: which part of an HTTP request holds the value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Struct

_ValueT = TypeVar("_ValueT")


class ParameterLocation(StrEnum):
    """A part of an HTTP request."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Marker:
    """Where a field is; `schema` is the type to document where the field accepts more."""

    location: ParameterLocation
    schema: Any = None


FromPath: TypeAlias = Annotated[_ValueT, Marker(ParameterLocation.PATH)]
FromQuery: TypeAlias = Annotated[_ValueT, Marker(ParameterLocation.QUERY)]
FromHeader: TypeAlias = Annotated[_ValueT, Marker(ParameterLocation.HEADER)]
FromBody: TypeAlias = Annotated[_ValueT, Marker(ParameterLocation.BODY)]
OptionalText: TypeAlias = Annotated[str | None, Marker(ParameterLocation.QUERY, schema=str)]
"""A query parameter that may be absent, but is never null."""


@dataclass(frozen=True, slots=True)
class RequestParameter:
    """A field of a request that is not in the JSON body."""

    field: str
    """The name of the attribute."""
    name: str
    """The name in the path, the query string or the headers."""
    location: ParameterLocation
    type: Any
    schema: Any
    required: bool

    @property
    def is_list(self) -> bool:
        """Whether it may be repeated."""
        return getattr(self.type, "__origin__", None) is list


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The body of a request: the field that holds it (None: the whole request), and its type."""

    field: str | None
    type: Any
    required: bool = True


class NoRequest(Struct, kw_only=True):
    """The request of an operation without arguments."""


@cache
def request_parameters(request: type[Struct]) -> tuple[RequestParameter, ...]:
    """Return the fields of a request that are in its path, query string or headers."""
    return tuple(
        RequestParameter(
            field=field.name,
            name=field.encode_name,
            location=marker.location,
            type=get_args(field.type)[0],
            schema=get_args(field.type)[0] if marker.schema is None else marker.schema,
            required=field.required,
        )
        for field in msgspec.structs.fields(request)
        if (marker := _marker(field.type)) is not None
        and marker.location is not ParameterLocation.BODY
    )


@cache
def request_body(request: type[Struct]) -> RequestBody | None:
    """Return the body of a request: its field marked so, or all of it if no field is marked."""
    fields = msgspec.structs.fields(request)
    markers = {field.name: _marker(field.type) for field in fields}
    for field in fields:
        marker = markers[field.name]
        if marker is not None and marker.location is ParameterLocation.BODY:
            return RequestBody(field.name, get_args(field.type)[0], field.required)
    if not fields or any(markers.values()):
        return None
    return RequestBody(None, request)


def _marker(annotation: Any) -> Marker | None:  # noqa: ANN401 - any annotation
    metadata = getattr(annotation, "__metadata__", ())
    return next((item for item in metadata if isinstance(item, Marker)), None)
