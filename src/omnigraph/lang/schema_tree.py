"""Syntax tree of a `.pg` schema."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from omnigraph.lang.source import Name, SyntaxNode, TypeExpr


class ArgumentKind(StrEnum):
    """How an annotation argument is written."""

    STRING = "string"
    INT = "integer"
    FLOAT = "decimal number"
    BOOL = "boolean"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class AnnotationArgument(SyntaxNode):
    """One argument of an annotation; `text` is its decoded text, for every kind."""

    kind: ArgumentKind
    text: str


@dataclass(frozen=True, slots=True)
class NamedArgument:
    """`name=literal` inside an annotation or a constraint."""

    name: Name
    value: AnnotationArgument


@dataclass(frozen=True, slots=True)
class AnnotationDecl(SyntaxNode):
    """`@name`, `@name(value)` or `@name(value, key=value)`; of `@index`, `@index(key=value)`."""

    name: Name
    value: AnnotationArgument | None = None
    named: tuple[NamedArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class RangeBounds(SyntaxNode):
    """`lo..hi` with either side optional; whole numbers stay whole."""

    low: int | float | None
    high: int | float | None


ConstraintArgument: TypeAlias = Name | RangeBounds | AnnotationArgument | NamedArgument


@dataclass(frozen=True, slots=True)
class ConstraintDecl(SyntaxNode):
    """`@key(a, b)`, `@unique(a)`, `@index(a)`, `@range(p, 0..9)` or `@check(p, "re")` in a body."""

    name: Name
    arguments: tuple[ConstraintArgument, ...]


@dataclass(frozen=True, slots=True)
class PropertyDecl(SyntaxNode):
    """`name: Type @annotation…`."""

    name: Name
    type: TypeExpr
    annotations: tuple[AnnotationDecl, ...] = ()


Member: TypeAlias = PropertyDecl | ConstraintDecl


@dataclass(frozen=True, slots=True)
class InterfaceDecl(SyntaxNode):
    """`interface Name { properties }`."""

    name: Name
    members: tuple[PropertyDecl, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeDecl(SyntaxNode):
    """`node Name @annotation… implements A, B { members }`."""

    name: Name
    annotations: tuple[AnnotationDecl, ...] = ()
    implements: tuple[Name, ...] = ()
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class CardinalityDecl(SyntaxNode):
    """`@card(min..max)`; no maximum means unlimited."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class EdgeDecl(SyntaxNode):
    """`edge Name: Src -> Dst @card(0..1) @key(src, dst) @annotation… { members }`.

    `keys` are those of the header; more than one is reported later.
    """

    name: Name
    src: Name
    dst: Name
    cardinality: CardinalityDecl | None = None
    annotations: tuple[AnnotationDecl, ...] = ()
    members: tuple[Member, ...] = ()
    keys: tuple[ConstraintDecl, ...] = ()


Declaration: TypeAlias = InterfaceDecl | NodeDecl | EdgeDecl


@dataclass(frozen=True, slots=True)
class SchemaTree:
    """A whole `.pg` file."""

    declarations: tuple[Declaration, ...] = ()
