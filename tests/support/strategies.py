"""Hypothesis strategies for every syntactically valid `.pg` and `.gq` tree.

Names are drawn from the words of the grammar as often as from the alphabet, because no word is
reserved. What is left out cannot be read back as the same tree, whatever the printer does:

- `true` and `false` are literals wherever a value may stand, `date(` and `datetime(` too;
- an annotation named like a constraint takes no argument but named ones of `@index`, `@card` in a
  header is the cardinality;
- an edge is not called `not`, and `return { distinct x }` says distinct before it says anything,
  so that nothing is called `distinct(…)`.
"""

from __future__ import annotations

from functools import cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from omnigraph.lang import query_tree as qt
from omnigraph.lang import schema_tree as pg
from omnigraph.lang.schema_parser import CONSTRAINT_WORDS
from omnigraph.lang.source import Name, TypeExpr
from omnigraph.types import BASE_NAMES, MAX_VECTOR_DIMENSION, Scalar

_T = TypeVar("_T")

_WORDS = (
    *("query", "match", "return", "order", "limit", "offset", "not", "as", "asc", "desc", "_"),
    *("distinct", "is", "in", "null", "and", "or", "true", "false", "contains", "starts_with"),
    *("case", "when", "then", "else", "end", "optional", "exists"),
    *("now", "date", "datetime", "insert", "update", "delete", "set", "where", "search", "count"),
    *("node", "edge", "interface", "implements", "enum", "card", "embed", "description"),
    *CONSTRAINT_WORDS,
)
_BOOLEANS = ("true", "false")
_TEMPORAL = ("date", "datetime")
_I64 = (-(2**63), 2**63 - 1)
_U32_MAX, _U64_MAX = 2**32 - 1, 2**64 - 1


def _many(items: SearchStrategy[_T], low: int = 0, high: int = 3) -> SearchStrategy[tuple[_T, ...]]:
    return st.lists(items, min_size=low, max_size=high).map(tuple)


def _word(first: str, rest: str = ascii_letters + digits + "_") -> SearchStrategy[str]:
    return st.builds(str.__add__, st.sampled_from(first), st.text(rest, max_size=6))


@st.composite
def _words(draw: DrawFn, *, without: tuple[str, ...] = ()) -> str:
    # Composed, because the text of a strategy repeats that of its parts.
    return draw(_word_choices(without))


@cache
def _word_choices(left_out: tuple[str, ...]) -> SearchStrategy[str]:
    free = _word(ascii_lowercase + "_").filter(lambda word: word not in left_out)
    return st.sampled_from([word for word in _WORDS if word not in left_out]) | free


def _names(*, without: tuple[str, ...] = ()) -> SearchStrategy[Name]:
    return st.builds(Name, _words(without=without))


_name = _names()
_type_name = st.builds(Name, _word(ascii_uppercase))
_odd_texts = ('"', "\\", "a\nb", "\r\n\t", "// x", "/* y */", "\0")
_text = st.text(max_size=8) | st.sampled_from(_odd_texts)
_float = st.floats(allow_nan=False, allow_infinity=False)
_whole = st.integers(*_I64)

# --- types -------------------------------------------------------------------------------------

_enum_value = st.builds(Name, st.text(ascii_letters + digits + "_-", min_size=1, max_size=6))
_dimension = st.integers(1, MAX_VECTOR_DIMENSION)
_plain_type = st.builds(TypeExpr, st.sampled_from(BASE_NAMES), st.booleans(), st.booleans())
_vector_type = st.builds(
    TypeExpr, st.just(str(Scalar.VECTOR)), nullable=st.booleans(), dimension=_dimension
)
_enum_type = st.builds(
    TypeExpr, st.just("enum"), nullable=st.booleans(), enum_values=_many(_enum_value, 1, 30)
)
parameter_types: SearchStrategy[TypeExpr] = _plain_type | _vector_type
property_types: SearchStrategy[TypeExpr] = parameter_types | _enum_type

# --- schemas -----------------------------------------------------------------------------------

