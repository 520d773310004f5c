"""Syntax tree of a `.gq` file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from omnigraph.lang.source import NO_SPAN, Name, SyntaxNode, TextSpan, TypeExpr
from omnigraph.types import Scalar

ANONYMOUS = "_"
"""The variable `$_`: never bound, may repeat, connects nothing."""


# --- expressions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal(SyntaxNode):
    """A constant. Date and DateTime literals hold their text; the type checker reads it."""

    scalar: Scalar
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class ListLiteral(SyntaxNode):
    """`[a, b, c]`; nesting is kept so that the type checker can report it with its span."""

    items: tuple[Literal | ListLiteral, ...]


@dataclass(frozen=True, slots=True)
class Variable(SyntaxNode):
    """`$name`: a parameter or a binding."""

    name: str


@dataclass(frozen=True, slots=True)
class PropertyAccess(SyntaxNode):
    """`$variable.property`."""

    variable: Variable
    property: Name


@dataclass(frozen=True, slots=True)
class CallExpression(SyntaxNode):
    """`function(arguments)`; `distinct` is written before the first argument."""

    function: Name
    arguments: tuple[Expr, ...] = ()
    distinct: bool = False


class ArithmeticOperator(StrEnum):
    """Arithmetic operators; `*`, `/` and `%` bind closer than `+` and `-`."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"

    @property
    def precedence(self) -> int:
        """How close the operator binds: higher binds closer."""
        return 1 if self in (ArithmeticOperator.ADD, ArithmeticOperator.SUBTRACT) else 2


@dataclass(frozen=True, slots=True)
class ArithmeticExpression(SyntaxNode):
    """`left operator right`."""

    left: Expr
    operator: ArithmeticOperator
    right: Expr


@dataclass(frozen=True, slots=True)
class CaseBranch(SyntaxNode):
    """`when condition then value`."""

    condition: Condition
    value: Expr


@dataclass(frozen=True, slots=True)
class CaseExpression(SyntaxNode):
    """`case when condition then value … else value end`; no `else` means null."""

    branches: tuple[CaseBranch, ...]
    otherwise: Expr | None = None


@dataclass(frozen=True, slots=True)
class AliasRef(SyntaxNode):
    """A bare word: the alias of a projection."""

    name: str


@dataclass(frozen=True, slots=True)
class HopRange(SyntaxNode):
    """`{min,max}` after an edge; no maximum means unbounded."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class EdgePathExpression(SyntaxNode):
    """`edge{1,8}` or `<edge>{1,8}` as an argument: a way along edges of one type."""

    edge: Name
    undirected: bool = False
    hops: HopRange | None = None


Expr: TypeAlias = (
    Literal
    | ListLiteral
    | Variable
    | PropertyAccess
    | CallExpression
    | ArithmeticExpression
    | CaseExpression
    | AliasRef
    | EdgePathExpression
)
ValueExpression: TypeAlias = Literal | ListLiteral | Variable | CallExpression
"""The values a property can have in a match or a mutation; the only call is `now()`."""


# --- conditions --------------------------------------------------------------------------------


class ComparisonOperator(StrEnum):
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
class ComparisonCondition(SyntaxNode):
    """`left op right`."""

    left: Expr
    operator: ComparisonOperator
    right: Expr


@dataclass(frozen=True, slots=True)
class NullCondition(SyntaxNode):
    """`operand is null` or `operand is not null`."""

    operand: Expr
    negated: bool


@dataclass(frozen=True, slots=True)
class MembershipCondition(SyntaxNode):
    """`operand in list`."""

    operand: Expr
    choices: Expr


@dataclass(frozen=True, slots=True)
class CallCondition(SyntaxNode):
    """A predicate function standing alone: `search($d.text, "word")`."""

    call: CallExpression


@dataclass(frozen=True, slots=True)
class AndCondition(SyntaxNode):
    """Conditions joined by `and` inside a group."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class OrCondition(SyntaxNode):
    """Conditions joined by `or` inside a group."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = (
    ComparisonCondition
    | NullCondition
    | MembershipCondition
    | CallCondition
    | AndCondition
    | OrCondition
)


# --- match clauses -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`property: value` inside a binding."""

    property: Name
    value: ValueExpression


