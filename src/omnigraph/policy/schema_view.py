"""Reduce a schema to what an actor may see: what is left out does not exist for them.

An edge type needs both its node types. A property whose vectors are made from a text that is not
shown is not shown either. A rule whose mask names a property the type does not have, or one that
its ids are made from, does not show the type at all: so a rename never shows what was masked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from omnigraph.catalog import AcceptedSchema, AcceptedType, TypeKind
from omnigraph.catalog.model import (
    Definition,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    constraint_columns,
)
from omnigraph.lang import parse_schema, print_schema
from omnigraph.lang.schema_tree import (
    ConstraintDecl,
    Declaration,
    EdgeDecl,
    InterfaceDecl,
    Member,
    NodeDecl,
    SchemaTree,
)
from omnigraph.lang.source import Name
from omnigraph.policy.permissions import TypeScope

_SYSTEM_PROPERTIES = frozenset({"id", "src", "dst"})


@dataclass(frozen=True, slots=True)
class SchemaView:
    """A schema that shows a part of another, with the same identities, and its text."""

    schema: AcceptedSchema
    source: str


def reduce_schema(schema: AcceptedSchema, source: str, scope: TypeScope) -> SchemaView:
    """Return what a scope shows of a schema."""
    shown = {
        type_.entity: names
        for kind in (TypeKind.NODE, TypeKind.EDGE)
        for type_ in schema.of_kind(kind)
        if (names := _visible_properties(type_.definition, scope)) is not None
    }
    for edge in schema.of_kind(TypeKind.EDGE):
        assert isinstance(edge.definition, EdgeType), "an edge type is one"
        ends = (edge.definition.src, edge.definition.dst)
        if not all(f"node:{end}" in shown for end in ends):
            shown.pop(edge.entity, None)
    kept = _visible_interfaces(schema, shown)
    types = (_reduce_type(type_, shown, kept) for type_ in schema.types)
    reduced = AcceptedSchema(schema.domain, tuple(t for t in types if t is not None))
    return SchemaView(reduced, _reduce_source(source, reduced))


def _visible_properties(definition: Definition, scope: TypeScope) -> frozenset[str] | None:
    """Return the properties of a type that are shown, None when the type is not."""
    properties = definition.properties
    key = () if isinstance(definition, InterfaceType) else definition.key
    shown = [
        frozenset(properties) - _with_derived_vectors(properties, masked)
        for masked in scope.masks_of(definition.name)
        if masked <= properties.keys() and not masked.intersection(key)
    ]
    return frozenset().union(*shown) if shown else None


def _with_derived_vectors(properties: Mapping[str, Property], masked: Collection[str]) -> set[str]:
    derived = (p.name for p in properties.values() if p.embed and p.embed.source in masked)
    return {*masked, *derived}


def _visible_interfaces(
    schema: AcceptedSchema, shown: Mapping[str, frozenset[str]]
) -> dict[str, set[str]]:
    """Return, for each node type that is shown, the interfaces of which it still has all."""
    visible: dict[str, set[str]] = {}
    for type_ in schema.of_kind(TypeKind.NODE):
        if type_.entity in shown and isinstance(type_.definition, NodeType):
            interfaces = schema.catalog.interfaces
            visible[type_.name] = {
                name
                for name in type_.definition.interfaces
                if interfaces[name].properties.keys() <= shown[type_.entity]
            }
    return visible


def _reduce_type(
    type_: AcceptedType, shown: Mapping[str, frozenset[str]], kept: Mapping[str, set[str]]
) -> AcceptedType | None:
    definition = type_.definition
    if isinstance(definition, InterfaceType):
        return type_ if any(type_.name in names for names in kept.values()) else None
    if type_.entity not in shown:
        return None
    names = shown[type_.entity]
    reduced = _restrict_properties(definition, names)
    if isinstance(reduced, NodeType):
        interfaces = kept[type_.name]
        reduced = replace(
            reduced,
            interfaces=tuple(name for name in reduced.interfaces if name in interfaces),
            properties={
                n: _restrict_interfaces(p, interfaces) for n, p in reduced.properties.items()
            },
        )
    ids = {name: id_ for name, id_ in type_.property_ids.items() if name in names}
    return replace(type_, definition=reduced, property_ids=ids)


def _restrict_properties(
    definition: NodeType | EdgeType, names: frozenset[str]
) -> NodeType | EdgeType:
    """Return a type with some of its properties, and the constraints on those alone."""
    return replace(
        definition,
        properties={name: p for name, p in definition.properties.items() if name in names},
        constraints=tuple(
            c
            for c in definition.constraints
            if {*constraint_columns(c)} <= names | _SYSTEM_PROPERTIES
        ),
    )


def _restrict_interfaces(property_: Property, interfaces: set[str]) -> Property:
    satisfies = tuple(name for name in property_.satisfies if name in interfaces)
    direct = property_.declared_directly or not satisfies
    return replace(property_, satisfies=satisfies, declared_directly=direct)


# --- text --------------------------------------------------------------------------------------


def _reduce_source(source: str, schema: AcceptedSchema) -> str:
    """Return the declarations of a text that a reduced schema has."""
    declared = parse_schema(source).declarations
    interfaces = {d.name.text: d for d in declared if isinstance(d, InterfaceDecl)}
    shown = (_reduce_declaration(d, schema, interfaces) for d in declared)
    return print_schema(SchemaTree(tuple(d for d in shown if d is not None)))


def _reduce_declaration(
    declaration: Declaration, schema: AcceptedSchema, interfaces: Mapping[str, InterfaceDecl]
) -> Declaration | None:
    name, catalog = declaration.name.text, schema.catalog
    match declaration:
        case InterfaceDecl():
            return declaration if name in catalog.interfaces else None
        case NodeDecl():
            node = catalog.nodes.get(name)
            if node is None:
                return None
            implements = tuple(n for n in declaration.implements if n.text in node.interfaces)
            # Properties of an interface that is not fully visible are declared on the type itself.
            lost = (
                interfaces[n.text].members for n in declaration.implements if n not in implements
            )
            own = {m.name.text for m in declaration.members if not isinstance(m, ConstraintDecl)}
            inherited = {m.name.text: m for part in lost for m in part if m.name.text not in own}
            members = (*inherited.values(), *declaration.members)
            shown = _visible_members(members, node.properties)
            return replace(declaration, implements=implements, members=shown)
        case EdgeDecl():
            edge = catalog.edges.get(name)
            if edge is None:
                return None
            return replace(
                declaration, members=_visible_members(declaration.members, edge.properties)
            )


def _visible_members(
    members: Iterable[Member], properties: Mapping[str, Property]
) -> tuple[Member, ...]:
    names = properties.keys() | _SYSTEM_PROPERTIES
    return tuple(m for m in members if _member_properties(m) <= names)


def _member_properties(member: Member) -> set[str]:
    """Return the properties a member is about."""
    if isinstance(member, ConstraintDecl):
        return {argument.text for argument in member.arguments if isinstance(argument, Name)}
    return {member.name.text}
