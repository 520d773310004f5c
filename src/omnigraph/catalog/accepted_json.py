"""The JSON document of an accepted schema.

The document has one form only: lists are sorted, identities are 16 hexadecimal digits, and whatever
is referred to is given by identity and by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from reprlib import repr as brief
from typing import Any, TypeVar

from omnigraph.catalog.constraints import VALUE_CONSTRAINTS
from omnigraph.catalog.fingerprint import annotations_shape, compact_json
from omnigraph.catalog.identity import (
    IncarnationId,
    PropertyId,
    TypeId,
    identity_text,
    parse_identity,
)
from omnigraph.catalog.model import (
    COLUMN_CONSTRAINTS,
    AcceptedType,
    Annotation,
    Cardinality,
    Constraint,
    Definition,
    EdgeType,
    Embed,
    Index,
    InterfaceType,
    Metric,
    NodeType,
    Property,
    SchemaCorrupt,
    TypeKind,
    ValueConstraint,
    canonical_constraints,
    constraint_columns,
    constraint_word,
    ordered_columns,
)
from omnigraph.catalog.properties import canonical_annotations
from omnigraph.types import PropertyType

IR_VERSION = 2
SECTIONS: Mapping[TypeKind, str] = {
    TypeKind.INTERFACE: "interfaces",
    TypeKind.NODE: "nodes",
    TypeKind.EDGE: "edges",
}

_Types = Mapping[tuple[TypeKind, str], AcceptedType]
_Json = dict[str, Any]


def write_accepted_json(domain: str, types: Sequence[AcceptedType]) -> _Json:
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
    elif isinstance(constraint, ValueConstraint):
        document |= constraint.members()
    return document


def _property_reference(name: str, owner: AcceptedType) -> _Json:
    """Refer to a property of `owner`, or to a system property, which has no identity."""
    return _reference(owner.property_ids.get(name), name)


def _reference(identity: int | None, name: str) -> _Json:
    return {"id": None if identity is None else identity_text(identity), "name": name}


# ----------------------------------------------------------------------
# Reading the document
#
# A document in any other form than the one we write was damaged or made by hand, and is refused
# with
# the place where it goes wrong.


_T = TypeVar("_T")


def read_accepted_json(document: object) -> tuple[str, tuple[AcceptedType, ...]]:
    """Return domain and types of a document; raise SchemaCorrupt where a value is unusable."""
    root = _SchemaJsonObject(document, "document")
    version = root.get("ir_version", int)
    if version != IR_VERSION:
        raise SchemaCorrupt(f"ir_version is {version}, this omnigraph reads {IR_VERSION}")
    types = [
        _decode_type(kind, entry)
        for kind, section in SECTIONS.items()
        for entry in root.entries(section)
    ]
    return root.get("schema_identity_domain", str), tuple(types)


def check_canonical(document: object, canonical: object, place: str = "document") -> None:
    """Raise SchemaCorrupt at the first place where a document is not in its canonical form."""
    if type(document) is not type(canonical):
        raise SchemaCorrupt(f"{place} is {brief(document)}, expected {brief(canonical)}")
    if isinstance(document, Mapping) and isinstance(canonical, Mapping):
        for key in sorted({*document, *canonical}, key=str):
            if key not in canonical:
                raise SchemaCorrupt(f"{place} has an unknown field `{key!s:.40}`")
            if key not in document:
                raise SchemaCorrupt(f"{place} has no field `{key}`")
            check_canonical(document[key], canonical[key], f"{place}.{key}")
    elif isinstance(document, list) and isinstance(canonical, list):
        if len(document) != len(canonical):
            raise SchemaCorrupt(f"{place} repeats an entry")
        ours, theirs = (sorted(map(compact_json, items)) for items in (document, canonical))
        if document != canonical and ours == theirs:
            raise SchemaCorrupt(f"{place} is not sorted")
        for index, (item, expected) in enumerate(zip(document, canonical, strict=True)):
            check_canonical(item, expected, f"{place}[{index}]")
    elif document != canonical:
        raise SchemaCorrupt(f"{place} is {brief(document)}, expected {brief(canonical)}")


class _SchemaJsonObject:
    """One JSON object, with its path in the document."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, Mapping):
            raise SchemaCorrupt(f"{place} is {brief(value)}, expected an object")
        self.value: Mapping[str, Any] = value
        self.place = place

    def get(self, key: str, kind: type[_T]) -> _T:
        """Return a field that has exactly the given type."""
        return self.convert(key, lambda value: _require_exact_type(value, kind))

    def optional(self, key: str, kind: type[_T]) -> _T | None:
        """Return a field that is null or has exactly the given type."""
        return self.convert(key, lambda v: None if v is None else _require_exact_type(v, kind))

    def names(self, key: str) -> tuple[str, ...]:
        """Return a field that is a list of names, sorted."""
        return self.convert(key, lambda value: _sorted_names(_require_exact_type(value, list)))

    def convert(self, key: str, read: Callable[[Any], _T]) -> _T:
        """Return what `read` makes of a field, naming the field when it makes nothing."""
        if key not in self.value:
            raise SchemaCorrupt(f"{self.place} has no field `{key}`")
        try:
            return read(self.value[key])
        except (ValueError, TypeError, KeyError) as error:
            raise SchemaCorrupt(f"{self.place}.{key}: {error}") from error

    def entry(self, key: str) -> _SchemaJsonObject:
        """Return a field that is an object."""
        return _SchemaJsonObject(self.get(key, dict), f"{self.place}.{key}")

    def entries(self, key: str) -> list[_SchemaJsonObject]:
        """Return a field that is a list of objects."""
        items = self.get(key, list)
        return [_SchemaJsonObject(item, f"{self.place}.{key}[{i}]") for i, item in enumerate(items)]

    def name(self, key: str) -> str:
        """Return the name a reference carries; that its identity fits is checked at the end."""
        return self.entry(key).get("name", str)


