"""Formatting: one layout, with every comment where it belongs."""

import pytest

from omnigraph.lang import QueryError, SchemaError, format_queries, format_schema


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("\n\n// only\n\n", "// only\n", id="only a comment"),
        pytest.param(
            "// head\n\n\nnode A{} // beside\n// after",
            "// head\n\nnode A {} // beside\n// after\n",
            id="around a declaration",
        ),
        pytest.param(
            "node A { // opens\n x:I32 // x\n // last\n}",
            "node A { // opens\n  x: I32 // x\n  // last\n}\n",
            id="in a body",
        ),
        pytest.param(
            "node A /* a */ { /* b */ /* c */ x: I32 }",
            "/* a */\nnode A { /* b */\n  /* c */\n  x: I32\n}\n",
            id="around the brace",
        ),
        pytest.param(
            "node A { x /* a */ : // b\n I32 }",
            "node A {\n  /* a */\n  // b\n  x: I32\n}\n",
            id="inside a member",
        ),
        pytest.param("node A { /* a */ }", "node A { /* a */\n}\n", id="in an empty body"),
        pytest.param(
            "edge E: A -> B { /* a */ }", "/* a */\nedge E: A -> B\n", id="in a body that goes"
        ),
        pytest.param(
            "node A {\n\n\n x: I32\n\n\n\n y: I32\n\n}",
            "node A {\n  x: I32\n\n  y: I32\n}\n",
            id="one blank line is kept between members",
        ),
        pytest.param(
            "node A {}\nnode B {}\nedge E: A -> B\n\nedge F: A -> B",
            "node A {}\n\nnode B {}\n\nedge E: A -> B\n\nedge F: A -> B\n",
            id="declarations stand apart, edges may stand together",
        ),
        pytest.param(
            "node A { s: enum(a, // first\n b) }",
            "node A {\n  s: enum(\n    a, // first\n    b\n  )\n}\n",
            id="in an enum",
        ),
        pytest.param(
            'node A { s: String @d("a\tb\n  c") @n(- 007) @m(00.50)'
            " @range(s, -0.50..18446744073709551616) @range(s, 1.50 .. 2) }",
            'node A {\n  s: String @d("a\tb\n  c") @n(-007) @m(00.50)\n'
            "  @range(s, -0.50..18446744073709551616)\n  @range(s, 1.5..2)\n}\n",
            id="literals keep their spelling",
        ),
        pytest.param(
            "node A {\r\n  // a\r\n\r\n  x: I32 // b\r\n}\r\n",
            "node A {\n  // a\n\n  x: I32 // b\n}\n",
            id="CRLF",
        ),
        pytest.param("\ufeffnode A {}", "node A {}\n", id="byte order mark"),
        pytest.param(
            "node A {\n    /* a\n       b */\n  x: I32 /* c\nd */\n}",
            "node A {\n  /* a\n       b */\n  x: I32 /* c\nd */\n}\n",
            id="comments of several lines are not touched inside",
        ),
    ],
)
def test_schema_is_formatted(text, formatted):
    assert format_schema(text) == formatted
    assert format_schema(formatted) == formatted


def around(*body):
    lines = ("query q() {", *(f"  {line}".rstrip() for line in body), "}")
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        pytest.param(
            "query q( /* a */ $p: I32 // b\n) { // c\n delete T where a = $p // d\n} // e",
            "/* a */\n// b\nquery q($p: I32) { // c\n  delete T where a = $p // d\n} // e\n",
            id="around a query",
        ),
        pytest.param(
            "query q() { match { // a\n $x: T { /* b */ a: 1 } // c\n\n $x.a > - /* d */ 5 }"
            " return { $x } }",
            around(
                "match { // a",
                "  /* b */",
                "  $x: T { a: 1 } // c",
                "",
                "  /* d */",
                "  $x.a > -5",
                "}",
                "return { $x }",
            ),
            id="in clauses",
        ),
        pytest.param(
            "query q() { match { $x: T } return { $x, // a\n // b\n $x.a } order { /* c */ $x }"
            " /* d */ limit /* e */ 5 // f\n}",
            around(
                "match {",
                "  $x: T",
                "}",
                "return {",
                "  $x, // a",
                "  // b",
                "  $x.a",
                "}",
                "order { /* c */",
                "  $x",
                "} /* d */",
                "/* e */",
                "limit 5 // f",
            ),
            id="in the result",
        ),
        pytest.param(
            "query q() { match { $x: T } return /* a */ distinct { $x } }",
            around("match {", "  $x: T", "}", "/* a */", "return distinct { $x }"),
            id="before a brace",
        ),
        pytest.param(
            "query q() { insert T { // a\n a: 1 // b\n b: 2 }"
            " update T set { a: 1 } where /* c */ b = 2 }",
            around(
                "insert T { // a",
                "  a: 1, // b",
                "  b: 2",
                "}",
                "update T set {",
                "  a: 1",
                "  /* c */",
                "} where b = 2",
            ),
            id="in mutations",
        ),
        pytest.param(
            'query q() { delete T where a = "x\ty" and b = 1.50 and c = date("d\te") }',
            around('delete T where a = "x\ty" and b = 1.50 and c = date("d\\te")'),
            id="literals keep their spelling",
        ),
    ],
)
def test_queries_are_formatted(text, formatted):
    assert format_queries(text) == formatted
    assert format_queries(formatted) == formatted


def test_broken_text_is_refused_with_its_name():
    with pytest.raises(SchemaError) as schema:
        format_schema("node a {}", "my.pg")
    assert schema.value.diagnostics[0].location == "my.pg:1:6"
    with pytest.raises(QueryError) as query:
        format_queries("query", "my.gq")
    assert query.value.diagnostics[0].location == "my.gq:1:6"
