"""This module describes the server: an OpenAPI document of its routes and the shapes they have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from types import UnionType
from typing import Any

import msgspec

from omnigraph.server.endpoint import Endpoint, EndpointParameter
from omnigraph.server.links import LINKS
from omnigraph.service import wire
from omnigraph.version import __version__

_REF = "#/components/schemas/{name}"
_BLOB_HEADERS = ("Accept-Ranges", "Content-Length", "ETag", "Omnigraph-Snapshot-Id")
_NO_BODY = (302, 304)


def build_openapi(endpoints: Sequence[Endpoint], *, authenticated: bool) -> bytes:
    """Return the document as JSON; without tokens it speaks of no security."""
    described = _OpenApiBuilder(authenticated=authenticated)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = described.one(endpoint)
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
    """Describes endpoints and notes which shapes they have."""

    def __init__(self, *, authenticated: bool) -> None:
        self._authenticated = authenticated
        shapes = [getattr(wire, name) for name in wire.__all__ if not name.endswith("Query")]
        self._shapes = shapes
        self._components = msgspec.json.schema_components(shapes, ref_template=_REF)[1]

    def schemas(self) -> dict[str, Any]:
        """Return the shapes by name."""
        either = [{"$ref": _REF.format(name=name)} for name in ("ReadOutput", "ChangeOutput")]
        found = {name: _strip_schema(schema) for name, schema in self._components.items()}
        return dict(sorted({**found, "InvokeStoredQueryResponse": {"oneOf": either}}.items()))

    def one(self, endpoint: Endpoint) -> dict[str, Any]:
        """Describe one endpoint."""
        facts: dict[str, Any] = {
            "operationId": endpoint.operation_id,
            "tags": [endpoint.tag],
            "summary": endpoint.summary,
            "parameters": [
                *(_path_parameter(name) for name in re.findall(r"{(\w+)}", endpoint.path)),
                *(self._parameter(parameter) for parameter in endpoint.parameters),
            ],
            "responses": self._responses(endpoint),
        }
        if endpoint.body is not None:
            facts["requestBody"] = self._body(endpoint)
        if endpoint.successor is not None:
            facts["deprecated"] = True
        if self._authenticated and not endpoint.public:
            facts["security"] = [{"bearer_token": []}]
        return facts

    def _parameter(self, parameter: EndpointParameter) -> dict[str, Any]:
        schema = self._schema(parameter.schema)
        if parameter.schema is int:
            schema = {"type": "integer", "minimum": 0}
        if parameter.many:
            schema = {"type": "array", "items": schema}
        return {
            "name": parameter.name,
            "in": "header" if parameter.header else "query",
            "required": parameter.required,
            "schema": schema,
        }

    def _body(self, endpoint: Endpoint) -> dict[str, Any]:
        if isinstance(endpoint.body, str):
            return {"content": {endpoint.body: {"schema": {"type": "string"}}}, "required": True}
        schema = self._schema(endpoint.body)
        if endpoint.body_optional:
            schema = {"oneOf": [{"type": "null"}, schema]}
        content = {"application/json": {"schema": schema}}
        return {"content": content, **({} if endpoint.body_optional else {"required": True})}

    def _responses(self, endpoint: Endpoint) -> dict[str, Any]:
        shape = "ChangeErrorOutput" if endpoint.changes else "ErrorOutput"
        wrong = {"application/json": {"schema": {"$ref": _REF.format(name=shape)}}}
        guarded = () if endpoint.public else (401, 403)
        # A route of a graph answers 400 and 404 for a graph that is not served.
        found = {"200": self._success(endpoint)}
        if endpoint.operation_id == "cluster_getBlob":
            found["206"] = _blob_response(
                self._content(endpoint), (*_BLOB_HEADERS, "Content-Range")
            )
        for status in sorted({*endpoint.errors, *guarded}):
            answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
            if endpoint.method != "HEAD" and status not in _NO_BODY:
                answer["content"] = wrong
            found[str(status)] = answer
        return found

    def _success(self, endpoint: Endpoint) -> dict[str, Any]:
        if endpoint.tag == "blobs":
            return _blob_response(self._content(endpoint), _BLOB_HEADERS)
        return {"description": "OK", **self._content(endpoint), **_links(endpoint)}

    def _content(self, endpoint: Endpoint) -> dict[str, Any]:
        if endpoint.answer is None:
            return {}
        if endpoint.answer == "application/octet-stream":
            schema: dict[str, Any] = {"type": "string", "format": "binary"}
            return {"content": {endpoint.answer: {"schema": schema}}}
        if endpoint.operation_id == "cluster_captureChangeBaseline":
            last = {"$ref": _REF.format(name="ChangeBaselineRecord")}
            return {"content": {endpoint.answer: {"schema": last}}}
        if isinstance(endpoint.answer, str):
            return {"content": {endpoint.answer: {}}}
        if isinstance(endpoint.answer, UnionType):
            either = {"$ref": _REF.format(name="InvokeStoredQueryResponse")}
            return {"content": {"application/json": {"schema": either}}}
        content = {"application/json": {"schema": self._schema(endpoint.answer)}}
        if endpoint.operation_id == "cluster_query":
            content |= {
                "application/vnd.apache.arrow.stream": {},
                "application/x-ndjson": {},
            }
        return {"content": content}

    def _schema(self, shape: Any) -> dict[str, Any]:  # noqa: ANN401 - a shape, or plain Python types
        [schema], _ = msgspec.json.schema_components([shape], ref_template=_REF)
        plain: dict[str, Any] = _strip_schema(schema)
        return plain


def _links(endpoint: Endpoint) -> dict[str, Any]:
    found = LINKS.get(endpoint.operation_id, ())
    links = {link.operation: link.described() for link in found}
    return {"links": links} if links else {}


def _blob_response(content: dict[str, Any], headers: Sequence[str]) -> dict[str, Any]:
    told = {name: {"schema": {"type": "string"}} for name in headers}
    return {"description": "OK", **content, "headers": told}


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _strip_schema(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Leave out titles, and defaults that only say that something may be left out."""
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
