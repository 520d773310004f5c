"""Reading `.gq` text: every production, and where its nodes stand."""

import pytest

from omnigraph.lang import QueryError, parse_queries
from omnigraph.lang import query_tree as qt
from omnigraph.lang.query_tree import (
    AliasRef,
    CallExpression,
    ListLiteral,
    Literal,
    PropertyAccess,
    Variable,
)
from omnigraph.lang.source import Name, TypeExpr
from omnigraph.types import Scalar

X, Y, Z = Variable("x"), Variable("y"), Variable("z")
XA, XB = PropertyAccess(X, Name("a")), PropertyAccess(X, Name("b"))


def whole(value):
    return Literal(Scalar.I64, value)


def text(value):
    return Literal(Scalar.STRING, value)


ONE, TWO = whole(1), whole(2)
P = qt.ComparisonCondition(XA, qt.ComparisonOperator.EQ, ONE)
Q = qt.ComparisonCondition(XB, qt.ComparisonOperator.EQ, TWO)


def read(written):
    [query] = parse_queries(written).queries
    return query


def clauses(written):
    return read(f"query q() {{ match {{ {written} }} return {{ $x }} }}").body.clauses


def expression(written):
    body = read(f"query q() {{ match {{ $x: T }} return {{ {written} }} }}").body
    [projection] = body.projections
    return projection.expr


def condition(written):
    [clause] = clauses(written)
    return clause.condition


def test_an_empty_file_holds_no_queries():
    assert parse_queries("") == parse_queries("// nothing") == qt.QueryTree()


def test_a_header_holds_parameters_and_annotations():
    query = read(
        'query q($a: I32, $b: [String]?, $c: Vector(3)) @instruction("i") @description("")'
        " { delete T where a = 1 }"
    )
    assert query.name == Name("q")
    assert query.parameters == (
        qt.ParameterDeclaration(Variable("a"), TypeExpr("I32")),
        qt.ParameterDeclaration(Variable("b"), TypeExpr("String", is_list=True, nullable=True)),
        qt.ParameterDeclaration(Variable("c"), TypeExpr("Vector", dimension=3)),
    )
    assert query.annotations == (
        qt.QueryAnnotation(Name("instruction"), "i"),
        qt.QueryAnnotation(Name("description"), ""),
    )
    assert query.is_mutation


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("$x", X),
        ("$x.a", XA),
        ("$x . a", XA),
        ("alias", AliasRef("alias")),
        ('"s"', text("s")),
        ("true", Literal(Scalar.BOOL, True)),
        ("false", Literal(Scalar.BOOL, False)),
        ("7", whole(7)),
        ("-7", whole(-7)),
        ("- /* minus */ 7", whole(-7)),
        ("9223372036854775807", whole(2**63 - 1)),
        ("-9223372036854775808", whole(-(2**63))),
        ("2.50", Literal(Scalar.F64, 2.5)),
        ("-2.5", Literal(Scalar.F64, -2.5)),
        ('date("2024-01-01")', Literal(Scalar.DATE, "2024-01-01")),
        ('datetime ( "x" )', Literal(Scalar.DATE_TIME, "x")),
        ("date", AliasRef("date")),
        ("[]", ListLiteral(())),
        ('[1, "s"]', ListLiteral((ONE, text("s")))),
        ("[[1], []]", ListLiteral((ListLiteral((ONE,)), ListLiteral(())))),
        ("now()", CallExpression(Name("now"))),
        ("count($x)", CallExpression(Name("count"), (X,))),
        ("count(distinct $x)", CallExpression(Name("count"), (X,), distinct=True)),
        ("count(distinct)", CallExpression(Name("count"), (AliasRef("distinct"),))),
        ("f(distinct, 1)", CallExpression(Name("f"), (AliasRef("distinct"), ONE))),
        ("f(distinct ($x))", CallExpression(Name("f"), (X,), distinct=True)),
        (
            "rrf (g($x.a), 1, 2)",
            CallExpression(Name("rrf"), (CallExpression(Name("g"), (XA,)), ONE, TWO)),
        ),
    ],
)
def test_expressions(written, expected):
    assert expression(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *((f"$x.a {op} 1", qt.ComparisonCondition(XA, op, ONE)) for op in qt.ComparisonOperator),
        (
            '"s" contains $x.a',
            qt.ComparisonCondition(text("s"), qt.ComparisonOperator.CONTAINS, XA),
        ),
        (
            "$x contains $y.a",
            qt.ComparisonCondition(X, qt.ComparisonOperator.CONTAINS, PropertyAccess(Y, Name("a"))),
        ),
        ("($x contains $y)", qt.ComparisonCondition(X, qt.ComparisonOperator.CONTAINS, Y)),
        ("$x = $y", qt.ComparisonCondition(X, qt.ComparisonOperator.EQ, Y)),
        ("$x < $y", qt.ComparisonCondition(X, qt.ComparisonOperator.LT, Y)),
        ("$x.a is null", qt.NullCondition(XA, negated=False)),
        ("$x.a is not null", qt.NullCondition(XA, negated=True)),
        ("$x is null", qt.NullCondition(X, negated=False)),
        ("$x.a in [1]", qt.MembershipCondition(XA, ListLiteral((ONE,)))),
        ("$x.a in $y", qt.MembershipCondition(XA, Y)),
        ("($x in $y)", qt.MembershipCondition(X, Y)),
        ("search($x.a, 1)", qt.CallCondition(CallExpression(Name("search"), (XA, ONE)))),
        ("($x.a = 1)", P),
        ("((($x.a = 1)))", P),
        ("($x.a = 1 and $x.b = 2)", qt.AndCondition((P, Q))),
        ("($x.a = 1 or $x.b = 2)", qt.OrCondition((P, Q))),
        ("($x.a = 1 or $x.a = 1 and $x.b = 2)", qt.OrCondition((P, qt.AndCondition((P, Q))))),
        ("(($x.a = 1 or $x.a = 1) and $x.b = 2)", qt.AndCondition((qt.OrCondition((P, P)), Q))),
        ("($x.a = 1 or ($x.a = 1 or $x.b = 2))", qt.OrCondition((P, qt.OrCondition((P, Q))))),
    ],
)
def test_conditions(written, expected):
    assert condition(written) == expected


