"""Canonical `.gq` text, to the letter."""

import pytest

from omnigraph.lang import parse_queries, print_queries
from omnigraph.lang import query_tree as qt
from omnigraph.lang.query_printer import _QueryPrinter
from omnigraph.lang.source import Name
from omnigraph.lang.source_writer import SourceWriter
from omnigraph.types import Scalar


def lines(*parts):
    return "".join(part + "\n" for part in parts)


def inside_match(*clauses):
    return lines(
        "query q() {",
        "  match {",
        *(f"    {clause}" for clause in clauses),
        "  }",
        "  return { $x }",
        "}",
    )


WIDE = [f"$x.a_rather_long_property_name_{n}" for n in range(4)]
LONG = "d" * 80


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        (
            "query a(){match{$x:T}return{$x}}query b(){delete T where a=1}",
            lines(
                "query a() {",
                "  match {",
                "    $x: T",
                "  }",
                "  return { $x }",
                "}",
                "",
                "query b() {",
                "  delete T where a = 1",
                "}",
            ),
        ),
        (
            'query q($a:I32,$b:[String]?)@description("d")@instruction("i"){delete T where a=$a}',
            lines(
                'query q($a: I32, $b: [String]?) @description("d") @instruction("i") {',
                "  delete T where a = $a",
                "}",
            ),
        ),
        (
            f'query q()@description("{LONG}")@instruction("i"){{delete T where a=1}}',
            lines(
                "query q()",
                f'  @description("{LONG}")',
                '  @instruction("i")',
                "{",
                "  delete T where a = 1",
                "}",
            ),
        ),
        (
            "query q(){match{$x:T}return distinct{$x as y,}order{y desc,$x.a}limit 007 offset $o}",
            lines(
                "query q() {",
                "  match {",
                "    $x: T",
                "  }",
                "  return distinct { $x as y }",
                "  order { y desc, $x.a }",
                "  limit 7",
                "  offset $o",
                "}",
            ),
        ),
        (
            f"query q(){{match{{$x:T}}return{{{' '.join(WIDE)}}}}}",
            lines(
                "query q() {",
                "  match {",
                "    $x: T",
                "  }",
                "  return {",
                *(f"    {item}," for item in WIDE[:-1]),
                f"    {WIDE[-1]}",
                "  }",
                "}",
            ),
        ),
        (
            "query q(){insert T{a:1 b:-2.50}update T set{a:now()}where b=1 and c!=[true]}",
            lines(
                "query q() {",
                "  insert T { a: 1, b: -2.5 }",
                "  update T set { a: now() } where b = 1 and c != [true]",
                "}",
            ),
        ),
        (
            f'query q(){{update T set{{a:"{LONG}"b:1}}where c=1}}',
            lines(
                "query q() {",
                "  update T set {",
                f'    a: "{LONG}",',
                "    b: 1",
                "  } where c = 1",
                "}",
            ),
        ),
    ],
)
def test_tree_is_printed(text, printed):
    assert print_queries(parse_queries(text)) == printed


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("$x:T{a:1,b:$y,}", ["$x: T { a: 1, b: $y }"]),
        ("$x  knows  $y", ["$x knows $y"]),
        ("$x<knows>{1,}$y", ["$x <knows>{1,} $y"]),
        ("$x$w:knows{0,2}$_", ["$x $w:knows{0,2} $_"]),
        ("not{$x:T $y:T}", ["not {", "  $x: T", "  $y: T", "}"]),
        ("(($x.a=1))", ["$x.a = 1"]),
        ("($x.a=1 and $x.b is not null)", ["($x.a = 1 and $x.b is not null)"]),
        ("($x.a=1 and $x.b=2 or $x.c in[1])", ["($x.a = 1 and $x.b = 2 or $x.c in [1])"]),
        ('search($x.a,"q")', ['search($x.a, "q")']),
        # What would be read as something else keeps its parentheses.
        ("($x in $y)", ["($x in $y)"]),
        ("($x contains $y)", ["($x contains $y)"]),
        ("($x < $y)", ["$x < $y"]),
        ("($x contains $y.a)", ["$x contains $y.a"]),
        ("($x.a = word) ($x.b = 1 or $x.c = 2)", ["($x.a = word)", "($x.b = 1 or $x.c = 2)"]),
        ("f($x) (in = 1)", ["f($x)", "(in = 1)"]),
        ("f($x) (contains($y))", ["f($x)", "(contains($y))"]),
        ("(and = 1)", ["(and = 1)"]),
    ],
)
def test_clauses_are_printed_as_they_would_be_read(written, printed):
    tree = parse_queries(f"query q() {{ match {{ {written} }} return {{ $x }} }}")
    assert print_queries(tree) == inside_match(*printed)
    assert parse_queries(print_queries(tree)) == tree


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (qt.Literal(Scalar.F64, 1.0), "1.0"),
        (qt.Literal(Scalar.F64, -1e-7), "-0.0000001"),
        (qt.Literal(Scalar.F64, 1e21), "1000000000000000000000.0"),
        (qt.Literal(Scalar.I64, -(2**63)), "-9223372036854775808"),
        (qt.Literal(Scalar.BOOL, False), "false"),
        (qt.Literal(Scalar.STRING, 'a"\n'), '"a\\"\\n"'),
        (qt.Literal(Scalar.DATE, "2024-01-01"), 'date("2024-01-01")'),
        (qt.Literal(Scalar.DATE_TIME, "x"), 'datetime("x")'),
        (qt.ListLiteral(()), "[]"),
        (
            qt.CallExpression(Name("count"), (qt.Variable("x"),), distinct=True),
            "count(distinct $x)",
        ),
        (qt.PropertyAccess(qt.Variable("x"), Name("a")), "$x.a"),
        (qt.AliasRef("n"), "n"),
    ],
)
def test_expression_is_printed(expr, text):
    assert _QueryPrinter(SourceWriter()).expr(expr) == text


def test_condition_is_printed():
    test = qt.NullCondition(qt.Variable("x"), negated=False)
    assert _QueryPrinter(SourceWriter()).condition(
        qt.OrCondition((test, qt.AndCondition((test, test))))
    ) == ("($x is null or $x is null and $x is null)")
