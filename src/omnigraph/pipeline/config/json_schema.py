"""Generate the JSON Schema of pipeline files, for completion and checks in editors."""

from __future__ import annotations

from typing import Any

from omnigraph.pipeline.config.fields import (
    CHECK_KINDS,
    SECTIONS,
    SOURCE_KINDS,
    VERSION,
    FieldKind,
    PipelineField,
)

_SCALAR = {"type": ["string", "number", "boolean"]}
_TEXT = {"type": ["string", "number"]}
_TEXTS = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
_TEXT_MAP = {"type": "object", "additionalProperties": _SCALAR}
_VALUES: dict[FieldKind, dict[str, Any]] = {
    FieldKind.VERSION: {"const": VERSION},
    FieldKind.TEXT: _TEXT,
    FieldKind.EXPRESSION: _SCALAR,
    FieldKind.EXPRESSIONS: {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]},
    FieldKind.SQL: {"type": "string"},
    FieldKind.TEXTS: _TEXTS,
    FieldKind.LIMIT: {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^(\d+|\d{1,3}(\.\d+)?\s*%|.*\$\{.*)$"},
        ]
    },
    FieldKind.KEEP: {"type": "string", "pattern": r"^(first|last|(max|min)\s*\(.+\)|.*\$\{.*)$"},
    FieldKind.BOOL: {"type": "boolean"},
    FieldKind.SCALARS: {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    },
    FieldKind.EXPRESSION_MAP: _TEXT_MAP,
    FieldKind.ENDPOINT: {"anyOf": [_SCALAR, _TEXT_MAP]},
}


def json_schema() -> dict[str, Any]:
    """Return the schema as plain JSON values."""
    sections = {name: _section(name) for name in SECTIONS}
    top = sections.pop("pipeline")
    kinds: list[dict[str, Any]] = [{"required": [kind]} for kind in SOURCE_KINDS]
    kinds[SOURCE_KINDS.index("table")]["not"] = {"required": ["jdbc"]}  # which has a table, too
    sections["source"]["oneOf"] = kinds
    sections["check"]["oneOf"] = [{"required": [kind]} for kind in CHECK_KINDS]
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


def _described(field: PipelineField) -> dict[str, Any]:
    without = f"; without it: {field.default}" if field.default else ""
    facts: dict[str, Any] = {"description": field.about + without}
    match field.kind:
        case FieldKind.CHOICE:
            return {**facts, "enum": list(field.choices)}
        case FieldKind.SECTION:
            return {**facts, "$ref": f"#/$defs/{field.section}"}
        case FieldKind.SECTIONS:
            items = {"$ref": f"#/$defs/{field.section}"}
            return {**facts, "type": "object", "additionalProperties": items}
    return {**facts, **_VALUES[field.kind]}
