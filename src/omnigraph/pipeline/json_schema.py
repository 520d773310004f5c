"""This module writes the JSON Schema of pipeline files, which editors complete and check by."""

from __future__ import annotations

from typing import Any

from omnigraph.pipeline.fields import SECTIONS, SOURCE_KINDS, VERSION, Field, Kind

_SCALAR = {"type": ["string", "number", "boolean"]}
_TEXT = {"type": ["string", "number"]}
_TEXTS = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
_TEXT_MAP = {"type": "object", "additionalProperties": _SCALAR}
_VALUES: dict[Kind, dict[str, Any]] = {
    Kind.VERSION: {"const": VERSION},
    Kind.TEXT: _TEXT,
    Kind.EXPRESSION: _SCALAR,
    Kind.EXPRESSIONS: {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]},
    Kind.SQL: {"type": "string"},
    Kind.TEXTS: _TEXTS,
    Kind.LIMIT: {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^(\d+|\d{1,3}(\.\d+)?\s*%|.*\$\{.*)$"},
        ]
    },
    Kind.KEEP: {"type": "string", "pattern": r"^(first|last|(max|min)\s*\(.+\)|.*\$\{.*)$"},
    Kind.BOOL: {"type": "boolean"},
    Kind.SCALARS: {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    },
    Kind.EXPRESSION_MAP: _TEXT_MAP,
    Kind.ENDPOINT: {"anyOf": [_SCALAR, _TEXT_MAP]},
}


def json_schema() -> dict[str, Any]:
    """Return the schema as plain JSON values."""
    sections = {name: _section(name) for name in SECTIONS}
    top = sections.pop("pipeline")
    sections["source"]["oneOf"] = [{"required": [kind]} for kind in SOURCE_KINDS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "OmniGraph pipeline",
        **top,
        "$defs": sections,
    }


def _section(name: str) -> dict[str, Any]:
    fields = SECTIONS[name]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in fields if field.required],
        "properties": {field.name: _described(field) for field in fields},
    }


def _described(field: Field) -> dict[str, Any]:
    without = f"; without it: {field.default}" if field.default else ""
    facts: dict[str, Any] = {"description": field.about + without}
    match field.kind:
        case Kind.CHOICE:
            return {**facts, "enum": list(field.choices)}
        case Kind.SECTION:
            return {**facts, "$ref": f"#/$defs/{field.section}"}
        case Kind.SECTIONS:
            items = {"$ref": f"#/$defs/{field.section}"}
            return {**facts, "type": "object", "additionalProperties": items}
    return {**facts, **_VALUES[field.kind]}
