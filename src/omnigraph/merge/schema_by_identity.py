"""Take schema trees apart by identity, so that a rename compares as a rename.

A schema becomes nested mappings: types by identity, in each its name, its properties by identity,
its annotations and constraints. References to types and properties are written as `#identity`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from omnigraph.catalog import AcceptedSchema, AcceptedType, TypeKind
from omnigraph.lang.schema_tree import (
    AnnotationArgument,
    AnnotationDecl,
    ArgumentKind,
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

SchemaParts: TypeAlias = dict[Any, Any]
"""A declaration or a property, taken apart; what is absent has no key."""

NAME, KIND, TYPE = "name", "kind", "type"
PROPERTY, ANNOTATION, CONSTRAINT, IMPLEMENTS = "property", "annotation", "constraint", "implements"
ENDS = ("src", "dst")
CARDINALITY = "cardinality"

_KINDS: Mapping[type, TypeKind] = {
    InterfaceDecl: TypeKind.INTERFACE,
    NodeDecl: TypeKind.NODE,
    EdgeDecl: TypeKind.EDGE,
}
_RENAME_HINT = "rename_from"
_EMBED = "embed"


def split_schema(tree: SchemaTree, schema: AcceptedSchema) -> SchemaParts:
    """Return the parts of every declaration, by identity of its type."""
    return {
        type_.id: _declaration_parts(declaration, type_, schema)
        for declaration in tree.declarations
        if (type_ := schema.find(_KINDS[type(declaration)], declaration.name.text)) is not None
    }


def _declaration_parts(
    decl: Declaration, type_: AcceptedType, schema: AcceptedSchema
) -> SchemaParts:
    parts: SchemaParts = {KIND: type_.kind, NAME: decl.name.text}
    if not isinstance(decl, InterfaceDecl):
        parts |= _annotation_parts(decl.annotations, type_)
    if isinstance(decl, NodeDecl):
        for name in decl.implements:
            key = _reference(schema, TypeKind.INTERFACE, name)
            parts[IMPLEMENTS, key] = key
    if isinstance(decl, EdgeDecl):
        for end in ENDS:
            parts[end] = _reference(schema, TypeKind.NODE, getattr(decl, end))
        if decl.cardinality is not None:
            parts[CARDINALITY] = decl.cardinality
    for member in decl.members:
        if isinstance(member, PropertyDecl):
            parts[PROPERTY, type_.property_ids[member.name.text]] = {
                NAME: member.name.text,
                TYPE: member.type,
                **_annotation_parts(member.annotations, type_),
            }
    keys = decl.keys if isinstance(decl, EdgeDecl) else ()
    return parts | _constraint_parts((*keys, *decl.members), type_)


def _reference(schema: AcceptedSchema, kind: TypeKind, name: Name) -> str:
    type_ = schema.find(kind, name.text)
    return name.text if type_ is None else f"#{type_.id}"


def _annotation_parts(annotations: Iterable[AnnotationDecl], type_: AcceptedType) -> SchemaParts:
    """Return annotations by name; a rename hint has done its work when a schema is accepted."""
    parts: SchemaParts = {}
    for annotation in annotations:
        word, value = annotation.name.text, annotation.value
        if word == _RENAME_HINT:
            continue
        if word == _EMBED and value is not None and value.text in type_.property_ids:
            named = AnnotationArgument(ArgumentKind.NAME, f"#{type_.property_ids[value.text]}")
            annotation = replace(annotation, value=named)
        number = sum(key[1] == word for key in parts)
        parts[ANNOTATION, word, number] = annotation
    return parts


def _constraint_parts(members: Iterable[Member], type_: AcceptedType) -> SchemaParts:
    """Return constraints by what they speak of; several of one kind are a mapping of their own."""
    groups: dict[Any, dict[str, ConstraintDecl]] = {}
    for member in members:
        if isinstance(member, ConstraintDecl):
            arguments = tuple(
                Name(f"#{type_.property_ids[a.text]}")
                if isinstance(a, Name) and a.text in type_.property_ids
                else a
                for a in member.arguments
            )
            columns = tuple(sorted(a.text for a in arguments if isinstance(a, Name)))
            constraint = replace(member, arguments=arguments)
            groups.setdefault((CONSTRAINT, member.name.text, columns), {})[repr(constraint)] = (
                constraint
            )
    return {
        key: next(iter(group.values())) if len(group) == 1 else group
        for key, group in groups.items()
    }


# --- and together again ------------------------------------------------------------------------


@dataclass(slots=True)
class SchemaAssembler:
    """Writes parts as declarations, with the names that identities have by then.

    `dangling` are references to what is not there any more, with the type that has them.
    """

    names: Mapping[str, str]
    dangling: list[tuple[str, str, str]] = field(default_factory=list)

    def tree(self, types: Mapping[Any, SchemaParts]) -> SchemaTree:
        """Return the whole tree."""
        return SchemaTree(tuple(self._declaration(parts) for parts in types.values()))

    def _declaration(self, parts: SchemaParts) -> Declaration:
        owner = parts[NAME]
        name, annotations = Name(owner), tuple(self._annotations(parts, owner))
        properties = tuple(self._properties(parts, owner))
        constraints = tuple(self._constraints(parts, owner))
        members: tuple[Member, ...] = (*properties, *constraints)
        match parts[KIND]:
            case TypeKind.INTERFACE:
                return InterfaceDecl(name, properties)
            case TypeKind.NODE:
                implemented = tuple(
                    Name(self._name(value, owner, "implements"))
                    for key, value in parts.items()
                    if key[0] == IMPLEMENTS
                )
                return NodeDecl(name, annotations, implemented, members)
            case _:
                src, dst = (Name(self._name(parts[end], owner, "connects")) for end in ENDS)
                keys = tuple(c for c in constraints if c.name.text == "key")
                members = tuple(m for m in members if m not in keys)
                limits = parts.get(CARDINALITY)
                return EdgeDecl(name, src, dst, limits, annotations, members, keys)

    def _properties(self, parts: SchemaParts, owner: str) -> Iterator[PropertyDecl]:
        for key, value in parts.items():
            if key[0] == PROPERTY:
                annotations = tuple(self._annotations(value, owner))
                yield PropertyDecl(Name(value[NAME]), value[TYPE], annotations)

    def _annotations(self, parts: SchemaParts, owner: str) -> Iterator[AnnotationDecl]:
        for key, annotation in parts.items():
            if key[0] != ANNOTATION:
                continue
            value = annotation.value
            if key[1] == _EMBED and value is not None:
                text = self._name(value.text, owner, "embeds")
                value = replace(value, text=text)
            yield replace(annotation, value=value)

    def _constraints(self, parts: SchemaParts, owner: str) -> Iterator[ConstraintDecl]:
        for key, value in parts.items():
            if key[0] != CONSTRAINT:
                continue
            for constraint in value.values() if isinstance(value, dict) else (value,):
                arguments = tuple(
                    Name(self._name(a.text, owner, f"has @{key[1]} on"))
                    if isinstance(a, Name)
                    else a
                    for a in constraint.arguments
                )
                yield replace(constraint, arguments=arguments)

    def _name(self, reference: str, owner: str, use: str) -> str:
        if not reference.startswith("#"):
            return reference
        if reference not in self.names:
            self.dangling.append((owner, use, reference))
        return self.names.get(reference, reference)
