"""This module defines what a route is: how it is called, what it takes, what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.responses import Response

from omnigraph.server.request import RequestContext

Handler: TypeAlias = Callable[[RequestContext], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class EndpointParameter:
    """A parameter of the query string, or with `header` of the headers."""

    name: str
    schema: Any = str
    required: bool = False
    many: bool = False
    header: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One method of one path.

    `body` and `answer` are shapes, or media types where there is no shape; `errors` are the
    statuses it may have besides those every route has. `successor` is what to call instead of a
    route that is deprecated.
    """

    method: str
    path: str
    operation_id: str
    tag: str
    handle: Handler
    summary: str
    body: Any = None
    body_optional: bool = False
    answer: Any = None
    errors: tuple[int, ...] = ()
    parameters: tuple[EndpointParameter, ...] = ()
    successor: str | None = None
    public: bool = False
    changes: bool = False
