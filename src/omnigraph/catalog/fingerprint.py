"""Fingerprint of a schema: what it means, without identities.

Two texts have the same shape exactly when nothing distinguishes them but comments, layout, order,
the place of a constraint (shorthand or body) and rename hints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from omnigraph.catalog.model import (
    Annotation,
    Catalog,
    Constraint,
    EdgeType,
    NodeType,
    Property,
    canonical_constraints,
    constraint_to_json,
)

_T = TypeVar("_T")


def shape_hash(catalog: Catalog) -> str:
    """Return the fingerprint of a schema's shape.

    >>> shape_hash(Catalog())[:14]
    'sha256:d6a1b8b'
    """
    text = compact_json(schema_shape(catalog))
    return "sha256:" + sha256(text.encode()).hexdigest()


def compact_json(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def schema_shape(catalog: Catalog) -> dict[str, Any]:
    """Return the shape of a schema as plain JSON values."""
    return {
        "interfaces": [
            {"name": t.name, "properties": _properties(t.properties)}
            for t in _by_name(catalog.interfaces)
        ],
        "nodes": [_node(t) for t in _by_name(catalog.nodes)],
        "edges": [_edge(t) for t in _by_name(catalog.edges)],
    }


def annotations_shape(annotations: Iterable[Annotation]) -> list[dict[str, Any]]:
    """Return annotations as JSON values without repetition, in the order of their JSON text."""
    by_text = {compact_json(a.to_json()): a.to_json() for a in annotations}
    return [by_text[text] for text in sorted(by_text)]


def _by_name(things: Mapping[str, _T]) -> list[_T]:
    return [things[name] for name in sorted(things)]


def _node(node: NodeType) -> dict[str, Any]:
    return {
        "name": node.name,
        "implements": sorted(node.interfaces),
        "annotations": annotations_shape(node.annotations),
        "properties": _properties(node.properties),
        "constraints": _constraints(node.constraints),
    }


def _edge(edge: EdgeType) -> dict[str, Any]:
    return {
        "name": edge.name,
        "src": edge.src,
        "dst": edge.dst,
        "cardinality": {"min": edge.cardinality.minimum, "max": edge.cardinality.maximum},
        "annotations": annotations_shape(edge.annotations),
        "properties": _properties(edge.properties),
        "constraints": _constraints(edge.constraints),
    }


def _properties(properties: Mapping[str, Property]) -> list[dict[str, Any]]:
    return [_property(p) for p in _by_name(properties)]


def _property(property_: Property) -> dict[str, Any]:
    embed = property_.embed
    return {
        "name": property_.name,
        "type": property_.type.to_json(),
        "annotations": annotations_shape(property_.annotations),
        "constraints": sorted(property_.shorthands),
        "embed": None if embed is None else {"source": embed.source, "model": embed.model},
        "declared_directly": property_.declared_directly,
        "satisfies": sorted(property_.satisfies),
    }


def _constraints(constraints: Iterable[Constraint]) -> list[dict[str, Any]]:
    return [constraint_to_json(c) for c in canonical_constraints(list(constraints))]
