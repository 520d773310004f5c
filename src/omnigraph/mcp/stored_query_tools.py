"""Stored queries as MCP tools: their parameters are the arguments of the tool."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET

from omnigraph.mcp.tools import page_rows, to_json_value
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.stored import invoke as invoke_stored_query
from omnigraph.service.operations.tool_arguments import (
    BranchArguments,
    PagedArguments,
    QueryArguments,
    argument_schema,
)
from omnigraph.service.session import GraphSession
from omnigraph.service.stored_queries import StoredQuery

_JSON_TYPES: Mapping[wire.ParamKind, Mapping[str, Any]] = MappingProxyType(
    {
        wire.ParamKind.STRING: {"type": "string"},
        wire.ParamKind.BOOL: {"type": "boolean"},
        wire.ParamKind.INT: {"type": "integer"},
        # JSON numbers of many clients hold 53 bits.
        wire.ParamKind.BIGINT: {"type": "string", "pattern": r"^-?\d+$"},
        wire.ParamKind.FLOAT: {"type": "number"},
        wire.ParamKind.DATE: {"type": "string", "format": "date"},
        wire.ParamKind.DATETIME: {"type": "string", "format": "date-time"},
        wire.ParamKind.BLOB: {"type": "string", "contentEncoding": "base64"},
    }
)
ESCAPE_PREFIX = "_"
"""Prefix of arguments that are not parameters of the stored query."""
_RESERVED_ARGUMENTS = ("branch", "snapshot", "skip", "limit")


def required_actions(stored: StoredQuery) -> tuple[PolicyAction, PolicyAction]:
    """Return the policy actions a caller needs to run it."""
    return (
        PolicyAction.INVOKE_QUERY,
        PolicyAction.CHANGE if stored.is_mutation else PolicyAction.READ,
    )


def tool_description(entry: wire.QueryCatalogEntry) -> str:
    """Return the description that agents read."""
    does = "changes data" if entry.mutation else "reads"
    texts = [entry.description or f"Stored query that {does}.", entry.instruction or ""]
    return "\n".join(text for text in texts if text)


def tool_schema(entry: wire.QueryCatalogEntry) -> dict[str, Any]:
    """Return the JSON Schema of its arguments."""
    names = _RESERVED_ARGUMENTS[:1] if entry.mutation else _RESERVED_ARGUMENTS
    properties = argument_schema(BranchArguments if entry.mutation else QueryArguments)[
        "properties"
    ]
    where = {f"{ESCAPE_PREFIX}{name}": properties[name] for name in names}
    params = {param.name: param_schema(param) for param in entry.params}
    required = [param.name for param in entry.params if not param.nullable]
    return {
        "type": "object",
        "properties": {**params, **{n: s for n, s in where.items() if n not in params}},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def param_schema(param: wire.ParamDescriptor) -> dict[str, Any]:
    """Return the JSON Schema of a parameter."""
    if param.kind is wire.ParamKind.VECTOR:
        size = param.vector_dim
        fixed = {} if size in (UNSET, None) else {"minItems": size, "maxItems": size}
        return {"type": "array", "items": {"type": "number"}, **fixed}
    if param.kind is wire.ParamKind.LIST:
        item = wire.ParamKind(param.item_kind) if param.item_kind else wire.ParamKind.STRING
        return {"type": "array", "items": dict(_JSON_TYPES[item])}
    return dict(_JSON_TYPES[param.kind])


def invoke(session: GraphSession, stored: StoredQuery, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run a stored query for an agent."""
    names = {parameter.name for parameter in stored.plan.parameters}
    params = {name: value for name, value in given.items() if name in names}
    where = {n.removeprefix(ESCAPE_PREFIX): value for n, value in given.items() if n not in names}
    part = {name: where.pop(name) for name in ("skip", "limit") if name in where}
    page = msgspec.convert(part, PagedArguments)
    request = msgspec.convert({**where, "params": params}, wire.InvokeStoredQueryRequest)
    answer = invoke_stored_query(session, wire.StoredQueryQuery(name=stored.name, body=request))
    if isinstance(answer, wire.ReadOutput):
        return page_rows(answer, page, ESCAPE_PREFIX)
    return to_json_value(answer)