_bound = _whole | _float
_range = st.one_of(
    st.builds(pg.RangeBounds, _bound, _bound),
    st.builds(pg.RangeBounds, _bound, st.none()),
    st.builds(pg.RangeBounds, st.none(), _bound),
)
_decimal = st.from_regex(r"\A-?[0-9]{1,6}\.[0-9]{1,6}\Z").filter(str.isascii)
_literal_argument = st.one_of(
    st.builds(pg.AnnotationArgument, st.just(pg.ArgumentKind.STRING), _text),
    st.builds(pg.AnnotationArgument, st.just(pg.ArgumentKind.INT), st.integers().map(str)),
    st.builds(pg.AnnotationArgument, st.just(pg.ArgumentKind.FLOAT), _decimal),
    st.builds(pg.AnnotationArgument, st.just(pg.ArgumentKind.BOOL), st.sampled_from(_BOOLEANS)),
)
_argument = _literal_argument | st.builds(
    pg.AnnotationArgument, st.just(pg.ArgumentKind.NAME), _words(without=_BOOLEANS)
)
_named_argument = st.builds(pg.NamedArgument, _name, _literal_argument)


def _constraint_arguments() -> SearchStrategy[tuple[pg.ConstraintArgument, ...]]:
    """Return arguments of which the first has no name, so that they do not speak of a property."""
    plain = _names(without=_BOOLEANS) | _range | _literal_argument
    return st.tuples(_many(plain, 1, 3), _many(plain | _named_argument, 0, 2)).map(
        lambda parts: (*parts[0], *parts[1])
    )


_constraint = st.builds(
    pg.ConstraintDecl,
    st.builds(Name, st.sampled_from(CONSTRAINT_WORDS)),
    _constraint_arguments(),
)


def _annotations(*, without: tuple[str, ...] = ()) -> SearchStrategy[tuple[pg.AnnotationDecl, ...]]:
    bare = st.builds(pg.AnnotationDecl, _names(without=without))
    full = st.builds(
        pg.AnnotationDecl,
        _names(without=(*without, *CONSTRAINT_WORDS)),
        _argument,
        _many(_named_argument, 0, 2),
    )
    index = st.builds(
        pg.AnnotationDecl, st.just(Name("index")), st.none(), _many(_named_argument, 1, 2)
    )
    return _many(bare | full | index, 0, 3)


_property = st.builds(pg.PropertyDecl, _name, property_types, _annotations())
_members = _many(_property | _constraint, 0, 4)
_cardinality = st.builds(
    pg.CardinalityDecl, st.integers(0, _U32_MAX), st.none() | st.integers(0, _U32_MAX)
)
_interface = st.builds(pg.InterfaceDecl, _type_name, _many(_property))
_node = st.builds(
    pg.NodeDecl, _type_name, _annotations(without=("card",)), _many(_type_name), _members
)
_edge = st.builds(
    pg.EdgeDecl,
    _type_name,
    _type_name,
    _type_name,
    st.none() | _cardinality,
    _annotations(without=("card",)),
    _members,
)
schemas: SearchStrategy[pg.SchemaTree] = st.builds(
    pg.SchemaTree, _many(_interface | _node | _edge, 0, 5)
)

# --- expressions -------------------------------------------------------------------------------

_variable = st.builds(qt.Variable, _words())
_literal = st.one_of(
    st.builds(qt.Literal, st.just(Scalar.STRING), _text),
    st.builds(qt.Literal, st.just(Scalar.BOOL), st.booleans()),
    st.builds(qt.Literal, st.just(Scalar.I64), _whole),
    st.builds(qt.Literal, st.just(Scalar.F64), _float),
    st.builds(qt.Literal, st.sampled_from((Scalar.DATE, Scalar.DATE_TIME)), _text),
)
_literal_item: SearchStrategy[qt.Literal | qt.ListLiteral] = st.recursive(
    _literal, lambda items: st.builds(qt.ListLiteral, _many(items)), max_leaves=4
)
_list = st.builds(qt.ListLiteral, _many(_literal_item, 0, 3))
_access = st.builds(qt.PropertyAccess, _variable, _name)
_alias = st.builds(qt.AliasRef, _words(without=(*_BOOLEANS, "distinct")))
_now = st.builds(qt.CallExpression, st.just(Name("now")))
_function = _names(without=(*_BOOLEANS, *_TEMPORAL, "distinct"))
_edge_word = _names(without=("not",))
_hops = st.builds(qt.HopRange, st.integers(0, _U32_MAX), st.none() | st.integers(0, _U32_MAX))
_edge_path: SearchStrategy[qt.Expr] = st.deferred(
    lambda: (
        st.builds(qt.EdgePathExpression, _edge_word, st.booleans(), _hops)
        | st.builds(qt.EdgePathExpression, _edge_word, st.just(True))
    )
)


def _calls(arguments: SearchStrategy[qt.Expr]) -> SearchStrategy[qt.CallExpression]:
    plain = st.builds(qt.CallExpression, _function, _many(arguments | _edge_path))
    return plain | st.builds(
        qt.CallExpression, _function, _many(arguments | _edge_path, 1, 2), st.just(True)
    )


