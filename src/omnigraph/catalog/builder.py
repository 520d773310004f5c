"""Resolve a `SchemaTree` into a `Catalog`, reporting every error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from omnigraph.catalog.constraints import LocatedConstraint, check_constraints, resolve_constraint
from omnigraph.catalog.model import (
    Cardinality,
    Catalog,
    Constraint,
    EdgeType,
    Embed,
    InterfaceType,
    NodeType,
    Property,
    TypeKind,
    shorthand_constraint,
)
from omnigraph.catalog.properties import (
    DeclaringType,
    SchemaCheckContext,
    header_annotations,
    resolve_property,
)
from omnigraph.lang import (
    Code,
    DiagnosticReport,
    SchemaError,
    did_you_mean,
    read_schema,
    report_for_text,
)
from omnigraph.lang.schema_tree import (
    ConstraintDecl,
    Declaration,
    EdgeDecl,
    InterfaceDecl,
    Member,
    NodeDecl,
    PropertyDecl,
    SchemaTree,
)
from omnigraph.lang.source import Name

_SEMANTICS = ("type", "annotations", "embed", "shorthands")
"""What interfaces that give a node the same property have to agree on."""
_DeclT = TypeVar("_DeclT", InterfaceDecl, NodeDecl, EdgeDecl)


def load_catalog(text: str, name: str = "<schema>", *, persisted: bool = False) -> Catalog:
    """Read and resolve a schema; raise SchemaError with every problem found.

    >>> catalog = load_catalog("node Port { code: String @key }")
    >>> catalog.nodes["Port"].key
    ('code',)
    """
    report = report_for_text(text, name, Code.SCHEMA_UNREADABLE)
    catalog = read_catalog(report, persisted=persisted)
    report.raise_errors(SchemaError)
    return catalog


def read_catalog(report: DiagnosticReport, *, persisted: bool = False) -> Catalog:
    """Resolve the report's source; errors are added to the report."""
    tree = read_schema(report)
    if report.errors:
        return Catalog()
    return build_catalog(tree, report, persisted=persisted)


def build_catalog(
    tree: SchemaTree, report: DiagnosticReport, *, persisted: bool = False
) -> Catalog:
    """Resolve every name of a schema and check every rule.

    `persisted` is for schemas accepted before: rules younger than the format only warn.
    """
    context = SchemaCheckContext(report, persisted)
    interfaces = {
        decl.name.text: _build_interface(decl, context)
        for decl in _unique_declarations(tree.declarations, InterfaceDecl, context)
    }
    nodes = {
        decl.name.text: _build_node(decl, interfaces, context)
        for decl in _unique_declarations(tree.declarations, NodeDecl, context)
    }
    edge_decls = _unique_declarations(tree.declarations, EdgeDecl, context)
    _check_folded_names(edge_decls, context)
    for decl in edge_decls:
        for end in (decl.src, decl.dst):
            if end.text not in nodes:
                hint = did_you_mean(end.text, nodes)
                if end.text in interfaces:
                    hint = "an interface cannot be an endpoint; name a node type"
                message = f"edge {decl.name} connects unknown node type `{end}`"
                context.error(Code.UNKNOWN_ENDPOINT, message, end.span, hint=hint)
    edges = {decl.name.text: _build_edge(decl, context) for decl in edge_decls}
    return Catalog(interfaces, nodes, edges)


def _unique_declarations(
    declarations: Iterable[Declaration], kind: type[_DeclT], context: SchemaCheckContext
) -> list[_DeclT]:
    """Return the declarations of one kind, reporting those whose name is taken."""
    by_name: dict[str, _DeclT] = {}
    for decl in declarations:
        if not isinstance(decl, kind):
            continue
        if decl.name.text in by_name:
            word = kind.__name__.removesuffix("Decl").lower()
            what = "interface" if word == "interface" else f"{word} type"
            message = f"duplicate {what} `{decl.name}`"
            context.error(Code.DUPLICATE_TYPE, message, decl.name.span)
        else:
            by_name[decl.name.text] = decl
    return list(by_name.values())


def _build_interface(decl: InterfaceDecl, context: SchemaCheckContext) -> InterfaceType:
    owner = context.of_type(TypeKind.INTERFACE, decl.name.text)
    properties = _own_properties(decl.members, owner)
    return InterfaceType(name=decl.name.text, properties=properties, span=decl.name.span)


def _own_properties(members: Sequence[Member], owner: DeclaringType) -> dict[str, Property]:
    properties: dict[str, Property] = {}
    for member in members:
        if not isinstance(member, PropertyDecl):
            continue
        property_ = resolve_property(member, owner)
        if member.name.text in properties:
            message = f"duplicate property `{member.name}` on {owner.kind} {owner.name}"
            owner.error(Code.DUPLICATE_PROPERTY, message, member.name.span)
        elif property_ is not None:
            properties[member.name.text] = property_
    return properties


def _build_node(
    decl: NodeDecl, interfaces: dict[str, InterfaceType], context: SchemaCheckContext
) -> NodeType:
    owner = context.of_type(TypeKind.NODE, decl.name.text)
    annotations, rename_from = header_annotations(decl.annotations, owner)
    properties = _own_properties(decl.members, owner)
    implemented = _implemented_interfaces(decl, interfaces, context)
    for interface, name in implemented:
        _inherit_properties(interface, name, properties, owner)
    for property_ in properties.values():
        if property_.embed is not None:
            _check_embed(property_, property_.embed, properties, owner)
    return NodeType(
        name=decl.name.text,
        properties={p.name: replace(p, shorthands=()) for p in properties.values()},
        constraints=_resolve_constraints(decl.members, properties, owner),
        interfaces=tuple(sorted({interface.name for interface, _ in implemented})),
        annotations=annotations,
        rename_from=rename_from,
        span=decl.name.span,
    )


