"""The declaration of an operation, from which HTTP, OpenAPI, MCP, the client and the docs follow.

A function `(session, request) -> answer` becomes an operation by the decorator `operation(...)`.
Calling the operation checks the declared access first: the bare function is not reachable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from msgspec import Struct

from omnigraph.policy.permissions import PolicyAction
from omnigraph.service.operations.links import Link
from omnigraph.service.operations.paths import GRAPH_PATH, WRITE_ERRORS
from omnigraph.service.wire.parameters import (
    RequestBody,
    RequestParameter,
    request_body,
    request_parameters,
)

NDJSON = "application/x-ndjson"
OCTETS = "application/octet-stream"

_SessionT = TypeVar("_SessionT")
_RequestT = TypeVar("_RequestT", bound=Struct)
_AnswerT = TypeVar("_AnswerT")


@dataclass(frozen=True, slots=True)
class Access:
    """The permission check of an operation, and the policy actions it requires."""

    actions: tuple[PolicyAction, ...]
    check: Callable[[Any, Any], None]
    note: str = ""
    """What the docs say in addition to the actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """How agents call an operation by MCP.

    `arguments` is what the tool takes; by default the members of the request. `pages` is the list
    of the answer that is cut into pages. `adapter` names a function of `mcp/tools.py` for a tool
    whose answer is made differently. `actions` are those of the operation by default. A tool that
    `destroys` may remove or replace data.
    """

    name: str
    description: str
    arguments: type[Struct] | None = None
    pages: str | None = None
    adapter: str | None = None
    actions: tuple[PolicyAction, ...] | None = None
    destroys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[_SessionT, _RequestT, _AnswerT]):
    """One operation of the product.

    `answer` is a type of `service.wire`, a media type, or None for an answer without a body.
    `errors` are the statuses besides 401 and 403. `handler` names a function of
    `server/handlers.py` for a route that the generic handler does not fit. A route is `deprecated`
    in favour of `successor`. `condition_path` is where a request with a condition has to be sent.
    """

    name: str
    function: Callable[[_SessionT, _RequestT], _AnswerT] = field(repr=False)
    access: Access
    summary: str
    description: str = ""
    request: type[_RequestT]
    answer: Any = None
    line: Any = None
    """The type of a line that the docs show, where the answer has lines of JSON."""
    other_media: tuple[str, ...] = ()
    """Media types of the answer that a client may request instead of JSON."""
    method: str = "GET"
    path: str | None = None
    tag: str = "queries"
    errors: tuple[int, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    tools: tuple[Tool, ...] = ()
    writes: bool = False
    """Runs in the threads of writers, and is finished also when the client goes away."""
    streams: bool = False
    """Answers with lines of JSON that are sent as they are made."""
    immediate: bool = False
    """Does not read storage, so it runs without waiting for a thread."""
    public: bool = False
    """Needs no token."""
    extension: bool = False
    """Goes beyond the common wire contract."""
    change_errors: bool = False
    """Errors have the body `ChangeErrorOutput`."""
    exact_query: bool = False
    """Unknown parameters of the query string are refused."""
    large_body: bool = False
    invalid_body_code: str = "body_invalid"
    condition_path: str | None = None
    handler: str | None = None
    successor: str | None = None

    def __call__(self, session: _SessionT, request: _RequestT) -> _AnswerT:
        """Check the declared access, then run the operation.

        Raises:
            OmniError: the caller may not do this, or the operation failed.
        """
        self.access.check(session, request)
        return self.function(session, request)

    @property
    def parameters(self) -> tuple[RequestParameter, ...]:
        """The members of the request in the path, the query string or the headers."""
        return request_parameters(self.request)

    @property
    def body(self) -> RequestBody | None:
        """The body of the request."""
        return request_body(self.request)

    def variant(self, **changes: Any) -> Operation[_SessionT, _RequestT, _AnswerT]:  # noqa: ANN401
        """Return the same operation under another name and path."""
        return replace(self, **{"links": (), "tools": (), **changes})


def operation(
    *,
    name: str,
    access: Access,
    summary: str,
    route: str | None = None,
    **facts: Any,  # noqa: ANN401 - the fields of Operation
) -> Callable[
    [Callable[[_SessionT, _RequestT], _AnswerT]], Operation[_SessionT, _RequestT, _AnswerT]
]:
    """Declare a function as an operation; its docstring is the description.

    The types of the request and of the answer are those of its signature; lines of text are an
    answer that streams. `route` is a method and a path of a graph, as in `GET /tags`, with the
    statuses that such operations have in common.
    """
    if route is not None:
        method, _, path = route.partition(" ")
        facts = {"method": method, "path": f"{GRAPH_PATH}{path}", **facts}
        facts.setdefault("errors", WRITE_ERRORS if facts.get("writes") else (400, 404))

    def declare(
        function: Callable[[_SessionT, _RequestT], _AnswerT],
    ) -> Operation[_SessionT, _RequestT, _AnswerT]:
        _, request, answer = get_type_hints(function).values()
        streams = answer == Iterator[str]
        if streams or not _is_struct(answer):
            answer = NDJSON if streams else None
        return Operation(
            name=name,
            function=function,
            access=access,
            summary=summary,
            description=inspect.getdoc(function) or summary,
            **{"request": request, "answer": answer, "streams": streams, **facts},
        )

    return declare


def _is_struct(answer: Any) -> bool:  # noqa: ANN401 - a type, or several
    return all(
        isinstance(one, type) and issubclass(one, Struct) for one in get_args(answer) or [answer]
    )