KNOWS = Name("knows")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("$x: T", [qt.BindingClause(X, Name("T"))]),
        (
            "$x: T { a: 1, b: $y, c: now(), }",
            [
                qt.BindingClause(
                    X,
                    Name("T"),
                    (
                        qt.PropertyMatch(Name("a"), ONE),
                        qt.PropertyMatch(Name("b"), Y),
                        qt.PropertyMatch(Name("c"), CallExpression(Name("now"))),
                    ),
                )
            ],
        ),
        ("$x knows $y", [qt.TraversalClause(X, KNOWS, Y)]),
        ("$x contains $y", [qt.TraversalClause(X, Name("contains"), Y)]),
        ("$x in $y", [qt.TraversalClause(X, Name("in"), Y)]),
        ("$x <knows> $y", [qt.TraversalClause(X, KNOWS, Y, undirected=True)]),
        ("$x $z:knows $y", [qt.TraversalClause(X, KNOWS, Y, Z)]),
        ("$x knows{1,3} $_", [qt.TraversalClause(X, KNOWS, Variable("_"), hops=qt.HopRange(1, 3))]),
        (
            "$x $z:<knows>{0,} $y",
            [qt.TraversalClause(X, KNOWS, Y, Z, undirected=True, hops=qt.HopRange(0, None))],
        ),
        ("not { $x: T }", [qt.NegationClause((qt.BindingClause(X, Name("T")),))]),
        (
            "not { not { $x knows $y } $y: T }",
            [
                qt.NegationClause(
                    (
                        qt.NegationClause((qt.TraversalClause(X, KNOWS, Y),)),
                        qt.BindingClause(Y, Name("T")),
                    )
                )
            ],
        ),
        (
            "$x knows $y $y: T $x.a = 1 ($x.b = 2)",
            [
                qt.TraversalClause(X, KNOWS, Y),
                qt.BindingClause(Y, Name("T")),
                qt.FilterClause(P),
                qt.FilterClause(Q),
            ],
        ),
    ],
)
def test_clauses(written, expected):
    assert clauses(written) == tuple(expected)


