"""This module writes an accepted schema as a JSON document.

The document has one form only: lists are sorted, identities are 16 hexadecimal digits, and whatever
is referred to is given by identity and by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.catalog.accepted_type import AcceptedType
from omnigraph.catalog.identity import identity_text
from omnigraph.catalog.model import (
    Check,
    Constraint,
    EdgeType,
    Index,
    InterfaceType,
    NodeType,
    Property,
    Range,
    TypeKind,
    canonical_constraints,
    constraint_columns,
    constraint_word,
)
from omnigraph.catalog.shape import annotations_shape

IR_VERSION = 2
SECTIONS: Mapping[TypeKind, str] = {
    TypeKind.INTERFACE: "interfaces",
    TypeKind.NODE: "nodes",
    TypeKind.EDGE: "edges",
}

_Types = Mapping[tuple[TypeKind, str], AcceptedType]
_Json = dict[str, Any]


def write_accepted(domain: str, types: Sequence[AcceptedType]) -> _Json:
    """Return the document of a schema whose types are sorted by kind and name."""
    by_name = {(t.kind, t.name): t for t in types}
    document: _Json = {"ir_version": IR_VERSION, "schema_identity_domain": domain}
    for kind, section in SECTIONS.items():
        document[section] = [_encode_type(t, by_name) for t in types if t.kind is kind]
    return document


def _encode_type(type_: AcceptedType, types: _Types) -> _Json:
    document: _Json = {"id": identity_text(type_.id), "name": type_.name}
    if type_.incarnation is not None:
        document["incarnation"] = identity_text(type_.incarnation)
    definition = type_.definition
    if isinstance(definition, NodeType):
        interfaces = (types[TypeKind.INTERFACE, name] for name in sorted(definition.interfaces))
        document["implements"] = [_reference(i.id, i.name) for i in interfaces]
    if isinstance(definition, EdgeType):
        for end, name in (("src", definition.src), ("dst", definition.dst)):
            document[end] = _reference(types[TypeKind.NODE, name].id, name)
        low, high = definition.cardinality.minimum, definition.cardinality.maximum
        document["cardinality"] = {"min": low, "max": high}
    if not isinstance(definition, InterfaceType):
        document["annotations"] = annotations_shape(definition.annotations)
        document["constraints"] = [
            _encode_constraint(c, type_) for c in canonical_constraints([*definition.constraints])
        ]
    properties = definition.properties
    document["properties"] = [
        _encode_property(properties[name], type_, types) for name in sorted(properties)
    ]
    return document


def _encode_property(property_: Property, owner: AcceptedType, types: _Types) -> _Json:
    embed = property_.embed
    interfaces = (types[TypeKind.INTERFACE, name] for name in sorted(property_.satisfies))
    return {
        "id": identity_text(owner.property_ids[property_.name]),
        "name": property_.name,
        "type": property_.type.to_json(),
        "annotations": annotations_shape(property_.annotations),
        "constraints": sorted(property_.shorthands),
        "embed": None
        if embed is None
        else {"source": _property_reference(embed.source, owner), "model": embed.model},
        "declared_directly": property_.declared_directly,
        "satisfies": [
            {
                "interface": _reference(interface.id, interface.name),
                "property": _property_reference(property_.name, interface),
            }
            for interface in interfaces
        ],
    }


def _encode_constraint(constraint: Constraint, owner: AcceptedType) -> _Json:
    document: _Json = {
        "kind": constraint_word(constraint),
        "properties": [_property_reference(n, owner) for n in constraint_columns(constraint)],
    }
    if isinstance(constraint, Index) and constraint.metric is not None:
        document["metric"] = str(constraint.metric)
    elif isinstance(constraint, Range):
        document |= {"min": constraint.minimum, "max": constraint.maximum}
    elif isinstance(constraint, Check):
        document["pattern"] = constraint.pattern
    return document


def _property_reference(name: str, owner: AcceptedType) -> _Json:
    """Refer to a property of `owner`, or to a system property, which has no identity."""
    return _reference(owner.property_ids.get(name), name)


def _reference(identity: int | None, name: str) -> _Json:
    return {"id": None if identity is None else identity_text(identity), "name": name}
