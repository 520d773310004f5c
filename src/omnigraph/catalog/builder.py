"""Resolve a `SchemaTree` into a `Catalog`, reporting every error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from omnigraph.catalog.constraints import LocatedConstraint, check_constraints, resolve_constraint
from omnigraph.catalog.model import (
    Cardinality,
    Catalog,
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

_DeclT = TypeVar("_DeclT", InterfaceDecl, NodeDecl, EdgeDecl)


def load_catalog(text: str, name: str = "<schema>", *, persisted: bool = False) -> Catalog:
    """Read and resolve a schema; raise SchemaError with every problem found.

    >>> catalog = load_catalog("node Port { code: String @key }")
    >>> catalog.nodes["Port"].key
    ('code',)
    """
    report = report_for_text(text, name, Code.SCHEMA_UNREADABLE)
    catalog = read_catalog(report, persisted=persisted)
    if report.errors:
        raise SchemaError(report.in_order())
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
    admission = SchemaCheckContext(report, persisted)
    interfaces = {
        decl.name.text: _build_interface(decl, admission)
        for decl in _unique_declarations(tree.declarations, InterfaceDecl, admission)
    }
    nodes = {
        decl.name.text: _build_node(decl, interfaces, admission)
        for decl in _unique_declarations(tree.declarations, NodeDecl, admission)
    }
    edge_decls = _unique_declarations(tree.declarations, EdgeDecl, admission)
    _check_folded_names(edge_decls, admission)
    endpoint = _make_endpoint_check(nodes, interfaces, admission)
    edges = {decl.name.text: _build_edge(decl, endpoint, admission) for decl in edge_decls}
    return Catalog(interfaces, nodes, edges)


def _unique_declarations(
    declarations: Iterable[Declaration], kind: type[_DeclT], admission: SchemaCheckContext
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
            admission.error(Code.DUPLICATE_TYPE, message, decl.name.span)
        else:
            by_name[decl.name.text] = decl
    return list(by_name.values())


def _build_interface(decl: InterfaceDecl, admission: SchemaCheckContext) -> InterfaceType:
    owner = DeclaringType(TypeKind.INTERFACE, decl.name.text)
    properties = _own_properties(decl.members, owner, admission)
    return InterfaceType(name=decl.name.text, properties=properties, span=decl.name.span)


def _own_properties(
    members: Sequence[Member], owner: DeclaringType, admission: SchemaCheckContext
) -> dict[str, Property]:
    properties: dict[str, Property] = {}
    for member in members:
        if not isinstance(member, PropertyDecl):
            continue
        property_ = resolve_property(member, owner, admission)
        if member.name.text in properties:
            message = f"duplicate property `{member.name}` on {owner.kind} {owner.name}"
            admission.error(Code.DUPLICATE_PROPERTY, message, member.name.span)
        elif property_ is not None:
            properties[member.name.text] = property_
    return properties


def _build_node(
    decl: NodeDecl, interfaces: dict[str, InterfaceType], admission: SchemaCheckContext
) -> NodeType:
    owner = DeclaringType(TypeKind.NODE, decl.name.text)
    annotations, rename_from = header_annotations(decl.annotations, owner, admission)
    properties = _own_properties(decl.members, owner, admission)
    implemented = _implemented_interfaces(decl, interfaces, admission)
    for interface, name in implemented:
        _inherit_properties(interface, name, properties, owner, admission)
    for property_ in properties.values():
        if property_.embed is not None:
            _check_embed(property_, property_.embed, properties, owner, admission)
    placed = _located_constraints(decl.members, properties, owner, admission)
    return NodeType(
        name=decl.name.text,
        properties={p.name: replace(p, shorthands=()) for p in properties.values()},
        constraints=check_constraints(placed, properties, owner, admission),
        interfaces=tuple(sorted({interface.name for interface, _ in implemented})),
        annotations=annotations,
        rename_from=rename_from,
        span=decl.name.span,
    )


def _implemented_interfaces(
    decl: NodeDecl, interfaces: dict[str, InterfaceType], admission: SchemaCheckContext
) -> list[tuple[InterfaceType, Name]]:
    resolved: dict[str, tuple[InterfaceType, Name]] = {}
    for name in decl.implements:
        interface = interfaces.get(name.text)
        if interface is None:
            admission.error(
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
    admission: SchemaCheckContext,
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
                admission.error(
                    Code.INTERFACE_MISMATCH,
                    f"property {owner.name}.{inherited.name} is {existing.type}, "
                    f"but interface {interface.name} declares it as {inherited.type}",
                    existing.span,
                )
        elif _property_semantics(existing) != _property_semantics(inherited):
            others = ", ".join(existing.satisfies)
            admission.error(
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


def _property_semantics(property_: Property) -> tuple[object, ...]:
    return (property_.type, property_.annotations, property_.embed, property_.shorthands)


def _check_embed(
    property_: Property,
    embed: Embed,
    properties: dict[str, Property],
    owner: DeclaringType,
    admission: SchemaCheckContext,
) -> None:
    source = properties.get(embed.source)
    place = f"{owner.name}.{property_.name}"
    if source is None:
        admission.error(
            Code.EMBED_MISUSE,
            f"@embed on {place} names unknown source property `{embed.source}`",
            property_.span,
            hint=did_you_mean(embed.source, [p.name for p in properties.values() if p.type.text]),
        )
    elif not source.type.text:
        admission.error(
            Code.EMBED_MISUSE,
            f"@embed on {place} needs a String source, {owner.name}.{source.name} is {source.type}",
            property_.span,
        )


def _located_constraints(
    members: Sequence[Member],
    properties: dict[str, Property],
    owner: DeclaringType,
    admission: SchemaCheckContext,
) -> list[LocatedConstraint]:
    """Return shorthands and body constraints alike, in the order of the source."""
    placed = [
        LocatedConstraint(shorthand_constraint(word, property_.name), property_.span)
        for property_ in properties.values()
        for word in property_.shorthands
    ]
    for member in members:
        if isinstance(member, ConstraintDecl):
            resolved = resolve_constraint(member, owner, admission)
            if resolved is not None:
                placed.append(resolved)
    return sorted(placed, key=lambda item: item.span)


def _check_folded_names(decls: Sequence[EdgeDecl], admission: SchemaCheckContext) -> None:
    seen: dict[str, Name] = {}
    for decl in decls:
        other = seen.setdefault(decl.name.text.lower(), decl.name)
        if other is not decl.name:
            admission.error(
                Code.EDGE_NAME_COLLISION,
                f"edge name collision after case folding: `{other}` and `{decl.name}`",
                decl.name.span,
                hint="queries find edges whatever the case, so names must differ by more",
            )


def _make_endpoint_check(
    nodes: dict[str, NodeType], interfaces: dict[str, InterfaceType], admission: SchemaCheckContext
) -> Callable[[EdgeDecl, Name], str]:
    def check(decl: EdgeDecl, name: Name) -> str:
        if name.text not in nodes:
            hint = did_you_mean(name.text, nodes)
            if name.text in interfaces:
                hint = "an interface cannot be an endpoint; name a node type"
            admission.error(
                Code.UNKNOWN_ENDPOINT,
                f"edge {decl.name} connects unknown node type `{name}`",
                name.span,
                hint=hint,
            )
        return name.text

    return check


def _build_edge(
    decl: EdgeDecl, endpoint: Callable[[EdgeDecl, Name], str], admission: SchemaCheckContext
) -> EdgeType:
    owner = DeclaringType(TypeKind.EDGE, decl.name.text)
    annotations, rename_from = header_annotations(decl.annotations, owner, admission)
    properties = _own_properties(decl.members, owner, admission)
    placed = _located_constraints(decl.members, properties, owner, admission)
    return EdgeType(
        name=decl.name.text,
        src=endpoint(decl, decl.src),
        dst=endpoint(decl, decl.dst),
        properties={p.name: replace(p, shorthands=()) for p in properties.values()},
        cardinality=_cardinality(decl, admission),
        constraints=check_constraints(placed, properties, owner, admission),
        annotations=annotations,
        rename_from=rename_from,
        span=decl.name.span,
    )


def _cardinality(decl: EdgeDecl, admission: SchemaCheckContext) -> Cardinality:
    if decl.cardinality is None:
        return Cardinality()
    minimum, maximum = decl.cardinality.minimum, decl.cardinality.maximum
    if maximum is not None and minimum > maximum:
        admission.error(
            Code.CARDINALITY_INVALID,
            f"@card minimum {minimum} exceeds maximum {maximum}",
            decl.cardinality.span,
        )
    return Cardinality(minimum, maximum)
