"""Print a `SchemaTree` as canonical `.pg` text."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.schema_tree import (
    AnnotationArgument,
    AnnotationDecl,
    ArgumentKind,
    ConstraintArgument,
    ConstraintDecl,
    Declaration,
    EdgeDecl,
    InterfaceDecl,
    Member,
    NamedArgument,
    NodeDecl,
    PropertyDecl,
    RangeBounds,
    SchemaTree,
)
from omnigraph.lang.source import Name, SourceText, TypeExpr
from omnigraph.lang.source_writer import LINE_WIDTH, SourceWriter, plain_number
from omnigraph.lang.tokens import CommentToken


def print_schema(
    tree: SchemaTree, source: SourceText | None = None, comments: Sequence[CommentToken] = ()
) -> str:
    """Return the text of a schema; with its source, comments and spelling are kept."""
    writer = SourceWriter(source, comments)
    previous: Declaration | None = None
    for declaration in tree.declarations:
        if previous is not None and not (_is_line(previous) and _is_line(declaration)):
            writer.blank()
        _declaration(writer, declaration)
        previous = declaration
    return writer.text()


def print_type(type_: TypeExpr) -> str:
    """Return the text of a written type.

    >>> print_type(TypeExpr("String", is_list=True, nullable=True))
    '[String]?'
    """
    name = type_.base
    if type_.base == "enum":
        name = f"enum({', '.join(value.text for value in type_.enum_values)})"
    elif type_.dimension is not None:
        name = f"Vector({type_.dimension})"
    return (f"[{name}]" if type_.is_list else name) + ("?" if type_.nullable else "")


def _is_line(declaration: Declaration) -> bool:
    return isinstance(declaration, EdgeDecl) and not declaration.members


def _declaration(writer: SourceWriter, declaration: Declaration) -> None:
    header = _header(writer, declaration)
    if _is_line(declaration):
        writer.line(header, declaration.span)
        return
    if not declaration.members and not writer.has_comments("{", declaration.span):
        writer.line(header + " {}", declaration.span)
        return
    writer.open(header + " {", declaration.span.start)
    for member in declaration.members:
        _member(writer, member)
    writer.close("}", declaration.span.end)


def _header(writer: SourceWriter, declaration: Declaration) -> str:
    match declaration:
        case InterfaceDecl(name=name):
            return f"interface {name}"
        case NodeDecl(name=name):
            text = f"node {name}" + _annotations(writer, declaration.annotations)
            if declaration.implements:
                text += " implements " + ", ".join(str(i) for i in declaration.implements)
            return text
        case EdgeDecl(name=name):
            text = f"edge {name}: {declaration.src} -> {declaration.dst}"
            if declaration.cardinality is not None:
                maximum = declaration.cardinality.maximum
                high = "" if maximum is None else str(maximum)
                text += f" @card({declaration.cardinality.minimum}..{high})"
            text += "".join(f" {_constraint(writer, key)}" for key in declaration.keys)
            return text + _annotations(writer, declaration.annotations)


def _member(writer: SourceWriter, member: Member) -> None:
    match member:
        case PropertyDecl():
            annotations = _annotations(writer, member.annotations)
            text = f"{member.name}: {print_type(member.type)}{annotations}"
            wide = writer.width(text) > LINE_WIDTH
            if member.type.base == "enum" and (wide or writer.has_comments("(", member.type.span)):
                _wide_enum(writer, member, annotations)
            else:
                writer.line(text, member.span)
        case ConstraintDecl():
            writer.line(_constraint(writer, member), member.span)


def _wide_enum(writer: SourceWriter, member: PropertyDecl, annotations: str) -> None:
    """Write one enum value a line."""
    values = member.type.enum_values
    writer.open(f"{member.name}: enum(", member.span.start)
    for value in values[:-1]:
        writer.line(f"{value},", value.span)
    writer.line(str(values[-1]), values[-1].span)
    mark = "?" if member.type.nullable else ""
    writer.close(f"){mark}{annotations}", member.span.end)


def _constraint(writer: SourceWriter, constraint: ConstraintDecl) -> str:
    arguments = ", ".join(_constraint_argument(writer, a) for a in constraint.arguments)
    return f"@{constraint.name}({arguments})"


def _constraint_argument(writer: SourceWriter, argument: ConstraintArgument) -> str:
    match argument:
        case Name():
            return argument.text
        case NamedArgument():
            return _named_argument(writer, argument)
        case RangeBounds(low=low, high=high, span=span):
            ends = ["" if end is None else plain_number(end) for end in (low, high)]
            return writer.number("..".join(ends), span)
        case AnnotationArgument():
            return _argument(writer, argument)


def _annotations(writer: SourceWriter, annotations: Sequence[AnnotationDecl]) -> str:
    return "".join(" " + _annotation(writer, annotation) for annotation in annotations)


def _annotation(writer: SourceWriter, annotation: AnnotationDecl) -> str:
    arguments = [] if annotation.value is None else [_argument(writer, annotation.value)]
    arguments += [_named_argument(writer, named) for named in annotation.named]
    return f"@{annotation.name}" + (f"({', '.join(arguments)})" if arguments else "")


def _named_argument(writer: SourceWriter, argument: NamedArgument) -> str:
    return f"{argument.name}={_argument(writer, argument.value)}"


def _argument(writer: SourceWriter, argument: AnnotationArgument) -> str:
    if argument.kind is ArgumentKind.STRING:
        return writer.string(argument.text, argument.span)
    return argument.text
