"""The accepted schema: every type and property with its stable identity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from omnigraph.catalog.accepted_json import check_canonical, read_accepted_json, write_accepted_json
from omnigraph.catalog.identity import MAX_IDENTITY, TypeId, identity_text
from omnigraph.catalog.model import (
    SHORTHANDS,
    AcceptedType,
    Catalog,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    SchemaCorrupt,
    TypeKind,
    constraint_columns,
)
from omnigraph.catalog.properties import RESERVED_COLUMN_NAMES

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)
_DefinitionT = TypeVar("_DefinitionT", InterfaceType, NodeType, EdgeType)


@dataclass(frozen=True, slots=True)
class AcceptedSchema:
    """The types a graph has agreed to; one that contradicts itself cannot be made.

    `domain` is the ULID of the graph whose identities these are. `catalog` is what the types mean,
    with properties by name.
    """

    domain: str
    types: tuple[AcceptedType, ...] = ()
    catalog: Catalog = field(init=False, repr=False, compare=False)
    _by_name: dict[tuple[TypeKind, str], AcceptedType] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _by_id: dict[TypeId, AcceptedType] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        types = tuple(sorted(self.types, key=lambda type_: type_.order))
        object.__setattr__(self, "types", types)
        self._by_name.update({(type_.kind, type_.name): type_ for type_ in types})
        self._by_id.update({type_.id: type_ for type_ in types})
        catalog = Catalog(
            _definitions_of_kind(types, InterfaceType),
            _definitions_of_kind(types, NodeType),
            _definitions_of_kind(types, EdgeType),
        )
        object.__setattr__(self, "catalog", catalog)
        _check_schema(self)

    def find(self, kind: TypeKind, name: str) -> AcceptedType | None:
        """Return the type that has this name now."""
        return self._by_name.get((kind, name))

    def by_id(self, type_id: TypeId) -> AcceptedType | None:
        """Return the type that has this identity."""
        return self._by_id.get(type_id)

    def of_kind(self, kind: TypeKind) -> list[AcceptedType]:
        """Return the types of one kind by name."""
        return [type_ for type_ in self.types if type_.kind is kind]

    def identities(self) -> Iterator[tuple[int, str]]:
        """Yield every identity in use with its owner."""
        for type_ in self.types:
            yield type_.id, type_.entity
            if type_.incarnation is not None:
                yield type_.incarnation, f"incarnation of {type_.entity}"
            for name, property_id in type_.property_ids.items():
                yield property_id, f"{type_.entity}.{name}"

    def key_order(self, kind: TypeKind, name: str) -> tuple[str, ...]:
        """Return the members of the key of a type in the order in which they form its ids."""
        return self._by_name[kind, name].key_order

    def to_json(self) -> dict[str, Any]:
        """Return the document that is kept with the graph."""
        return write_accepted_json(self.domain, self.types)

    @classmethod
    def from_json(cls, document: object) -> AcceptedSchema:
        """Read what `to_json` wrote; raise SchemaCorrupt for anything else."""
        schema = cls(*read_accepted_json(document))
        check_canonical(document, schema.to_json())
        return schema


def _definitions_of_kind(
    types: tuple[AcceptedType, ...], definition: type[_DefinitionT]
) -> dict[str, _DefinitionT]:
    return {t.name: t.definition for t in types if isinstance(t.definition, definition)}


# --- integrity ---------------------------------------------------------------------------------


def _check_schema(schema: AcceptedSchema) -> None:
    if _ULID.fullmatch(schema.domain) is None:
        raise SchemaCorrupt(f"identity domain `{schema.domain:.40}` is not an upper-case ULID")
    _check_identities(schema)
    names: set[tuple[TypeKind, str]] = set()
    for type_ in schema.types:
        if (type_.kind, type_.name) in names:
            raise SchemaCorrupt(f"duplicate type {type_.entity}")
        names.add((type_.kind, type_.name))
        for property_ in type_.definition.properties.values():
            _check_property(property_, type_)
        match type_.definition:
            case NodeType():
                _check_constraints(type_.definition, type_, ("id",))
                _check_interfaces(type_.definition, type_, schema.catalog)
            case EdgeType():
                _check_constraints(type_.definition, type_, ("id", "src", "dst"))
                if type_.definition.key[:2] not in ((), ("src", "dst")):
                    raise SchemaCorrupt(f"the key of {type_.entity} does not start with its ends")
                for word, name in (("src", type_.definition.src), ("dst", type_.definition.dst)):
                    if name not in schema.catalog.nodes:
                        place = f"{word} of {type_.entity}"
                        raise SchemaCorrupt(f"{place} is `{name}`, which is not a node type")
            case InterfaceType():
                pass


def _check_identities(schema: AcceptedSchema) -> None:
    seen: dict[int, str] = {}
    for identity, owner in schema.identities():
        if not 1 <= identity <= MAX_IDENTITY:
            raise SchemaCorrupt(f"identity {identity} of {owner} is out of range")
        if identity in seen:
            text = identity_text(identity)
            raise SchemaCorrupt(f"identity {text} belongs to both {seen[identity]} and {owner}")
        seen[identity] = owner


def _check_property(property_: Property, owner: AcceptedType) -> None:
    place = f"{owner.entity}.{property_.name}"
    if property_.name in RESERVED_COLUMN_NAMES:
        raise SchemaCorrupt(f"property name of {place} is reserved by the storage")
    if owner.kind is TypeKind.INTERFACE:
        unknown = set(property_.shorthands) - set(SHORTHANDS)
        if unknown:
            raise SchemaCorrupt(f"{place} has unknown constraint `{min(unknown):.40}`")
    elif property_.shorthands:
        raise SchemaCorrupt(f"constraints of {place} must be declared on {owner.entity}")
    if owner.kind is not TypeKind.NODE and (property_.satisfies or not property_.declared_directly):
        raise SchemaCorrupt(f"{place} cannot come from an interface")
    if not property_.declared_directly and not property_.satisfies:
        raise SchemaCorrupt(f"{place} is not declared and comes from no interface")


def _check_interfaces(node: NodeType, owner: AcceptedType, catalog: Catalog) -> None:
    """Check that a node has the properties of its interfaces, and no other links."""
    satisfied: dict[str, set[str]] = {name: set() for name in node.properties}
    for name in node.interfaces:
        if name not in catalog.interfaces:
            raise SchemaCorrupt(f"{owner.entity} implements unknown interface:{name}")
        for declared in catalog.interfaces[name].properties.values():
            property_ = node.properties.get(declared.name)
            if property_ is None:
                raise SchemaCorrupt(f"{owner.entity} lacks interface:{name}.{declared.name}")
            if property_.type != declared.type:
                raise SchemaCorrupt(
                    f"{owner.entity}.{declared.name} is {property_.type}, "
                    f"interface:{name} declares it as {declared.type}"
                )
            satisfied[declared.name].add(name)
    for property_ in node.properties.values():
        place = f"{owner.entity}.{property_.name}"
        if set(property_.satisfies) != satisfied[property_.name]:
            raise SchemaCorrupt(f"{place} is linked to other interfaces than those that require it")
        if property_.embed is not None and property_.embed.source not in node.properties:
            raise SchemaCorrupt(f"{place} embeds unknown `{property_.embed.source:.40}`")


def _check_constraints(
    definition: NodeType | EdgeType, owner: AcceptedType, system: tuple[str, ...]
) -> None:
    for constraint in definition.constraints:
        for name in constraint_columns(constraint):
            if name not in definition.properties and name not in system:
                raise SchemaCorrupt(f"a constraint of {owner.entity} names unknown `{name:.40}`")
