"""This module defines the tree of a `.gq` file as written."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from omnigraph.lang.source import NO_SPAN, Span
from omnigraph.lang.tree import Name, TypeExpr
from omnigraph.types import Scalar

ANONYMOUS = "_"
"""The variable `$_`: never bound, may repeat, connects nothing."""


# --- expressions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Date and DateTime literals hold their text; the type checker reads it."""

    scalar: Scalar
    value: str | int | float | bool
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b, c]`; nesting is kept so that the type checker can refuse it with its place."""

    items: tuple[Literal | ListLiteral, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: a parameter or a binding."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Access:
    """`$variable.property`."""

    variable: Variable
    property: Name
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`function(arguments)`; `distinct` stands before the first argument."""

    function: Name
    arguments: tuple[Expr, ...] = ()
    distinct: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class AliasRef:
    """A bare word: the alias of a projection."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Hops:
    """`{min,max}` after an edge; no maximum means unbounded."""

    minimum: int
    maximum: int | None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class EdgePath:
    """`edge{1,8}` or `<edge>{1,8}` as an argument: a way along edges of one type."""

    edge: Name
    undirected: bool = False
    hops: Hops | None = None
    span: Span = field(default=NO_SPAN, compare=False)


Expr: TypeAlias = Literal | ListLiteral | Variable | Access | Call | AliasRef | EdgePath
Value: TypeAlias = Literal | ListLiteral | Variable | Call
"""What may stand for a property in a match or a mutation; the only call is `now()`."""


# --- conditions --------------------------------------------------------------------------------


class Operator(StrEnum):
    """Comparison operators of filters; mutations know the first six."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`."""

    left: Expr
    operator: Operator
    right: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """`operand is null` or `operand is not null`."""

    operand: Expr
    negated: bool
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Membership:
    """`operand in list`."""

    operand: Expr
    choices: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class CallCondition:
    """A predicate function standing alone: `search($d.text, "word")`."""

    call: Call
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions joined by `and` inside a group."""

    conditions: tuple[Condition, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Conditions joined by `or` inside a group."""

    conditions: tuple[Condition, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Condition: TypeAlias = Comparison | NullTest | Membership | CallCondition | AllOf | AnyOf


# --- match clauses -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`property: value` inside a binding."""

    property: Name
    value: Value


@dataclass(frozen=True, slots=True)
class Binding:
    """`$x: Type { property: value, … }`."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$a edge $b`, `$a <edge> $b`, `$a $w:edge{1,3} $b`."""

    src: Variable
    edge: Name
    dst: Variable
    edge_variable: Variable | None = None
    undirected: bool = False
    hops: Hops | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition as a clause of its own."""

    condition: Condition
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { clauses }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Clause: TypeAlias = Binding | Traversal | Filter | Negation


# --- bodies ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Projection:
    """`expr as alias`."""

    expr: Expr
    alias: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


class Direction(StrEnum):
    """A written ordering direction."""

    ASC = "asc"
    DESC = "desc"


@dataclass(frozen=True, slots=True)
class Ordering:
    """`expr asc|desc`; no direction means the natural one of the expression."""

    expr: Expr
    direction: Direction | None = None
    span: Span = field(default=NO_SPAN, compare=False)


Count: TypeAlias = Literal | Variable
"""The operand of `limit` and `offset`."""


@dataclass(frozen=True, slots=True)
class ReadBody:
    """`match { } return { } order { } limit n offset n`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False
    orderings: tuple[Ordering, ...] = ()
    limit: Count | None = None
    offset: Count | None = None
    block_spans: tuple[Span, Span, Span] = field(default=(NO_SPAN,) * 3, compare=False)
    """Where the match, return and order blocks stand."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property: value` in an insert or update."""

    property: Name
    value: Value


@dataclass(frozen=True, slots=True)
class MutationTest:
    """`property op value` in a mutation's `where`."""

    property: Name
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { assignments }`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { assignments } where tests`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    tests: tuple[MutationTest, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where tests`."""

    type_name: Name
    tests: tuple[MutationTest, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Statement: TypeAlias = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class MutationBody:
    """One or more statements, executed in order."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name: Type`."""

    variable: Variable
    type: TypeExpr


@dataclass(frozen=True, slots=True)
class QueryAnnotation:
    """`@description("…")` or `@instruction("…")`; the span is the string's."""

    name: Name
    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class QueryDecl:
    """`query name(parameters) @annotations { body }`."""

    name: Name
    parameters: tuple[Parameter, ...]
    annotations: tuple[QueryAnnotation, ...]
    body: ReadBody | MutationBody
    span: Span = field(default=NO_SPAN, compare=False)

    @property
    def is_mutation(self) -> bool:
        """Tell whether running this query may change the graph."""
        return isinstance(self.body, MutationBody)


@dataclass(frozen=True, slots=True)
class QueryTree:
    """A whole `.gq` file."""

    queries: tuple[QueryDecl, ...] = ()
