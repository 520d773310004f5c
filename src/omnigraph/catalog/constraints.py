"""Constraints: the table of value constraints, and the checks of what a schema declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from omnigraph.catalog.model import (
    COLUMN_CONSTRAINTS,
    DST,
    ID,
    SRC,
    Check,
    Constraint,
    Index,
    Key,
    Metric,
    Property,
    Range,
    TypeKind,
    Unique,
    ValueConstraint,
    canonical_constraints,
    constraint_columns,
    constraint_word,
    ordered_columns,
)
from omnigraph.catalog.properties import (
    EDGE_KEY,
    DeclaringType,
    index_metric,
    property_kind,
    report_metric_on_non_vector,
)
from omnigraph.lang import Code, TextSpan, did_you_mean
from omnigraph.lang.schema_tree import (
    AnnotationArgument,
    ArgumentKind,
    ConstraintArgument,
    ConstraintDecl,
    NamedArgument,
    RangeBounds,
)
from omnigraph.lang.source import Name
from omnigraph.types import pattern_problem
from omnigraph.types.implementation import Implementation


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintSpec:
    """One kind of value constraint: how it is declared, and how values are checked.

    `@key`, `@unique` and `@index` are no rows: they decide about ids and indexes, too.
    """

    type: type[ValueConstraint]
    usage: str
    """What it takes, and an example: for messages."""
    example: str
    resolve: Callable[[str, ConstraintArgument], ValueConstraint | None]
    """Return the constraint of a property with an argument, None if the argument is none."""
    check: Callable[[Any, Property, str, TextSpan, DeclaringType], None]
    """Report what is wrong with a constraint on a property, which is called `Type.property`."""
    values: Implementation
    """`(reporter, constraint) -> None`: report the rows whose values are invalid.

    Local writes call it, and so do the workers of Spark.
    """


def _resolve_range(name: str, bounds: ConstraintArgument) -> Range | None:
    return Range(name, bounds.low, bounds.high) if isinstance(bounds, RangeBounds) else None


def _check_range(
    constraint: Range, member: Property, place: str, span: TextSpan, owner: DeclaringType
) -> None:
    if not member.type.spec.numeric:
        message = f"@range needs a number, {place} is {member.type}"
        owner.error(Code.RANGE_INVALID, message, span)
    elif member.type.is_list:
        message = f"@range is not supported on list property {place}"
        owner.error_if_new(Code.RANGE_INVALID, message, span)
    low, high = constraint.minimum, constraint.maximum
    if low is not None and high is not None and low > high:
        message = f"@range on {place} is empty: {low} is above {high}"
        owner.error_if_new(Code.RANGE_INVALID, message, span)


def _resolve_check(name: str, pattern: ConstraintArgument) -> Check | None:
    is_string = isinstance(pattern, AnnotationArgument) and pattern.kind is ArgumentKind.STRING
    return Check(name, pattern.text) if is_string else None  # type: ignore[union-attr]


def _check_pattern(
    constraint: Check, member: Property, place: str, span: TextSpan, owner: DeclaringType
) -> None:
    if member.type.spec.wire != "string":
        message = f"@check needs a String, {place} is {member.type}"
        owner.error(Code.CHECK_INVALID, message, span)
    elif member.type.is_list:
        message = f"@check is not supported on list property {place}"
        owner.error_if_new(Code.CHECK_INVALID, message, span)
    problem = pattern_problem(constraint.pattern)
    if problem is not None:
        message = f"@check on {place} has an invalid pattern: {problem}"
        owner.error_if_new(Code.CHECK_INVALID, message, span)


_BY_WORD = {
    "range": ConstraintSpec(
        type=Range,
        usage="a property and bounds",
        example="@range(age, 0..120)",
        resolve=_resolve_range,
        check=_check_range,
        values=Implementation("omnigraph.write.checks.values:check_range"),
    ),
    "check": ConstraintSpec(
        type=Check,
        usage="a property and a pattern",
        example='@check(code, "^[A-Z]+$")',
        resolve=_resolve_check,
        check=_check_pattern,
        values=Implementation("omnigraph.write.checks.values:check_pattern"),
    ),
}
VALUE_CONSTRAINTS: Mapping[str, ConstraintSpec] = MappingProxyType(_BY_WORD)


@dataclass(frozen=True, slots=True)
class LocatedConstraint:
    """A constraint with the place it was written at, and the names it was written with."""

    constraint: Constraint
    span: TextSpan
    names: tuple[Name, ...] = ()

    def span_of(self, name: str) -> TextSpan:
        """Return where the constraint names a property."""
        return next((n.span for n in self.names if n.text == name), self.span)


def resolve_constraint(decl: ConstraintDecl, owner: DeclaringType) -> LocatedConstraint | None:
    """Return the constraint a declaration means, or None after reporting why it means none."""
    word = decl.name.text
    if owner.kind is TypeKind.EDGE and word in VALUE_CONSTRAINTS:
        message = f"@{word} is not supported on edges"
        owner.error(Code.CONSTRAINT_MISPLACED, message, decl.span)
        return None
    names = tuple(argument for argument in decl.arguments if isinstance(argument, Name))
    constraint: Constraint | None = None
    if word in COLUMN_CONSTRAINTS:
        is_edge_key = owner.kind is TypeKind.EDGE and word == "key"
        usage, example = "property names", EDGE_KEY if is_edge_key else f"@{word}(a, b)"
        columns = ordered_columns((n.text for n in names), COLUMN_CONSTRAINTS[word], owner.kind)
        named = [argument for argument in decl.arguments if isinstance(argument, NamedArgument)]
        if word == "index" and names and len(names) + len(named) == len(decl.arguments):
            constraint = Index(columns, index_metric(named, owner))
        elif len(names) == len(decl.arguments):
            constraint = COLUMN_CONSTRAINTS[word](columns)
    else:
        spec = VALUE_CONSTRAINTS[word]
        usage, example = spec.usage, spec.example
        match decl.arguments:
            case (Name(text=name), argument):
                constraint = spec.resolve(name, argument)
    if constraint is not None:
        return LocatedConstraint(constraint, decl.span, names)
    message = f"@{word} takes {usage}"
    owner.error(Code.ANNOTATION_MISUSE, message, decl.span, hint=f"write `{example}`")
    return None


def check_constraints(
    located: Iterable[LocatedConstraint], properties: Mapping[str, Property], owner: DeclaringType
) -> tuple[Constraint, ...]:
    """Return the canonical constraints of a type after checking each against its properties."""
    system = (ID, SRC, DST) if owner.kind is TypeKind.EDGE else (ID,)
    checker = _ConstraintChecker({**{p.name: p for p in system}, **properties}, owner)
    kept: list[Constraint] = []
    keys = 0
    for item in located:
        if isinstance(item.constraint, Key):
            keys += 1
            if keys > 1:
                example = EDGE_KEY if owner.kind is TypeKind.EDGE else "@key(a, b)"
                owner.error(
                    Code.MULTIPLE_KEYS,
                    f"{owner.kind} {owner.name} has multiple @key constraints",
                    item.span,
                    hint=f"write one `{example}` over all key properties",
                )
                continue
            if owner.kind is TypeKind.EDGE and not _is_edge_key(item, owner):
                continue
        if checker.check(item):
            kept.append(_without_default_metric(item.constraint))
        if isinstance(item.constraint, Index):
            checker.check_metrics(kept, item)
    return canonical_constraints(kept)


def _is_edge_key(located: LocatedConstraint, owner: DeclaringType) -> bool:
    """Return whether the key of edges starts with both ends, and report one that does not."""
    names = [name.text for name in located.names]
    if names[:2] == [SRC.name, DST.name]:
        return True
    spelled = {"from": SRC.name, "to": DST.name}
    rest = [n for n in dict.fromkeys(names) if n not in (SRC.name, DST.name, *spelled)]
    owner.error(
        Code.EDGE_KEY_INVALID,
        f"the @key of edge {owner.name} does not start with `src, dst`",
        located.span,
        hint=f"write `@key({', '.join([SRC.name, DST.name, *rest])})`",
    )
    return False


def _without_default_metric(constraint: Constraint) -> Constraint:
    if isinstance(constraint, Index) and constraint.metric is Metric.COSINE:
        return Index(constraint.columns)
    return constraint


@dataclass(frozen=True, slots=True)
class _ConstraintChecker:
    properties: Mapping[str, Property]
    owner: DeclaringType

    def check(self, located: LocatedConstraint) -> bool:
        """Report the errors of one constraint; return whether its properties exist."""
        constraint = located.constraint
        columns = constraint_columns(constraint)
        properties = [self._property(name, located.span_of(name)) for name in columns]
        members = [member for member in properties if member is not None]
        for member in members:
            if isinstance(constraint, ValueConstraint):
                check = VALUE_CONSTRAINTS[constraint_word(constraint)].check
                place = f"{self.owner.name}.{member.name}"
                check(constraint, member, place, located.span, self.owner)
            else:
                self._column(constraint, member, located.span_of(member.name))
        return len(members) == len(columns)

    def check_metrics(self, kept: Iterable[Constraint], located: LocatedConstraint) -> None:
        """Refuse a second index of a vector by another metric."""
        columns = constraint_columns(located.constraint)
        same = (c for c in kept if isinstance(c, Index) and c.columns == columns)
        if len({index.metric for index in same}) > 1:
            message = f"{self.owner.name}.{columns[0]} is indexed by two metrics"
            self.owner.error(Code.ANNOTATION_MISUSE, message, located.span)

    def _property(self, name: str, span: TextSpan) -> Property | None:
        property_ = self.properties.get(name)
        if property_ is None:
            hint = did_you_mean(name, self.properties)
            if self.owner.kind is TypeKind.EDGE and name in ("from", "to"):
                hint = f"the endpoint is called `{'src' if name == 'from' else 'dst'}` here"
            place = f"{self.owner.kind} {self.owner.name}"
            self.owner.error(
                Code.CONSTRAINT_UNKNOWN_PROPERTY,
                f"constraint names unknown property `{name}` of {place}",
                span,
                hint=hint,
            )
        return property_

    def _column(self, constraint: Key | Unique | Index, member: Property, span: TextSpan) -> None:
        word = constraint_word(constraint)
        place = f"{self.owner.name}.{member.name}"
        kind = property_kind(member.type)
        if isinstance(constraint, Key):
            if member is ID:
                message = f"@key cannot name the system property {place}"
                self.owner.error(Code.CONSTRAINT_UNSUPPORTED, message, span)
            elif not member.type.keyable:
                message = f"@key is not supported on {kind} property {place}"
                self.owner.error(Code.CONSTRAINT_UNSUPPORTED, message, span)
            elif member.type.nullable:
                self.owner.error(
                    Code.NULLABLE_KEY,
                    f"key property {place} cannot be nullable",
                    span,
                    hint=f"declare it as `{member.name}: {member.type.as_nullable(False)}`",
                )
        elif kind is not None and not (
            kind == "vector" and isinstance(constraint, Index) and len(constraint.columns) == 1
        ):
            message = f"@{word} is not supported on {kind} property {place}"
            self.owner.error_if_new(Code.CONSTRAINT_UNSUPPORTED, message, span)
        elif isinstance(constraint, Index) and constraint.metric is not None and kind is None:
            report_metric_on_non_vector(place, member.type, span, self.owner)