def _implemented_interfaces(
    decl: NodeDecl, interfaces: dict[str, InterfaceType], context: SchemaCheckContext
) -> list[tuple[InterfaceType, Name]]:
    resolved: dict[str, tuple[InterfaceType, Name]] = {}
    for name in decl.implements:
        interface = interfaces.get(name.text)
        if interface is None:
            context.error(
                Code.UNKNOWN_INTERFACE,
                f"node {decl.name} implements unknown interface `{name}`",
                name.span,
                hint=did_you_mean(name.text, interfaces),
            )
        else:
            resolved.setdefault(name.text, (interface, name))
    return list(resolved.values())


def _inherit_properties(
    interface: InterfaceType,
    place: Name,
    properties: dict[str, Property],
    owner: DeclaringType,
) -> None:
    """Give a node the properties of an interface it implements."""
    for inherited in interface.properties.values():
        existing = properties.get(inherited.name)
        if existing is None:
            injected = replace(
                inherited, declared_directly=False, satisfies=(interface.name,), span=place.span
            )
            properties[inherited.name] = injected
            continue
        if existing.declared_directly:
            if existing.type != inherited.type:
                owner.error(
                    Code.INTERFACE_MISMATCH,
                    f"property {owner.name}.{inherited.name} is {existing.type}, "
                    f"but interface {interface.name} declares it as {inherited.type}",
                    existing.span,
                )
        elif any(getattr(existing, name) != getattr(inherited, name) for name in _SEMANTICS):
            others = ", ".join(existing.satisfies)
            owner.error(
                Code.INTERFACE_CONFLICT,
                f"interfaces {others} and {interface.name} give {owner.name}.{inherited.name} "
                "incompatible property semantics",
                place.span,
                hint=f"declare `{inherited.name}` on {owner.name} itself",
            )
        hint = existing.rename_from
        if hint is None and not existing.declared_directly:
            hint = inherited.rename_from
        satisfies = tuple(sorted({*existing.satisfies, interface.name}))
        properties[inherited.name] = replace(existing, satisfies=satisfies, rename_from=hint)


def _check_embed(
    property_: Property,
    embed: Embed,
    properties: dict[str, Property],
    owner: DeclaringType,
) -> None:
    source = properties.get(embed.source)
    place = f"{owner.name}.{property_.name}"
    if source is None:
        owner.error(
            Code.EMBED_MISUSE,
            f"@embed on {place} names unknown source property `{embed.source}`",
            property_.span,
            hint=did_you_mean(embed.source, [p.name for p in properties.values() if p.type.text]),
        )
    elif not source.type.text:
        owner.error(
            Code.EMBED_MISUSE,
            f"@embed on {place} needs a String source, {owner.name}.{source.name} is {source.type}",
            property_.span,
        )


def _resolve_constraints(
    members: Sequence[Member], properties: dict[str, Property], owner: DeclaringType
) -> tuple[Constraint, ...]:
    """Return shorthands and body constraints alike, checked in the order of the source."""
    located = [
        LocatedConstraint(shorthand_constraint(word, property_.name), property_.span)
        for property_ in properties.values()
        for word in property_.shorthands
    ]
    for member in members:
        if isinstance(member, ConstraintDecl):
            resolved = resolve_constraint(member, owner)
            if resolved is not None:
                located.append(resolved)
    return check_constraints(sorted(located, key=lambda item: item.span), properties, owner)


def _check_folded_names(decls: Sequence[EdgeDecl], context: SchemaCheckContext) -> None:
    seen: dict[str, Name] = {}
    for decl in decls:
        other = seen.setdefault(decl.name.text.lower(), decl.name)
        if other is not decl.name:
            context.error(
                Code.EDGE_NAME_COLLISION,
                f"edge name collision after case folding: `{other}` and `{decl.name}`",
                decl.name.span,
                hint="queries find edges whatever the case, so names must differ by more",
            )


def _build_edge(decl: EdgeDecl, context: SchemaCheckContext) -> EdgeType:
    owner = context.of_type(TypeKind.EDGE, decl.name.text)
    annotations, rename_from = header_annotations(decl.annotations, owner)
    properties = _own_properties(decl.members, owner)
    return EdgeType(
        name=decl.name.text,
        src=decl.src.text,
        dst=decl.dst.text,
        properties={p.name: replace(p, shorthands=()) for p in properties.values()},
        cardinality=_cardinality(decl, context),
        constraints=_resolve_constraints((*decl.keys, *decl.members), properties, owner),
        annotations=annotations,
        rename_from=rename_from,
        span=decl.name.span,
    )


def _cardinality(decl: EdgeDecl, context: SchemaCheckContext) -> Cardinality:
    if decl.cardinality is None:
        return Cardinality()
    minimum, maximum = decl.cardinality.minimum, decl.cardinality.maximum
    if maximum is not None and minimum > maximum:
        context.error(
            Code.CARDINALITY_INVALID,
            f"@card minimum {minimum} exceeds maximum {maximum}",
            decl.cardinality.span,
        )
    return Cardinality(minimum, maximum)
