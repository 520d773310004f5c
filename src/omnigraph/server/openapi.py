"""The OpenAPI document of the operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from types import UnionType
from typing import Any

import msgspec

from omnigraph.service import wire
from omnigraph.service.operations import AnyOperation
from omnigraph.service.operations.operation import NDJSON, OCTETS
from omnigraph.service.wire.parameters import (
    NoRequest,
    ParameterLocation,
    RequestBody,
    RequestParameter,
)
from omnigraph.version import __version__

_REF = "#/components/schemas/{name}"
_BLOB_HEADERS = ("Accept-Ranges", "Content-Length", "ETag", "Omnigraph-Snapshot-Id")
_NO_BODY = (302, 304)


def build_openapi(operations: Sequence[AnyOperation], *, authenticated: bool) -> bytes:
    """Return the document as JSON; security is described if there are tokens."""
    served = [operation for operation in operations if operation.path is not None]
    described = _OpenApiBuilder(served, authenticated=authenticated)
    paths: dict[str, dict[str, Any]] = {}
    for operation in served:
        methods = paths.setdefault(operation.path or "", {})
        methods[operation.method.lower()] = described.one(operation)
    components: dict[str, Any] = {"schemas": described.schemas()}
    if authenticated:
        components["securitySchemes"] = {"bearer_token": {"type": "http", "scheme": "bearer"}}
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Omnigraph API", "version": __version__},
            "paths": paths,
            "components": components,
        }
    )


class _OpenApiBuilder:
    """Describes operations and the structs of their bodies and answers."""

    def __init__(self, operations: Sequence[AnyOperation], *, authenticated: bool) -> None:
        self._authenticated = authenticated
        shapes = {shape for shape in vars(wire).values() if _is_body(shape)}
        for operation in operations:
            shapes |= {operation.answer, None if operation.body is None else operation.body.type}
        structs = sorted(
            (shape for shape in shapes - {NoRequest, bytes} if isinstance(shape, type)),
            key=lambda shape: shape.__name__,
        )
        self._components = msgspec.json.schema_components(structs, ref_template=_REF)[1]

    def schemas(self) -> dict[str, Any]:
        """Return the schemas of all structs by name."""
        either = [{"$ref": _REF.format(name=name)} for name in ("ReadOutput", "ChangeOutput")]
        schemas = {name: _strip_schema(schema) for name, schema in self._components.items()}
        return dict(sorted({**schemas, "InvokeStoredQueryResponse": {"oneOf": either}}.items()))

    def one(self, operation: AnyOperation) -> dict[str, Any]:
        """Describe one operation."""
        names = re.findall(r"{(\w+)}", operation.path or "")
        facts: dict[str, Any] = {
            "operationId": operation.name,
            "tags": [operation.tag],
            "summary": operation.summary,
            "description": operation.description,
            "parameters": [
                *(
                    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                    for name in names
                ),
                *(
                    self._parameter(operation, parameter)
                    for parameter in operation.parameters
                    if parameter.location is not ParameterLocation.PATH
                ),
            ],
            "responses": self._responses(operation),
        }
        if operation.body is not None:
            facts["requestBody"] = self._body(operation, operation.body)
        if operation.successor is not None:
            facts["deprecated"] = True
        if self._authenticated and not operation.public:
            facts["security"] = [{"bearer_token": []}]
        return facts

    def _parameter(self, operation: AnyOperation, parameter: RequestParameter) -> dict[str, Any]:
        example = operation.example.get(parameter.name)
        return {
            "name": parameter.name,
            "in": str(parameter.location),
            "required": parameter.required,
            "schema": self._schema(parameter.schema),
            **({} if example is None else {"example": example}),
        }

    def _body(self, operation: AnyOperation, body: RequestBody) -> dict[str, Any]:
        if body.type is bytes:
            return {"content": {NDJSON: {"schema": {"type": "string"}}}, "required": True}
        schema = self._schema(body.type)
        if not body.required:
            schema = {"oneOf": [{"type": "null"}, schema]}
        example = {"example": dict(operation.example)} if operation.example else {}
        content = {"application/json": {"schema": schema, **example}}
        return {"content": content, **({"required": True} if body.required else {})}

    def _responses(self, operation: AnyOperation) -> dict[str, Any]:
        shape = "ChangeErrorOutput" if operation.change_errors else "ErrorOutput"
        wrong = {"application/json": {"schema": {"$ref": _REF.format(name=shape)}}}
        guarded = () if operation.public else (401, 403)
        responses = {"200": self._success(operation)}
        if operation.answer == OCTETS:
            responses["206"] = _blob_response(
                self._content(operation), (*_BLOB_HEADERS, "Content-Range")
            )
        for status in sorted({*operation.errors, *guarded}):
            answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
            if operation.method != "HEAD" and status not in _NO_BODY:
                answer["content"] = wrong
            responses[str(status)] = answer
        return responses

    def _success(self, operation: AnyOperation) -> dict[str, Any]:
        if operation.tag == "blobs":
            return _blob_response(self._content(operation), _BLOB_HEADERS)
        links = {link.operation: link.to_openapi() for link in operation.links}
        content = self._content(operation)
        return {"description": "OK", **content, **({"links": links} if links else {})}

    def _content(self, operation: AnyOperation) -> dict[str, Any]:
        answer = operation.answer
        if answer is None:
            return {}
        if answer == OCTETS:
            return {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}
        if isinstance(answer, str):
            line = operation.line
            return {"content": {answer: {} if line is None else {"schema": self._schema(line)}}}
        if isinstance(answer, UnionType):
            schema = {"$ref": _REF.format(name="InvokeStoredQueryResponse")}
        else:
            schema = self._schema(answer)
        content: dict[str, Any] = {"application/json": {"schema": schema}}
        return {"content": content | {media: {} for media in operation.other_media}}

    def _schema(self, shape: Any) -> dict[str, Any]:  # noqa: ANN401 - a shape, or plain Python types
        [schema], _ = msgspec.json.schema_components([shape], ref_template=_REF)
        plain: dict[str, Any] = _strip_schema(schema)
        return plain


def _is_body(shape: object) -> bool:
    """Return whether something is a struct or an enum of the contract."""
    return (
        isinstance(shape, type)
        and shape.__module__.startswith(f"{wire.__name__}.")
        and shape.__module__ != NoRequest.__module__
        and not shape.__name__.endswith("Query")
    )


def _blob_response(content: dict[str, Any], headers: Sequence[str]) -> dict[str, Any]:
    described = {name: {"schema": {"type": "string"}} for name in headers}
    return {"description": "OK", **content, "headers": described}


def _strip_schema(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Leave out titles and defaults."""
    if isinstance(schema, list):
        return [_strip_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _strip_schema(value) for name, value in part.items()}
        if key == "properties"
        else _strip_schema(part)
        for key, part in schema.items()
        if key not in ("title", "default")
    }
