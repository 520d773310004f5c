"""HTTP routes of operations: the generic handler, and how it reads a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeAlias, get_args

import msgspec
from starlette.responses import Response

from omnigraph.errors import InvalidInput
from omnigraph.server.request import (
    RequestContext,
    check_json,
    expected_commit,
    json_response,
    refuse_condition,
)
from omnigraph.server.settings import MAX_BODY_BYTES, MAX_LOAD_BYTES
from omnigraph.server.streaming import stream_ndjson
from omnigraph.service.operations import AnyOperation
from omnigraph.service.session import GraphSession, ServiceSession
from omnigraph.service.wire.decode import decode, decode_optional
from omnigraph.service.wire.parameters import ParameterLocation, RequestParameter

RouteHandler: TypeAlias = Callable[[RequestContext], Awaitable[Response]]
OperationHandler: TypeAlias = Callable[[AnyOperation, RequestContext], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRoute:
    """One method of one path, and what answers it."""

    method: str
    path: str
    handle: RouteHandler
    operation: str
    writes: bool = False
    public: bool = False
    change_errors: bool = False
    successor: str | None = None


async def handle_operation(operation: AnyOperation, context: RequestContext) -> Response:
    """Read a request, run its operation in the threads for reads or writes, encode the answer."""
    check_condition(operation, context)
    session = session_of(operation, context)
    request = await read_request(operation, context)
    if operation.immediate:
        return json_response(msgspec.json.encode(operation(session, request)))
    if operation.streams:
        return await stream_ndjson(context, lambda: operation(session, request))
    if operation.writes:
        return await context.run_write(lambda: operation(session, request))
    return await context.answer(lambda: operation(session, request))


def session_of(operation: AnyOperation, context: RequestContext) -> GraphSession | ServiceSession:
    """Return the session on the graph of the path, or that of the server."""
    if operation.path is not None and "{graph_id}" in operation.path:
        return context.session
    return ServiceSession(context.service, context.actor)


def check_condition(operation: AnyOperation, context: RequestContext) -> None:
    """Refuse the header of a condition where it would be ignored."""
    if operation.condition_path is not None:
        names = {name: context.path(name) for name in context.request.path_params}
        path = operation.condition_path.format_map(names)
        refuse_condition(context.request, f"/graphs/{names['graph_id']}/{path}")


async def read_request(operation: AnyOperation, context: RequestContext) -> Any:  # noqa: ANN401
    """Return the request of an operation, from the path, the query string, headers and body."""
    members = read_parameters(operation, context)
    body = operation.body
    if body is None:
        return to_request(operation, members)
    limit = MAX_LOAD_BYTES if operation.large_body else MAX_BODY_BYTES
    try:
        if body.required:
            check_json(context.request)
            value = decode(await context.body(limit), body.type)
        else:
            value = decode_optional(await context.body(limit), body.type)
    except InvalidInput as error:
        if error.code == "body_invalid" != operation.invalid_body_code:
            raise InvalidInput(error.message, code=operation.invalid_body_code) from error
        raise
    return value if body.field is None else operation.request(**members, **{body.field: value})


def read_parameters(operation: AnyOperation, context: RequestContext) -> dict[str, Any]:
    """Return the members of a request that are not in its body, by the names of the fields."""
    parameters = operation.parameters
    if operation.exact_query:
        _check_query(parameters, context)
    values = {parameter: _value(parameter, context) for parameter in parameters}
    missing = [f"`{p.name}`" for p, value in values.items() if value is None and p.required]
    if missing:
        raise InvalidInput(f"{', '.join(missing)} must be given", code="parameter_missing")
    return {parameter.field: value for parameter, value in values.items() if value is not None}


def to_request(operation: AnyOperation, members: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return a request with parameters only; raise InvalidInput when one has another type."""
    request: type[msgspec.Struct] = operation.request
    names = _encoded_names(request)
    try:
        return msgspec.convert({names[field]: value for field, value in members.items()}, request)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"invalid parameter: {error}", code="parameter_invalid") from error


@cache
def _encoded_names(request: type[msgspec.Struct]) -> dict[str, str]:
    return {field.name: field.encode_name for field in msgspec.structs.fields(request)}


def _value(parameter: RequestParameter, context: RequestContext) -> Any:  # noqa: ANN401 - by its type
    if parameter.location is ParameterLocation.PATH:
        return context.path(parameter.name)
    if parameter.location is ParameterLocation.HEADER:
        if parameter.required:
            return expected_commit(context.request)
        return context.request.headers.get(parameter.name)
    if parameter.is_list:
        return context.request.query_params.getlist(parameter.name)
    types = get_args(parameter.type) if isinstance(parameter.type, UnionType) else [parameter.type]
    if int in types:
        return context.query_number(parameter.name)
    text = context.query_value(parameter.name)
    return _truth(parameter, text) if bool in types and text is not None else text


def _truth(parameter: RequestParameter, text: str) -> bool:
    """Return a truth value; a word that was overlooked would load or verify less than requested."""
    if text not in ("true", "false"):
        message = f"`{parameter.name}` is `true` or `false`, not `{text[:64]}`"
        raise InvalidInput(message, code="parameter_invalid")
    return text == "true"


def _check_query(parameters: tuple[RequestParameter, ...], context: RequestContext) -> None:
    names = [
        parameter.name for parameter in parameters if parameter.location is ParameterLocation.QUERY
    ]
    for name in context.request.query_params:
        if name not in names:
            message = f"unknown parameter `{name[:64]}`; valid ones are {', '.join(names)}"
            raise InvalidInput(message, code="parameter_unknown")
