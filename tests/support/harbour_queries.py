"""Hypothesis strategies for queries over the harbour schema.

Most of what they draw type-checks, because a variable stands for one type throughout and is
compared with values of the right kind; now and then something is drawn that fits nowhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from omnigraph.lang import query_tree as qt
from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.lang.source import Name, TypeExpr
from omnigraph.plan import FUNCTIONS
from omnigraph.types import PropertyType, Scalar
from tests.support.plans import catalog

_T = TypeVar("_T")

NODES = {"s": "Ship", "t": "Ship", "p": "Port", "q": "Port", "n": "Note"}
EDGES = {"callsAt": ("s", "t", "p", "q"), "route": ("p", "q")}
PARAMETERS = {
    "text": PropertyType(Scalar.STRING),
    "maybe": PropertyType(Scalar.STRING, nullable=True),
    "whole": PropertyType(Scalar.I64),
    "broken": PropertyType(Scalar.F64, nullable=True),
    "day": PropertyType(Scalar.DATE),
    "instant": PropertyType(Scalar.DATE_TIME),
    "texts": PropertyType(Scalar.STRING, is_list=True),
    "vector": PropertyType(Scalar.VECTOR, dimension=3),
    "blob": PropertyType(Scalar.BLOB),
}

_WHOLES = st.integers(-5, 5) | st.sampled_from([2**31, 2**63 - 1, -(2**63)])
_LITERALS: dict[Scalar, SearchStrategy[qt.Literal]] = {
    Scalar.STRING: st.builds(
        qt.Literal, st.just(Scalar.STRING), st.sampled_from(["tug", "AAA", "", 'a "b"\n'])
    ),
    Scalar.BOOL: st.builds(qt.Literal, st.just(Scalar.BOOL), st.booleans()),
    Scalar.I64: st.builds(qt.Literal, st.just(Scalar.I64), _WHOLES),
    Scalar.F64: st.builds(qt.Literal, st.just(Scalar.F64), st.floats(-9, 9)),
    Scalar.DATE: st.builds(
        qt.Literal, st.just(Scalar.DATE), st.sampled_from(["2024-02-29", "2023-02-29"])
    ),
    Scalar.DATE_TIME: st.builds(
        qt.Literal, st.just(Scalar.DATE_TIME), st.sampled_from(["2024-01-01T10:00+02:00", "noon"])
    ),
}
_FAMILIES = {
    Scalar.STRING: ((Scalar.STRING,), ("text", "maybe")),
    Scalar.DATE: ((Scalar.DATE,), ("day",)),
    Scalar.DATE_TIME: ((Scalar.DATE_TIME,), ("instant",)),
}
_NUMBERS = ((Scalar.I64, Scalar.F64), ("whole", "broken"))
_COMPARISONS = [operator for operator in ComparisonOperator if not operator.isidentifier()]


def _variable(names: SearchStrategy[str]) -> SearchStrategy[qt.Variable]:
    return st.builds(qt.Variable, names)


def _seldom(usual: SearchStrategy[_T], odd: SearchStrategy[_T]) -> SearchStrategy[_T]:
    """Draw the odd thing once in twenty times."""
    return st.integers(0, 19).flatmap(lambda n: odd if n == 7 else usual)


def _many(items: SearchStrategy[_T], low: int = 0, high: int = 3) -> SearchStrategy[tuple[_T, ...]]:
    return st.lists(items, min_size=low, max_size=high).map(tuple)


# --- expressions -------------------------------------------------------------------------------

_any_literal = st.one_of(list(_LITERALS.values()))
_odd_name = st.sampled_from(["nope", "id", "code", "label", "on", "src", "_"])
_any_variable = _variable(st.sampled_from([*NODES, *PARAMETERS, "c", "x", "_"]))
_any_access = st.builds(qt.PropertyAccess, _any_variable, st.builds(Name, _odd_name))
_any_list = st.builds(qt.ListLiteral, _many(_any_literal))
_any_expr: SearchStrategy[qt.Expr] = st.recursive(
    st.one_of(_any_literal, _any_variable, _any_access, _any_list, st.just(qt.AliasRef("nope"))),
    lambda inner: st.builds(
        qt.CallExpression,
        st.builds(Name, st.sampled_from([*FUNCTIONS, "nope"])),
        _many(inner),
    ),
    max_leaves=4,
)


def _value(type_: PropertyType) -> SearchStrategy[qt.ValueExpression]:
    """Draw a value that can stand for a property of this type."""
    scalars, parameters = _FAMILIES.get(type_.scalar, _NUMBERS)
    choices: list[SearchStrategy[qt.ValueExpression]] = [_LITERALS[scalar] for scalar in scalars]
    choices.append(_variable(st.sampled_from(parameters)))
    if type_.scalar is Scalar.DATE_TIME:
        choices.append(st.just(qt.CallExpression(Name("now"))))
    return _seldom(st.one_of(choices), st.one_of(_any_literal, _any_variable, _any_list))


@st.composite
def _accesses(draw: DrawFn) -> tuple[qt.PropertyAccess, PropertyType]:
    """Draw a property of a node variable, with its type."""
    name = draw(st.sampled_from([*NODES]))
    properties = catalog().nodes[NODES[name]].properties
    property_ = draw(st.sampled_from(list(properties.values())))
    return qt.PropertyAccess(qt.Variable(name), Name(property_.name)), property_.type


@st.composite
def _conditions(draw: DrawFn) -> qt.Condition:
    access, type_ = draw(_accesses())
    if type_.is_list:
        return qt.ComparisonCondition(
            access, ComparisonOperator.CONTAINS, draw(_value(type_.element))
        )
    kind = draw(st.sampled_from(["compare", "compare", "compare", "null", "in", "search", "odd"]))
    if kind == "null":
        return qt.NullCondition(access, draw(st.booleans()))
    if kind == "in":
        return qt.MembershipCondition(
            access, qt.ListLiteral(draw(_many(_LITERALS[_natural(type_)])))
        )
    if kind == "search" and type_.text:
        words = _LITERALS[Scalar.STRING]
        return qt.CallCondition(qt.CallExpression(Name("search"), (access, draw(words))))
    if kind == "odd":
        operator = draw(st.sampled_from(list(ComparisonOperator)))
        return qt.ComparisonCondition(draw(_any_expr), operator, draw(_any_expr))
    operators = list(ComparisonOperator) if type_.text else _COMPARISONS
    other = _value(type_) | _accesses().map(lambda drawn: drawn[0])
    return qt.ComparisonCondition(access, draw(st.sampled_from(operators)), draw(other))


def _natural(type_: PropertyType) -> Scalar:
    return type_.scalar if type_.scalar in _FAMILIES else Scalar.I64


_condition: SearchStrategy[qt.Condition] = st.recursive(
    _conditions(),
    lambda parts: (
        st.builds(qt.AndCondition, _many(parts, 2)) | st.builds(qt.OrCondition, _many(parts, 2))
    ),
    max_leaves=3,
)

# --- match -------------------------------------------------------------------------------------


@st.composite
def _bindings(draw: DrawFn) -> qt.BindingClause:
    name = draw(st.sampled_from([*NODES]))
    properties = list(catalog().nodes[NODES[name]].properties.values())
    matched = draw(st.lists(st.sampled_from(properties), max_size=2))
    matches = []
    for property_ in matched:
        type_ = property_.type.element if property_.type.is_list else property_.type
        matches.append(qt.PropertyMatch(Name(property_.name), draw(_value(type_))))
    type_name = draw(_seldom(st.just(NODES[name]), st.sampled_from(["Port", "Labelled", "Nope"])))
    return qt.BindingClause(qt.Variable(name), Name(type_name), tuple(matches))


@st.composite
def _traversals(draw: DrawFn) -> qt.TraversalClause:
    edge = draw(st.sampled_from([*EDGES]))
    ends = EDGES[edge]
    src, dst = ends[: len(ends) // 2], ends[len(ends) // 2 :]
    if edge == "route":
        src = dst = ends
    step = qt.TraversalClause(
        qt.Variable(draw(st.sampled_from([*src, "_"]))),
        Name(edge),
        qt.Variable(draw(st.sampled_from([*dst, "_"]))),
        edge_variable=draw(st.none() | _variable(st.sampled_from(["c", "d", "_"]))),
        undirected=edge == "route" and draw(st.booleans()),
    )
    if step.edge_variable is None and draw(st.booleans()):
        low = draw(st.integers(1, 3))
        step = replace(step, hops=qt.HopRange(low, draw(_seldom(st.just(low + 1), st.none()))))
    return replace(step, src=step.dst, dst=step.src) if draw(st.booleans()) else step


_clause: SearchStrategy[qt.MatchClause] = st.recursive(
    st.one_of(_bindings(), _traversals(), st.builds(qt.FilterClause, _condition)),
    lambda clauses: st.one_of(
        st.builds(qt.NegationClause, _many(clauses, 1)),
        st.builds(qt.ExistsClause, _many(clauses, 1)),
        st.builds(qt.OptionalClause, _many(clauses, 1)),
    ),
    max_leaves=3,
)
_all_nodes = tuple(
    qt.BindingClause(qt.Variable(name), Name(type_)) for name, type_ in NODES.items()
)
clauses: SearchStrategy[tuple[qt.MatchClause, ...]] = _seldom(
    _many(_clause, 0, 4).map(lambda drawn: (*_all_nodes, *drawn)), _many(_clause, 1, 4)
)

# --- queries -----------------------------------------------------------------------------------

_parameters = tuple(
    qt.ParameterDeclaration(
        qt.Variable(name),
        TypeExpr(str(t.scalar), t.is_list, t.nullable, dimension=t.dimension),
    )
    for name, t in PARAMETERS.items()
)
_access = _accesses().map(lambda drawn: drawn[0])
_column: SearchStrategy[qt.Expr] = st.one_of(
    _access,
    _access,
    _variable(st.sampled_from([*NODES, "whole"])),
    st.builds(
        qt.CallExpression,
        st.builds(Name, st.sampled_from(["count", "min", "max"])),
        st.tuples(_access),
        st.just(False),
    ),
    _any_expr,
)
_count = st.none() | st.builds(qt.Literal, st.just(Scalar.U64), st.integers(0, 9))


@st.composite
def _reads(draw: DrawFn) -> qt.ReadBody:
    columns = draw(st.lists(_column, min_size=1, max_size=3))
    projections = [qt.Projection(expr, Name(f"c{i}")) for i, expr in enumerate(columns)]
    key = _access | st.builds(qt.AliasRef, st.sampled_from([f"c{i}" for i in range(len(columns))]))
    ordering = st.builds(qt.OrderingTerm, key, st.none() | st.sampled_from(qt.SortDirection))
    return qt.ReadBody(
        draw(clauses),
        tuple(projections),
        draw(st.booleans()),
        draw(_many(ordering, 0, 2)),
        draw(_count | _variable(st.just("whole"))),
        draw(_count),
    )


@st.composite
def _statements(draw: DrawFn) -> qt.MutationStatement:
    type_name = draw(_seldom(st.sampled_from(["Ship", "Port", "Note"]), st.just("Nope")))
    known = catalog().nodes.get(type_name, catalog().nodes["Note"]).properties
    values = {name: draw(_value(property_.type)) for name, property_ in known.items()}
    given = draw(_seldom(st.just([*known]), st.lists(st.sampled_from([*known]), min_size=1)))
    tested = draw(st.sampled_from([name for name in known if not known[name].type.is_list]))
    operator = draw(st.sampled_from(_COMPARISONS))
    tests = (qt.MutationCondition(Name(tested), operator, draw(_value(known[tested].type))),)
    assignments = tuple(qt.Assignment(Name(name), values[name]) for name in given)
    kind = draw(st.sampled_from([qt.InsertStatement, qt.UpdateStatement, qt.DeleteStatement]))
    if kind is qt.InsertStatement:
        return qt.InsertStatement(Name(type_name), assignments)
    return (
        qt.UpdateStatement(Name(type_name), assignments[1:] or assignments, tests)
        if kind is qt.UpdateStatement
        else qt.DeleteStatement(Name(type_name), tests)
    )


_body: SearchStrategy[qt.ReadBody | qt.MutationBody] = st.one_of(
    _reads(), _reads(), st.builds(qt.MutationBody, _many(_statements(), 1, 2))
)
queries: SearchStrategy[qt.QueryDecl] = st.builds(
    qt.QueryDecl, st.just(Name("q")), st.just(_parameters), st.just(()), _body
)
