"""Resolve one property declaration: its type, its annotations, its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.catalog.defaults import DEFAULT, default_annotation, default_unsupported_reason
from omnigraph.catalog.model import (
    COLUMN_CONSTRAINTS,
    Annotation,
    Embed,
    Metric,
    Property,
    TypeKind,
)
from omnigraph.lang import Code, DiagnosticReport
from omnigraph.lang.codes import Severity
from omnigraph.lang.schema_tree import AnnotationDecl, ArgumentKind, NamedArgument, PropertyDecl
from omnigraph.lang.source import TextSpan, TypeExpr
from omnigraph.types import PropertyType, Scalar

RESERVED_COLUMN_NAMES = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
"""Names the storage engine keeps for itself."""

_TEXT_ANNOTATIONS = ("description", "instruction")

EDGE_KEY = "@key(src, dst)"
"""The shortest key of an edge type, for messages."""


@dataclass(frozen=True, slots=True)
class SchemaCheckContext:
    """Where resolution reports to, and how strict it is.

    A schema that was accepted once must stay readable: rules that came later than the format are
    errors for a new schema and warnings for a persisted one.
    """

    report: DiagnosticReport
    persisted: bool = False

    def of_type(self, kind: TypeKind, name: str) -> DeclaringType:
        """Return the context of one declaration."""
        return DeclaringType(self.report, self.persisted, kind, name)

    def error(self, code: Code, message: str, span: TextSpan, *, hint: str | None = None) -> None:
        """Refuse something no accepted schema can contain."""
        self.report.add(code, message, span, hint=hint)

    def error_if_new(
        self, code: Code, message: str, span: TextSpan, *, hint: str | None = None
    ) -> None:
        """Refuse something that older accepted schemas may contain."""
        severity = Severity.WARNING if self.persisted else Severity.ERROR
        self.report.add(code, message, span, hint=hint, severity=severity)


@dataclass(frozen=True, slots=True)
class DeclaringType(SchemaCheckContext):
    """The declaration whose properties are resolved, and where its errors are reported."""

    kind: TypeKind = TypeKind.NODE
    name: str = ""


def resolve_type(expr: TypeExpr, owner: DeclaringType) -> PropertyType | None:
    """Return the type a written one means, or None after reporting why it means none."""
    values = tuple(value.text for value in expr.enum_values)
    for index, value in enumerate(expr.enum_values):
        if value.text in values[:index]:
            message = f"enum value `{value}` is given twice"
            owner.error(Code.TYPE_INVALID, message, value.span)
    try:
        return PropertyType(
            Scalar.STRING if expr.base == "enum" else Scalar(expr.base),
            nullable=expr.nullable,
            is_list=expr.is_list,
            enum_values=values or None,
            dimension=expr.dimension,
        )
    except ValueError as error:
        owner.error(Code.TYPE_INVALID, str(error), expr.span)
        return None


def resolve_property(decl: PropertyDecl, owner: DeclaringType) -> Property | None:
    """Return the property a declaration means, or None when it has no usable type."""
    _check_name(decl, owner)
    type_ = resolve_type(decl.type, owner)
    if type_ is None:
        return None
    place = f"{owner.name}.{decl.name}"
    kept: list[Annotation] = []
    shorthands: list[str] = []
    embed: Embed | None = None
    rename_from: str | None = None
    _check_repeats(decl.annotations, owner)
    for annotation in decl.annotations:
        word = annotation.name.text
        if word in COLUMN_CONSTRAINTS:
            shorthand = _constraint_shorthand(annotation, type_, owner, place)
            if shorthand is not None:
                shorthands.append(shorthand)
        elif word == "embed":
            embed = _resolve_embed(annotation, type_, owner, place)
        elif word == "rename_from":
            rename_from = rename_source(annotation, owner)
        elif word == "instruction":
            owner.error(
                Code.CONSTRAINT_MISPLACED,
                "@instruction is only supported on node and edge types",
                annotation.span,
                hint="describe a property with `@description`",
            )
        elif word == DEFAULT:
            kept.append(_resolve_default(annotation, type_, place, owner))
        else:
            kept.append(plain_annotation(annotation, owner))
    return Property(
        name=decl.name.text,
        type=type_,
        annotations=canonical_annotations(kept),
        embed=embed,
        shorthands=tuple(sorted(set(shorthands))),
        rename_from=rename_from,
        span=decl.name.span,
    )


def header_annotations(
    annotations: Sequence[AnnotationDecl], owner: DeclaringType
) -> tuple[tuple[Annotation, ...], str | None]:
    """Return the annotations of a node or edge header and the name it was renamed from."""
    kept: list[Annotation] = []
    rename_from: str | None = None
    _check_repeats(annotations, owner)
    for annotation in annotations:
        word = annotation.name.text
        if word in COLUMN_CONSTRAINTS or word == "embed":
            if owner.kind is TypeKind.NODE:
                message = f"@{word} is only supported on node properties or as body constraint"
            else:
                message = f"@{word} is not supported on edges"
            hint = None
            if word == "key" and owner.kind is TypeKind.EDGE:
                message, hint = "@key on an edge needs its members", f"write `{EDGE_KEY}`"
            owner.error(Code.CONSTRAINT_MISPLACED, message, annotation.span, hint=hint)
        elif word == "rename_from":
            rename_from = rename_source(annotation, owner)
        else:
            kept.append(plain_annotation(annotation, owner))
    return canonical_annotations(kept), rename_from


def canonical_annotations(annotations: Sequence[Annotation]) -> tuple[Annotation, ...]:
    """Return annotations without repetition, in one order."""
    return tuple(sorted(set(annotations), key=lambda a: (a.name, a.value or "", a.named)))


def plain_annotation(decl: AnnotationDecl, owner: DeclaringType) -> Annotation:
    """Return an annotation without meaning for storage, checking the two known kinds."""
    value = decl.value.text if decl.value is not None else None
    if decl.name.text in _TEXT_ANNOTATIONS:
        is_string = decl.value is not None and decl.value.kind is ArgumentKind.STRING
        if not is_string or not (value or "").strip() or decl.named:
            owner.error(
                Code.ANNOTATION_MISUSE,
                f"@{decl.name} needs one non-blank string",
                decl.span,
                hint=f'write `@{decl.name}("…")`',
            )
    named = {argument.name.text: argument.value.text for argument in decl.named}
    return Annotation(decl.name.text, value, tuple(sorted(named.items())))


def rename_source(decl: AnnotationDecl, owner: DeclaringType) -> str | None:
    """Return the old name in `@rename_from`."""
    if decl.value is None or not decl.value.text.strip() or decl.named:
        owner.error(
            Code.ANNOTATION_MISUSE,
            "@rename_from needs exactly one non-blank name",
            decl.span,
            hint='write `@rename_from("OldName")`',
        )
        return None
    return decl.value.text


def _check_name(decl: PropertyDecl, owner: DeclaringType) -> None:
    name = decl.name.text
    if name in RESERVED_COLUMN_NAMES:
        message = f"property name `{name}` is reserved by the storage"
        owner.error(Code.RESERVED_PROPERTY, message, decl.name.span)
    elif name == "id" or (name in ("src", "dst") and owner.kind is TypeKind.EDGE):
        what = "every node and edge has" if name == "id" else "every edge has"
        hint = "give it another name, e.g. `slug` for a key of your own" if name == "id" else None
        owner.error_if_new(
            Code.RESERVED_PROPERTY,
            f"property name `{name}` is reserved: {what} a system property `{name}`",
            decl.name.span,
            hint=hint,
        )


def _check_repeats(annotations: Sequence[AnnotationDecl], owner: DeclaringType) -> None:
    """Refuse a second annotation of a kind that has meaning only once, and a repeated argument."""
    once = {*COLUMN_CONSTRAINTS, *_TEXT_ANNOTATIONS, DEFAULT, "embed", "rename_from"}
    seen: set[str] = set()
    for annotation in annotations:
        word = annotation.name.text
        if word in once and word in seen:
            message = f"@{word} is given more than once"
            owner.error(Code.ANNOTATION_MISUSE, message, annotation.span)
        seen.add(word)
        arguments: set[str] = set()
        for argument in annotation.named:
            if argument.name.text in arguments:
                message = f"argument `{argument.name}=` is given twice in @{word}"
                owner.error_if_new(Code.ANNOTATION_MISUSE, message, argument.name.span)
            arguments.add(argument.name.text)


def _constraint_shorthand(
    decl: AnnotationDecl,
    type_: PropertyType,
    owner: DeclaringType,
    place: str,
) -> str | None:
    """Return the word of a constraint beside a property, or None after reporting why not."""
    word = decl.name.text
    if decl.value is not None:
        owner.error(Code.ANNOTATION_MISUSE, f"@{word} takes no value here", decl.span)
        return None
    if owner.kind is TypeKind.EDGE and word == "key":
        message = f"@key is not supported on edge property {place}"
        name = place.rpartition(".")[2]
        hint = f"write `@key(src, dst, {name})` behind the endpoint types"
        owner.error(Code.CONSTRAINT_MISPLACED, message, decl.span, hint=hint)
        return None
    kind = property_kind(type_)
    if kind is not None and not (kind == "vector" and word == "index"):
        message = f"@{word} is not supported on {kind} property {place}"
        owner.error(Code.CONSTRAINT_UNSUPPORTED, message, decl.span)
        return None
    metric = index_metric(decl.named, owner)
    if metric is not None and kind != "vector":
        report_metric_on_non_vector(place, type_, decl.span, owner)
        return None
    return word if metric in (None, Metric.COSINE) else f"{word}:{metric}"


def index_metric(named: Sequence[NamedArgument], owner: DeclaringType) -> Metric | None:
    """Return the metric the arguments of `@index` name, if they do."""
    resolved: Metric | None = None
    for argument in named:
        if argument.name.text != "metric":
            message = f"unknown argument `{argument.name}=` in @index"
            hint = "@index takes only `metric=`"
            owner.error(Code.ANNOTATION_MISUSE, message, argument.name.span, hint=hint)
            continue
        text = argument.value.text
        if argument.value.kind is ArgumentKind.STRING and text in {str(m) for m in Metric}:
            resolved = Metric(text)
        else:
            choices = ", ".join(f'"{metric}"' for metric in Metric)
            message, hint = f"unknown metric `{text}`", f"the metrics are {choices}"
            owner.error(Code.ANNOTATION_MISUSE, message, argument.value.span, hint=hint)
    return resolved


def report_metric_on_non_vector(
    place: str, type_: PropertyType, span: TextSpan, owner: DeclaringType
) -> None:
    """Report a metric on a property that is not a vector."""
    message = f"@index(metric=) needs a Vector, {place} is {type_}"
    hint = "leave the metric out: `@index`"
    owner.error(Code.CONSTRAINT_UNSUPPORTED, message, span, hint=hint)


def property_kind(type_: PropertyType) -> str | None:
    """Name the kinds of property on which constraints are limited."""
    if type_.is_list:
        return "list"
    return {Scalar.VECTOR: "vector", Scalar.BLOB: "blob"}.get(type_.scalar)


def _resolve_embed(
    decl: AnnotationDecl,
    type_: PropertyType,
    owner: DeclaringType,
    place: str,
) -> Embed | None:
    if owner.kind is TypeKind.EDGE:
        message = f"@embed is not supported on edge property {place}"
        owner.error(Code.CONSTRAINT_MISPLACED, message, decl.span)
        return None
    if type_.scalar is not Scalar.VECTOR:
        kind = property_kind(type_) or str(type_.scalar)
        message = f"@embed is not supported on {kind} property {place}"
        owner.error(Code.EMBED_MISUSE, message, decl.span, hint="put it on a `Vector(n)` property")
        return None
    if decl.value is None or not decl.value.text.strip():
        owner.error(
            Code.EMBED_MISUSE,
            f"@embed on {place} needs the name of a String property",
            decl.span,
            hint="write `@embed(title)`",
        )
        return None
    model: str | None = None
    for named in decl.named:
        if named.name.text == "model":
            model = named.value.text
        else:
            owner.error(
                Code.EMBED_MISUSE,
                f"unknown argument `{named.name}=` in @embed",
                named.name.span,
                hint="@embed takes only `model=`",
            )
    return Embed(decl.value.text, model)


def _resolve_default(
    decl: AnnotationDecl, type_: PropertyType, place: str, owner: DeclaringType
) -> Annotation:
    """Return `@default` in its one form; accepted schemas may have any value."""
    annotation = plain_annotation(decl, owner)
    problem, hint = (
        default_unsupported_reason(type_),
        "make the property required, or leave the default out",
    )
    if problem is None and (annotation.value is None or annotation.named):
        problem, hint = "it takes exactly one value", "write `@default(0)`"
    if problem is None:
        try:
            return default_annotation(type_, annotation.value or "")
        except ValueError as error:
            problem, hint = str(error), f"give a value of type {type_}"
    message = f"@default on {place} is invalid: {problem}"
    owner.error_if_new(Code.DEFAULT_MISUSE, message, decl.span, hint=hint)
    return annotation