@dataclass(frozen=True, slots=True)
class BindingClause(SyntaxNode):
    """`$x: Type { property: value, … }`."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class TraversalClause(SyntaxNode):
    """`$a edge $b`, `$a <edge> $b`, `$a $w:edge{1,3} $b`."""

    src: Variable
    edge: Name
    dst: Variable
    edge_variable: Variable | None = None
    undirected: bool = False
    hops: HopRange | None = None


@dataclass(frozen=True, slots=True)
class FilterClause(SyntaxNode):
    """A condition as a clause of its own."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class NegationClause(SyntaxNode):
    """`not { clauses }`."""

    clauses: tuple[MatchClause, ...]


@dataclass(frozen=True, slots=True)
class ExistsClause(SyntaxNode):
    """`exists { clauses }`."""

    clauses: tuple[MatchClause, ...]


@dataclass(frozen=True, slots=True)
class OptionalClause(SyntaxNode):
    """`optional { clauses }`."""

    clauses: tuple[MatchClause, ...]


BlockClause: TypeAlias = NegationClause | ExistsClause | OptionalClause
"""The clauses that hold clauses."""
MatchClause: TypeAlias = BindingClause | TraversalClause | FilterClause | BlockClause


# --- bodies ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Projection(SyntaxNode):
    """`expr as alias`."""

    expr: Expr
    alias: Name | None = None


class SortDirection(StrEnum):
    """A written ordering direction."""

    ASC = "asc"
    DESC = "desc"


@dataclass(frozen=True, slots=True)
class OrderingTerm(SyntaxNode):
    """`expr asc|desc`; no direction means the natural one of the expression."""

    expr: Expr
    direction: SortDirection | None = None


CountExpression: TypeAlias = Literal | Variable
"""The operand of `limit` and `offset`."""


@dataclass(frozen=True, slots=True)
class ReadBody:
    """`match { } return { } order { } limit n offset n`."""

    clauses: tuple[MatchClause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False
    orderings: tuple[OrderingTerm, ...] = ()
    limit: CountExpression | None = None
    offset: CountExpression | None = None
    block_spans: tuple[TextSpan, TextSpan, TextSpan] = field(default=(NO_SPAN,) * 3, compare=False)
    """Spans of the match, return and order blocks."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property: value` in an insert or update."""

    property: Name
    value: ValueExpression


@dataclass(frozen=True, slots=True)
class MutationCondition:
    """`property op value` in a mutation's `where`."""

    property: Name
    operator: ComparisonOperator
    value: ValueExpression


@dataclass(frozen=True, slots=True)
class InsertStatement(SyntaxNode):
    """`insert Type { assignments }`."""

    type_name: Name
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class UpdateStatement(SyntaxNode):
    """`update Type set { assignments } where tests`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    tests: tuple[MutationCondition, ...]


@dataclass(frozen=True, slots=True)
class DeleteStatement(SyntaxNode):
    """`delete Type where tests`."""

    type_name: Name
    tests: tuple[MutationCondition, ...]


MutationStatement: TypeAlias = InsertStatement | UpdateStatement | DeleteStatement


@dataclass(frozen=True, slots=True)
class MutationBody:
    """One or more statements, executed in order."""

    statements: tuple[MutationStatement, ...]


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """`$name: Type`."""

    variable: Variable
    type: TypeExpr


@dataclass(frozen=True, slots=True)
class QueryAnnotation(SyntaxNode):
    """`@description("…")`, `@instruction("…")` or `@check("…")`; the span is the string's."""

    name: Name
    text: str


@dataclass(frozen=True, slots=True)
class QueryDecl(SyntaxNode):
    """`query name(parameters) @annotations { body }`.

    A text may also be the body of one query; that is then called `query`.
    """

    name: Name
    parameters: tuple[ParameterDeclaration, ...]
    annotations: tuple[QueryAnnotation, ...]
    body: ReadBody | MutationBody
    is_anonymous: bool = False

    @property
    def is_mutation(self) -> bool:
        """Whether running this query may change the graph."""
        return isinstance(self.body, MutationBody)


@dataclass(frozen=True, slots=True)
class QueryTree:
    """A whole `.gq` file."""

    queries: tuple[QueryDecl, ...] = ()