PLAIN = qt.ReadBody((qt.BindingClause(X, Name("T")),), (qt.Projection(X),))


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        ("return { $x }", {}),
        ("return { $x, }", {}),
        ("return { distinct $x }", {"distinct": True}),
        ("return distinct { $x }", {"distinct": True}),
        (
            "return { $distinct $x }",
            {"projections": (qt.Projection(Variable("distinct")), qt.Projection(X))},
        ),
        (
            "return { $x as one $x.a, 1 as two }",
            {
                "projections": (
                    qt.Projection(X, Name("one")),
                    qt.Projection(XA),
                    qt.Projection(ONE, Name("two")),
                )
            },
        ),
        (
            "return { $x } order { $x.a, n desc, f($x) asc }",
            {
                "orderings": (
                    qt.OrderingTerm(XA),
                    qt.OrderingTerm(AliasRef("n"), qt.SortDirection.DESC),
                    qt.OrderingTerm(CallExpression(Name("f"), (X,)), qt.SortDirection.ASC),
                )
            },
        ),
        ("return { $x } limit 18446744073709551615", {"limit": Literal(Scalar.U64, 2**64 - 1)}),
        ("return { $x } limit $y offset 0", {"limit": Y, "offset": Literal(Scalar.U64, 0)}),
        ("return { $x } offset $y", {"offset": Y}),
    ],
)
def test_reads(written, facts):
    body = read(f"query q() {{ match {{ $x: T }} {written} }}").body
    assert {name: getattr(body, name) for name in facts} == facts
    for name in {"projections", "distinct", "orderings", "limit", "offset"} - set(facts):
        assert getattr(body, name) == getattr(PLAIN, name)


A, B = Name("a"), Name("b")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("insert T { a: 1 }", [qt.InsertStatement(Name("T"), (qt.Assignment(A, ONE),))]),
        (
            "insert T { a: 1 b: $x, }",
            [qt.InsertStatement(Name("T"), (qt.Assignment(A, ONE), qt.Assignment(B, X)))],
        ),
        (
            "update T set { a: now() } where b != 2 and a >= $x",
            [
                qt.UpdateStatement(
                    Name("T"),
                    (qt.Assignment(A, CallExpression(Name("now"))),),
                    (
                        qt.MutationCondition(B, qt.ComparisonOperator.NE, TWO),
                        qt.MutationCondition(A, qt.ComparisonOperator.GE, X),
                    ),
                )
            ],
        ),
        (
            "delete T where a = 1 delete T where b < -1",
            [
                qt.DeleteStatement(
                    Name("T"), (qt.MutationCondition(A, qt.ComparisonOperator.EQ, ONE),)
                ),
                qt.DeleteStatement(
                    Name("T"), (qt.MutationCondition(B, qt.ComparisonOperator.LT, whole(-1)),)
                ),
            ],
        ),
    ],
)
def test_mutations(written, expected):
    assert read(f"query q() {{ {written} }}").body == qt.MutationBody(tuple(expected))


def test_spans_cover_what_was_written():
    written = (
        "query q($p: I32?) { match { $x: T { a: 1 } $x $w:e{1,2} $y ($x.a = -1 or f($x)) }"
        " return { $x.a as b } order { b desc } limit 3 }"
    )
    [query] = parse_queries(written).queries
    body = query.body
    binding, traversal, group = body.clauses
    places = [
        (query, written),
        (query.parameters[0].type, "I32?"),
        (binding, "$x: T { a: 1 }"),
        (traversal, "$x $w:e{1,2} $y"),
        (traversal.hops, "{1,2}"),
        (group, "($x.a = -1 or f($x))"),
        (group.condition.conditions[0], "$x.a = -1"),
        (group.condition.conditions[0].right, "-1"),
        (body.projections[0], "$x.a as b"),
        (body.orderings[0], "b desc"),
        (body.limit, "3"),
    ]
    assert [written[slice(*place.span)] for place, _ in places] == [text for _, text in places]
    match, return_, order = (written[slice(*span)] for span in body.block_spans)
    assert (match[:7], match[-8:]) == ("match {", "f($x)) }")
    assert (return_, order) == ("return { $x.a as b }", "order { b desc }")


def test_parse_raises_with_everything_that_is_wrong():
    with pytest.raises(QueryError) as refusal:
        parse_queries("query a() {}\nquery b() { x }", "my.gq")
    assert [d.location for d in refusal.value.diagnostics] == ["my.gq:1:12", "my.gq:2:13"]
    assert refusal.value.code == "Q000"