def _require_exact_type(value: Any, kind: type[_T]) -> _T:  # noqa: ANN401 - a decode edge
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__}, found {brief(value)}")
    return value


def _decode_type(kind: TypeKind, entry: _SchemaJsonObject) -> AcceptedType:
    name = entry.get("name", str)
    properties: dict[str, Property] = {}
    property_ids: dict[str, PropertyId] = {}
    for item in entry.entries("properties"):
        property_ = _decode_property(item)
        if property_.name in properties:
            raise SchemaCorrupt(f"duplicate property `{property_.name}` on {kind}:{name}")
        properties[property_.name] = property_
        property_ids[property_.name] = PropertyId(item.convert("id", parse_identity))
    incarnation = None
    if kind is not TypeKind.INTERFACE:
        incarnation = IncarnationId(entry.convert("incarnation", parse_identity))
    return AcceptedType(
        id=TypeId(entry.convert("id", parse_identity)),
        incarnation=incarnation,
        definition=_decode_definition(kind, name, properties, entry),
        property_ids=property_ids,
    )


def _decode_definition(
    kind: TypeKind, name: str, properties: Mapping[str, Property], entry: _SchemaJsonObject
) -> Definition:
    if kind is TypeKind.INTERFACE:
        return InterfaceType(name=name, properties=properties)
    annotations = _decode_annotations(entry)
    constraints = canonical_constraints(
        [_decode_constraint(c, kind) for c in entry.entries("constraints")]
    )
    if kind is TypeKind.NODE:
        return NodeType(
            name=name,
            properties=properties,
            constraints=constraints,
            interfaces=_sorted_names(i.get("name", str) for i in entry.entries("implements")),
            annotations=annotations,
        )
    cardinality = entry.entry("cardinality")
    return EdgeType(
        name=name,
        src=entry.name("src"),
        dst=entry.name("dst"),
        properties=properties,
        cardinality=Cardinality(
            cardinality.get("min", int),
            cardinality.optional("max", int),
        ),
        constraints=constraints,
        annotations=annotations,
    )


def _decode_property(entry: _SchemaJsonObject) -> Property:
    embed: Embed | None = None
    if entry.value.get("embed") is not None:
        wire = entry.entry("embed")
        embed = Embed(wire.name("source"), wire.optional("model", str))
    return Property(
        name=entry.get("name", str),
        type=_decode_property_type(entry),
        annotations=_decode_annotations(entry),
        embed=embed,
        shorthands=entry.names("constraints"),
        declared_directly=entry.get("declared_directly", bool),
        satisfies=_sorted_names(link.name("interface") for link in entry.entries("satisfies")),
    )


def _decode_property_type(entry: _SchemaJsonObject) -> PropertyType:
    wire = entry.entry("type")
    for key in ("nullable", "list"):
        wire.get(key, bool)
    if not isinstance(wire.value.get("scalar"), Mapping):
        wire.get("scalar", str)
    if wire.optional("enum_values", list) is not None:
        wire.names("enum_values")
    return entry.convert("type", PropertyType.from_wire)


def _sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_require_exact_type(name, str) for name in names}))


def _decode_annotations(entry: _SchemaJsonObject) -> tuple[Annotation, ...]:
    annotations = []
    for item in entry.entries("annotations"):
        named = _SchemaJsonObject(item.value.get("kwargs", {}), f"{item.place}.kwargs")
        pairs = ((key, named.get(key, str)) for key in sorted(named.value))
        annotations.append(
            Annotation(item.get("name", str), item.optional("value", str), tuple(pairs))
        )
    return canonical_annotations(annotations)


def _decode_constraint(entry: _SchemaJsonObject, kind: TypeKind) -> Constraint:
    word = entry.get("kind", str)
    names = _sorted_names(reference.get("name", str) for reference in entry.entries("properties"))
    if word == "index" and "metric" in entry.value:
        metric = entry.convert("metric", Metric)
        return Index(names, None if metric is Metric.COSINE else metric)
    if word in COLUMN_CONSTRAINTS:
        constraint = COLUMN_CONSTRAINTS[word]
        return constraint(ordered_columns(names, constraint, kind))
    if len(names) != 1:
        raise SchemaCorrupt(f"{entry.place}.properties: @{word} speaks of exactly one property")
    if word not in VALUE_CONSTRAINTS:
        raise SchemaCorrupt(f"{entry.place}.kind: unknown constraint `{word:.40}`")
    spec = VALUE_CONSTRAINTS[word].type
    return spec(names[0], *(entry.convert(key, read) for key, read in spec.json_members.items()))
