"""Resolve body constraints and check them against the properties they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    canonical_constraints,
    constraint_columns,
)
from omnigraph.catalog.properties import (
    DeclaringType,
    SchemaCheckContext,
    index_metric,
    property_kind,
    report_metric_on_non_vector,
)
from omnigraph.lang import Code, TextSpan, did_you_mean
from omnigraph.lang.schema_tree import (
    AnnotationArgument,
    ArgumentKind,
    ConstraintDecl,
    NamedArgument,
    RangeBounds,
)
from omnigraph.lang.source import Name
from omnigraph.types import pattern_problem

_NODE_ONLY = ("key", "range", "check")


@dataclass(frozen=True, slots=True)
class LocatedConstraint:
    """A constraint with the place it was written at, and the names it was written with."""

    constraint: Constraint
    span: TextSpan
    names: tuple[Name, ...] = ()

    def span_of(self, name: str) -> TextSpan:
        """Return where the constraint names a property."""
        return next((n.span for n in self.names if n.text == name), self.span)


def resolve_constraint(
    decl: ConstraintDecl, owner: DeclaringType, admission: SchemaCheckContext
) -> LocatedConstraint | None:
    """Return the constraint a declaration means, or None after reporting why it means none."""
    word = decl.name.text
    if owner.kind is TypeKind.EDGE and word in _NODE_ONLY:
        message = f"@{word} is not supported on edges"
        admission.error(Code.CONSTRAINT_MISPLACED, message, decl.span)
        return None
    names = tuple(argument for argument in decl.arguments if isinstance(argument, Name))
    if word in COLUMN_CONSTRAINTS:
        columns = tuple(sorted({name.text for name in names}))
        named = [argument for argument in decl.arguments if isinstance(argument, NamedArgument)]
        if word == "index" and names and len(names) + len(named) == len(decl.arguments):
            return LocatedConstraint(
                Index(columns, index_metric(named, admission)), decl.span, names
            )
        if len(names) == len(decl.arguments):
            return LocatedConstraint(COLUMN_CONSTRAINTS[word](columns), decl.span, names)
        message, example = f"@{word} takes property names", f"@{word}(a, b)"
    elif word == "range":
        match decl.arguments:
            case (Name(text=name), RangeBounds(low=low, high=high)):
                return LocatedConstraint(Range(name, low, high), decl.span, names)
        message, example = "@range takes a property and bounds", "@range(age, 0..120)"
    else:
        match decl.arguments:
            case (Name(text=name), AnnotationArgument(kind=ArgumentKind.STRING, text=pattern)):
                return LocatedConstraint(Check(name, pattern), decl.span, names)
        message, example = "@check takes a property and a pattern", '@check(code, "^[A-Z]+$")'
    admission.error(Code.ANNOTATION_MISUSE, message, decl.span, hint=f"write `{example}`")
    return None


def check_constraints(
    placed: Iterable[LocatedConstraint],
    properties: Mapping[str, Property],
    owner: DeclaringType,
    admission: SchemaCheckContext,
) -> tuple[Constraint, ...]:
    """Return the canonical constraints of a type after checking each against its properties."""
    system = (ID, SRC, DST) if owner.kind is TypeKind.EDGE else (ID,)
    checker = _ConstraintChecker({**{p.name: p for p in system}, **properties}, owner, admission)
    kept: list[Constraint] = []
    keys = 0
    for item in placed:
        if isinstance(item.constraint, Key):
            keys += 1
            if keys > 1:
                admission.error(
                    Code.MULTIPLE_KEYS,
                    f"node {owner.name} has multiple @key constraints",
                    item.span,
                    hint="write one `@key(a, b)` over all key properties",
                )
                continue
        if checker.check(item):
            kept.append(_without_defaults(item.constraint))
        if isinstance(item.constraint, Index):
            checker.check_metrics(kept, item)
    return canonical_constraints(kept)


def _without_defaults(constraint: Constraint) -> Constraint:
    """Return a constraint without redundant parts."""
    if isinstance(constraint, Index) and constraint.metric is Metric.COSINE:
        return Index(constraint.columns)
    return constraint


@dataclass(frozen=True, slots=True)
class _ConstraintChecker:
    known: Mapping[str, Property]
    owner: DeclaringType
    admission: SchemaCheckContext

    def check(self, placed: LocatedConstraint) -> bool:
        """Report the errors of one constraint; return whether its properties exist."""
        constraint, span = placed.constraint, placed.span
        match constraint:
            case Key(columns) | Unique(columns) | Index(columns):
                properties = [self._property(name, placed.span_of(name)) for name in columns]
                members = [member for member in properties if member is not None]
                for member in members:
                    self._column(constraint, member, placed.span_of(member.name))
                return len(members) == len(columns)
            case Range(name):
                property_ = self._property(name, placed.span_of(name))
                if property_ is not None:
                    self._range(constraint, property_, span)
                return property_ is not None
            case Check(name):
                property_ = self._property(name, placed.span_of(name))
                if property_ is not None:
                    self._check(constraint, property_, span)
                return property_ is not None

    def check_metrics(self, kept: Iterable[Constraint], placed: LocatedConstraint) -> None:
        """Refuse a second index of a vector by another metric."""
        columns = constraint_columns(placed.constraint)
        same = (c for c in kept if isinstance(c, Index) and c.columns == columns)
        if len({index.metric for index in same}) > 1:
            message = f"{self.owner.name}.{columns[0]} is indexed by two metrics"
            self.admission.error(Code.ANNOTATION_MISUSE, message, placed.span)

    def _property(self, name: str, span: TextSpan) -> Property | None:
        property_ = self.known.get(name)
        if property_ is None:
            hint = did_you_mean(name, self.known)
            if self.owner.kind is TypeKind.EDGE and name in ("from", "to"):
                hint = f"the endpoint is called `{'src' if name == 'from' else 'dst'}` here"
            place = f"{self.owner.kind} {self.owner.name}"
            self.admission.error(
                Code.CONSTRAINT_UNKNOWN_PROPERTY,
                f"constraint names unknown property `{name}` of {place}",
                span,
                hint=hint,
            )
        return property_

    def _column(self, constraint: Key | Unique | Index, member: Property, span: TextSpan) -> None:
        word = type(constraint).__name__.lower()
        place = f"{self.owner.name}.{member.name}"
        kind = property_kind(member.type)
        if isinstance(constraint, Key):
            if member is ID:
                message = f"@key cannot name the system property {place}"
                self.admission.error(Code.CONSTRAINT_UNSUPPORTED, message, span)
            elif not member.type.keyable:
                message = f"@key is not supported on {kind} property {place}"
                self.admission.error(Code.CONSTRAINT_UNSUPPORTED, message, span)
            elif member.type.nullable:
                self.admission.error(
                    Code.NULLABLE_KEY,
                    f"key property {place} cannot be nullable",
                    span,
                    hint=f"declare it as `{member.name}: {member.type.as_nullable(False)}`",
                )
        elif kind is not None and not (
            kind == "vector" and isinstance(constraint, Index) and len(constraint.columns) == 1
        ):
            message = f"@{word} is not supported on {kind} property {place}"
            self.admission.error_if_new(Code.CONSTRAINT_UNSUPPORTED, message, span)
        elif isinstance(constraint, Index) and constraint.metric is not None and kind is None:
            report_metric_on_non_vector(place, member.type, span, self.admission)

    def _range(self, constraint: Range, member: Property, span: TextSpan) -> None:
        place = f"{self.owner.name}.{member.name}"
        if not member.type.spec.numeric:
            message = f"@range needs a number, {place} is {member.type}"
            self.admission.error(Code.RANGE_INVALID, message, span)
        elif member.type.is_list:
            message = f"@range is not supported on list property {place}"
            self.admission.error_if_new(Code.RANGE_INVALID, message, span)
        low, high = constraint.minimum, constraint.maximum
        if low is not None and high is not None and low > high:
            message = f"@range on {place} is empty: {low} is above {high}"
            self.admission.error_if_new(Code.RANGE_INVALID, message, span)

    def _check(self, constraint: Check, member: Property, span: TextSpan) -> None:
        place = f"{self.owner.name}.{member.name}"
        if member.type.spec.wire != "string":
            message = f"@check needs a String, {place} is {member.type}"
            self.admission.error(Code.CHECK_INVALID, message, span)
        elif member.type.is_list:
            message = f"@check is not supported on list property {place}"
            self.admission.error_if_new(Code.CHECK_INVALID, message, span)
        problem = pattern_problem(constraint.pattern)
        if problem is not None:
            message = f"@check on {place} has an invalid pattern: {problem}"
            self.admission.error_if_new(Code.CHECK_INVALID, message, span)
