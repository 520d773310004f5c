"""Typed expressions, predicates and match patterns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias, assert_never

from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.plan.functions import FunctionKind, FunctionSpec
from omnigraph.types import PropertyType, Scalar

# ----------------------------------------------------------------------
# Directions and hop bounds


class Direction(StrEnum):
    """Which way an edge is followed from the first endpoint to the second."""

    OUT = "out"
    IN = "in"
    BOTH = "both"

    @property
    def reversed(self) -> Direction:
        """The same edges seen from the second endpoint."""
        return {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}.get(self, self)


ANY_LENGTH = 2**31
"""The maximum number of hops where no bound is written."""


@dataclass(frozen=True, slots=True)
class Hops:
    """How many edges are followed, at least and at most."""

    minimum: int = 1
    maximum: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.maximum:
            raise ValueError(f"hops {self.minimum}..{self.maximum} are out of order")

    def __str__(self) -> str:
        return f"{{{self.minimum},{'' if self.maximum == ANY_LENGTH else self.maximum}}}"

    @property
    def is_single(self) -> bool:
        """Whether exactly one edge is followed."""
        return self.minimum == self.maximum == 1


ONE_HOP = Hops()


class EntityKind(StrEnum):
    """What a binding refers to."""

    NODE = "node"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class Binding:
    """A query variable that refers to one entity per row."""

    name: str
    kind: EntityKind
    type_name: str

    @property
    def is_named(self) -> bool:
        """Whether the author named it; each `$_` becomes a binding called `_#n`."""
        return not self.name.startswith("_#")


_NO_VALUE = PropertyType(Scalar.STRING, nullable=True)

# --- expressions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, already converted to the value it means."""

    value: Any
    type: PropertyType


@dataclass(frozen=True, slots=True)
class ParameterRef:
    """A declared parameter."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class PropertyRef:
    """A property of a bound entity; a bare variable is its `id`."""

    variable: str
    property: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class EdgePath:
    """A way along edges of one type, as an argument of a function; it has no value of its own."""

    edge: str
    direction: Direction
    hops: Hops
    type: PropertyType = _NO_VALUE


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call that fits its row of the function table."""

    function: FunctionSpec
    arguments: tuple[Expression, ...]
    type: PropertyType
    distinct: bool = False

    def __post_init__(self) -> None:
        if not self.function.takes(len(self.arguments)):
            raise ValueError(f"{self.function.name} cannot take {len(self.arguments)} arguments")
        if self.distinct and not self.function.allows_distinct:
            raise ValueError(f"{self.function.name} cannot be distinct")


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition holds, else `otherwise`, else null."""

    branches: tuple[tuple[Predicate, Expression], ...]
    otherwise: Expression | None
    type: PropertyType

    def __post_init__(self) -> None:
        if not self.branches:
            raise ValueError("a case has branches")

    @property
    def values(self) -> tuple[Expression, ...]:
        """The values it may have."""
        last = () if self.otherwise is None else (self.otherwise,)
        return (*(value for _, value in self.branches), *last)


Expression: TypeAlias = Constant | ParameterRef | PropertyRef | EdgePath | FunctionCall | Case


def is_constant(expression: Expression) -> bool:
    """Return whether an expression is a literal, a parameter or a call like `now()`."""
    is_value = isinstance(expression, Constant | ParameterRef)
    return is_value or is_call(expression, FunctionKind.CONSTANT)


def is_computed(expression: Expression) -> bool:
    """Return whether an expression is made of other values of the row."""
    return isinstance(expression, Case) or is_call(expression, FunctionKind.SCALAR)


def is_row_value(expression: Expression) -> bool:
    """Return whether the value of each row depends on that row alone."""
    is_path = isinstance(expression, EdgePath | FunctionCall)
    return not is_path or is_constant(expression) or is_computed(expression)


def is_call(expression: Expression, kind: FunctionKind) -> bool:
    """Return whether an expression is a call of a function of this kind."""
    return isinstance(expression, FunctionCall) and expression.function.kind is kind


def subexpressions(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and every one below it, in the order of the text."""
    yield expression
    if isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from subexpressions(argument)
    elif isinstance(expression, Case):
        for condition, _ in expression.branches:
            for operand in predicate_operands(condition):
                yield from subexpressions(operand)
        for value in expression.values:
            yield from subexpressions(value)