def _computed(parts: SearchStrategy[qt.Expr]) -> SearchStrategy[qt.Expr]:
    operators = st.sampled_from(qt.ArithmeticOperator)
    comparisons = st.builds(
        qt.ComparisonCondition, parts, st.sampled_from(qt.ComparisonOperator), parts
    )
    branches = st.builds(qt.CaseBranch, comparisons, parts)
    return st.one_of(
        _calls(parts),
        st.builds(qt.ArithmeticExpression, parts, operators, parts),
        st.builds(qt.CaseExpression, _many(branches, 1, 2), st.none() | parts),
    )


_operand: SearchStrategy[qt.Expr] = st.one_of(_variable, _access, _literal_item, _alias)
_expr: SearchStrategy[qt.Expr] = st.recursive(_operand, _computed, max_leaves=4)
_value: SearchStrategy[qt.ValueExpression] = st.one_of(_literal_item, _variable, _now)

# --- match -------------------------------------------------------------------------------------

_simple_condition: SearchStrategy[qt.Condition] = st.one_of(
    st.builds(qt.ComparisonCondition, _expr, st.sampled_from(qt.ComparisonOperator), _expr),
    st.builds(qt.NullCondition, _expr, st.booleans()),
    st.builds(qt.MembershipCondition, _expr, _expr),
    st.builds(qt.CallCondition, _calls(_expr)),
)
conditions: SearchStrategy[qt.Condition] = st.recursive(
    _simple_condition,
    lambda parts: (
        st.builds(qt.AndCondition, _many(parts, 2)) | st.builds(qt.OrCondition, _many(parts, 2))
    ),
    max_leaves=4,
)
_binding = st.builds(
    qt.BindingClause, _variable, _type_name, _many(st.builds(qt.PropertyMatch, _name, _value))
)
_traversal = st.builds(
    qt.TraversalClause,
    _variable,
    _edge_word,
    _variable,
    st.none() | _variable,
    st.booleans(),
    st.none() | _hops,
)
_filter = st.builds(qt.FilterClause, conditions)
_clause: SearchStrategy[qt.MatchClause] = st.recursive(
    st.one_of(_binding, _traversal, _filter),
    lambda clauses: st.one_of(
        st.builds(qt.NegationClause, _many(clauses, 1)),
        st.builds(qt.ExistsClause, _many(clauses, 1)),
        st.builds(qt.OptionalClause, _many(clauses, 1)),
    ),
    max_leaves=3,
)

# --- queries -----------------------------------------------------------------------------------

_count = _variable | st.builds(qt.Literal, st.just(Scalar.U64), st.integers(0, _U64_MAX))
_read = st.builds(
    qt.ReadBody,
    _many(_clause, 1),
    _many(st.builds(qt.Projection, _expr, st.none() | _name), 1),
    st.booleans(),
    _many(st.builds(qt.OrderingTerm, _expr, st.none() | st.sampled_from(qt.SortDirection))),
    st.none() | _count,
    st.none() | _count,
)
_comparisons = [op for op in qt.ComparisonOperator if not op.isidentifier()]
_tests = _many(st.builds(qt.MutationCondition, _name, st.sampled_from(_comparisons), _value), 1)
_assignments = _many(st.builds(qt.Assignment, _name, _value), 1)
_statement: SearchStrategy[qt.MutationStatement] = st.one_of(
    st.builds(qt.InsertStatement, _type_name, _assignments),
    st.builds(qt.UpdateStatement, _type_name, _assignments, _tests),
    st.builds(qt.DeleteStatement, _type_name, _tests),
)
_mutation = st.builds(qt.MutationBody, _many(_statement, 1))
_query_annotations = st.lists(
    st.builds(
        qt.QueryAnnotation, st.sampled_from([Name("description"), Name("instruction")]), _text
    ),
    unique_by=lambda annotation: annotation.name.text,
    max_size=2,
).map(tuple)
_query = st.builds(
    qt.QueryDecl,
    _name,
    _many(st.builds(qt.ParameterDeclaration, _variable, parameter_types)),
    _query_annotations,
    _read | _mutation,
)
_anonymous = st.builds(
    qt.QueryDecl, st.just(Name("query")), st.just(()), st.just(()), _read, st.just(True)
)
queries: SearchStrategy[qt.QueryTree] = st.builds(
    qt.QueryTree, _many(_query, 0, 2) | _many(_anonymous, 1, 1)
)