def property_refs(expression: Expression) -> Iterator[PropertyRef]:
    """Yield every property an expression reads."""
    return (part for part in subexpressions(expression) if isinstance(part, PropertyRef))


# --- predicates --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compare:
    """`left operator right`; anything compared with null does not match."""

    left: Expression
    operator: ComparisonOperator
    right: Expression

    def __post_init__(self) -> None:
        left, right = self.left.type, self.right.type
        if self.operator is ComparisonOperator.CONTAINS:
            fits = (left.is_list and left.element.comparable_with(right)) or (
                left.text and right.text
            )
        elif self.operator is ComparisonOperator.STARTS_WITH:
            fits = left.text and right.text
        else:
            fits = left.comparable_with(right) and left.orderable and right.orderable
        if not fits:
            raise ValueError(f"cannot compare {left} {self.operator} {right}")


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand is null`, or the contrary."""

    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsIn:
    """`operand in choices`; a null operand does not match."""

    operand: Expression
    choices: Expression

    def __post_init__(self) -> None:
        if not self.choices.type.is_list:
            raise ValueError(f"{self.choices.type} is not a list of choices")
        if not self.choices.type.element.comparable_with(self.operand.type):
            raise ValueError(f"cannot look for {self.operand.type} in {self.choices.type}")


@dataclass(frozen=True, slots=True)
class PredicateCall:
    """A predicate function is true."""

    call: FunctionCall

    def __post_init__(self) -> None:
        if self.call.type.scalar is not Scalar.BOOL:
            raise ValueError(f"{self.call.function.name} is not a predicate")


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Predicate, ...]


Predicate: TypeAlias = Compare | IsNull | IsIn | PredicateCall | And | Or


def predicate_variables(predicate: Predicate) -> frozenset[str]:
    """Return the bindings a predicate speaks of."""
    return frozenset(ref.variable for ref in predicate_refs(predicate))


def has_predicate_call(predicate: Predicate) -> bool:
    """Return whether a predicate searches texts."""
    match predicate:
        case PredicateCall():
            return True
        case And(parts=parts) | Or(parts=parts):
            return any(map(has_predicate_call, parts))
        case _:
            return False


def predicate_refs(predicate: Predicate) -> Iterator[PropertyRef]:
    """Yield every property a predicate reads."""
    return (ref for operand in predicate_operands(predicate) for ref in property_refs(operand))


def predicate_operands(predicate: Predicate) -> Iterator[Expression]:
    """Yield the expressions a predicate compares or calls, in the order of the text."""
    match predicate:
        case Compare(left=left, right=right) | IsIn(operand=left, choices=right):
            yield from (left, right)
        case IsNull(operand=operand) | PredicateCall(call=operand):
            yield operand
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from predicate_operands(part)
        case _ as unreachable:
            assert_never(unreachable)


# ----------------------------------------------------------------------
# Type-checked match blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternStep:
    """A traversal between two bindings.

    `is_reversed`: it is followed from the endpoint written second. Of bounds that begin above
    one hop, a self-loop makes that a difference.
    """

    src: Binding
    edge: str
    dst: Binding
    direction: Direction
    hops: Hops = ONE_HOP
    edge_binding: Binding | None = None
    is_reversed: bool = False

    def __post_init__(self) -> None:
        if self.edge_binding is not None and not self.hops.is_single:
            raise ValueError("an edge binding needs a single hop")

    @property
    def reversed(self) -> PatternStep:
        """The same step from its second endpoint."""
        return replace(
            self,
            src=self.dst,
            dst=self.src,
            direction=self.direction.reversed,
            is_reversed=not self.is_reversed,
        )


@dataclass(slots=True)
class MatchPattern:
    """Bindings declared, steps between them, filters, and patterns about each row.

    A row matches none of the `negations`, all of the `existences`, and is extended by what the
    `optionals` match.

    `declared` lists the bindings of `$x: T` clauses in the order of the text; other bindings are
    introduced by steps. Inside a block, bindings of the enclosing rows are not listed.
    """

    declared: list[Binding] = field(default_factory=list)
    steps: list[PatternStep] = field(default_factory=list)
    filters: list[Predicate] = field(default_factory=list)
    negations: list[MatchPattern] = field(default_factory=list)
    existences: list[MatchPattern] = field(default_factory=list)
    optionals: list[MatchPattern] = field(default_factory=list)
