"""One run shows all mistakes, and none that only follow from another."""

import pytest

from omnigraph.lang import Code, read_queries, read_schema, report_for_text
from omnigraph.lang.diagnostics import MAX_DIAGNOSTICS
from tests.support.diagnostic_lines import reported_queries, reported_schema

TYPE_HINT = "types: String, Blob, Bool, I32, I64, U32, U64, F32, F64, DateTime, Date, Vector"
CLOSE = "close it with `}`"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            "node a {}\n"
            "node B {\n"
            "  x I32\n"
            "  y: Foo\n"
            "  z: I32\n"
            "  @key()\n"
            "  w: [I32\n"
            "}\n"
            "edge E: B -> b\n"
            "interface I { x: I32, y: I32 }\n",
            [
                "1:6 expected a type name after `node`, found `a`"
                " | type names start with an upper-case letter: `A`",
                "3:5 expected `:` after the property name `x`, found `I32`",
                f"4:6 expected a type here, found `Foo` | {TYPE_HINT}",
                "6:8 expected a property or a value here, found `)`",
                "8:1 expected `]` to close the list type, found `}`",
                "9:14 expected a type name as the type the edge ends at, found `b`"
                " | type names start with an upper-case letter: `B`",
                "10:21 unexpected `,` | properties are not separated by commas",
            ],
            id="declarations and members",
        ),
        pytest.param(
            "node A {\n  x: I32\nnode B {\n  y: Foo\n}\nedge E: A -> B {\n",
            [
                f"1:6 the body of `A` is not closed | {CLOSE}",
                f"4:6 expected a type here, found `Foo` | {TYPE_HINT}",
                f"6:6 the body of `E` is not closed | {CLOSE}",
            ],
            id="an open body ends at the next declaration",
        ),
        pytest.param(
            "node A {\n  x y z\n  node B { y: I32 }\nnode C { z: Int }",
            [
                f"1:6 the body of `A` is not closed | {CLOSE}",
                "2:5 expected `:` after the property name `x`, found `y`",
                "4:13 expected a type here, found `Int` | did you mean `I64`?",
            ],
            id="an open body ends at the next declaration after a broken member too",
        ),
        pytest.param(
            "} } node A { x: I32 } } edge E: A -> A { { } } node B { x: Int }",
            [
                "1:1 expected `node`, `edge` or `interface` here, found `}`",
                "1:23 expected `node`, `edge` or `interface` here, found `}`",
                "1:42 expected a name of a property, found `{`",
                "1:60 expected a type here, found `Int` | did you mean `I64`?",
            ],
            id="stray braces",
        ),
        pytest.param(
            'node A { x: Int }\nnode B { x: "open\nnode C {}',
            [
                "1:13 expected a type here, found `Int` | did you mean `I64`?",
                '2:13 string is not closed | close it with `"`',
            ],
            id="an open string explains all that follows",
        ),
    ],
)
def test_schema_is_reported(text, lines):
    assert reported_schema(text) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            "query a() {\n"
            "  match {\n"
            "    $x: t\n"
            "    $x.a ==\n"
            "    $x knows\n"
            "    not { $x: T { a 1 } }\n"
            "    not { }\n"
            "    $y: T\n"
            "  }\n"
            "  return {\n"
            "    $x as\n"
            "    $y.A\n"
            "    count(\n"
            "  }\n"
            "  order { $x asc desc }\n"
            "  limit x\n"
            "}\n"
            "query b($p: Foo) { match { $x: T } return { $x } }\n"
            "query c() { match { $x: T } return { $x } }\n"
            "query d() { x }\n",
            [
                "3:9 expected a type name after `:`, found `t`"
                " | type names start with an upper-case letter: `T`",
                "4:11 unexpected `=` | equality is written `=`",
                "6:5 expected a variable where the traversal ends, found `not`",
                "6:21 expected `:` after `a`, found `1`",
                "7:9 the `not` block is empty",
                "12:5 expected a name after `as`, found `$y`",
                "12:8 expected a name of a property of `$y`, found `A`"
                " | names start with a lower-case letter: `a`",
                "14:3 expected a value here, found `}`",
                "15:18 expected `}` to close the `order` block, found `desc`",
                "16:9 expected an integer after `limit`, found `x`",
                f"18:13 expected a type here, found `Foo` | {TYPE_HINT}",
                "20:13 expected a statement here, found `x`"
                " | a query reads (`match … return …`) or changes (`insert`, `update`, `delete`)",
            ],
            id="clauses, blocks and queries",
        ),
        pytest.param(
            "query a() { match { $x: T\n"
            "query b() { match { not { $x: T\n"
            "query c() { insert T { a: 1\n"
            "query d() { delete T where a = 1 or b = 2 }\n",
            [
                f"1:19 the `match` block is not closed | {CLOSE}",
                f"2:19 the `match` block is not closed | {CLOSE}",
                f"2:25 the `not` block is not closed | {CLOSE}",
                f"3:7 the body of `c` is not closed | {CLOSE}",
                f"3:22 the `insert T` block is not closed | {CLOSE}",
                "4:34 expected a statement here, found `or`"
                " | the tests of a statement are joined by `and`",
            ],
            id="open blocks end at the next query",
        ),
        pytest.param(
            "query m() {\n"
            "  insert t { a: 1 }\n"
            "  update T { a: 1 } where a = 1\n"
            "  delete T where a =\n"
            "  insert T { a: [[[[ }\n"
            "  insert T { b 1 }\n"
            "  delete T where b = 1\n"
            "}\n",
            [
                "2:10 expected a type name after `insert`, found `t`"
                " | type names start with an upper-case letter: `T`",
                "3:12 expected `set` after `update T`, found `{`",
                "5:3 expected a value here, found `insert`",
                "5:22 expected a value here, found `}`",
                "6:16 expected `:` after `b`, found `1`",
            ],
            id="statements",
        ),
        pytest.param(
            "query a() {\n  match {\n    $x: T\n    and $x.a = 1\n    or $x.b = 1\n    $y: t\n  }"
            "\n  return { $x }\n}",
            [
                "4:5 unexpected `and` | clauses are joined by writing one after the other",
                "5:5 unexpected `or` | write `or` inside parentheses: `( … or … )`",
                "6:9 expected a type name after `:`, found `t`"
                " | type names start with an upper-case letter: `T`",
            ],
            id="lines that cannot start a clause are passed over",
        ),
        pytest.param(
            "query a() { match { $x: T { a: 1, b 2 } $x.c = } return { $x, } order { } }",
            ["1:37 expected `:` after `b`, found `2`", "1:73 expected a value here, found `}`"],
            id="one line, one mistake a block",
        ),
        pytest.param(
            "query m() {\n" + "  delete T where a = [[[[[ x\n" * 30 + "}",
            [
                f'{line}:28 expected a value here, found `x` | text is written in quotes: `"x"`'
                for line in range(2, 32)
            ],
            id="mistakes in nested values do not add up to deep nesting",
        ),
    ],
)
def test_queries_are_reported(text, lines):
    assert reported_queries(text) == lines


def test_what_could_be_read_is_in_the_tree():
    schema = report_for_text(
        "node A { x: I32 y: Foo }\nnode b {}\nnode C {}", "", Code.SCHEMA_UNREADABLE
    )
    tree = read_schema(schema)
    assert [d.name.text for d in tree.declarations] == ["A", "C"]
    assert [m.name.text for m in tree.declarations[0].members] == ["x"]
    queries = report_for_text(
        "query a() { x }\nquery b() { delete T where a = 1 }", "", Code.QUERY_SYNTAX
    )
    assert [q.name.text for q in read_queries(queries).queries] == ["a", "b"]


@pytest.mark.parametrize(
    ("reported", "line", "column"),
    [(reported_schema, "node a {}\n", 6), (reported_queries, "query A() {}\n", 7)],
)
def test_after_a_hundred_errors_the_rest_is_summed_up(reported, line, column):
    shown = reported(line * (MAX_DIAGNOSTICS - 1))
    places = [entry.partition(" ")[0] for entry in shown]
    assert places == [f"{number}:{column}" for number in range(1, MAX_DIAGNOSTICS)]
    assert reported(line * 1000)[:-1] == shown
    assert reported(line * 1000)[-1].endswith(" too many errors; the rest is not shown")


@pytest.mark.parametrize("reported", [reported_schema, reported_queries])
def test_a_hundred_characters_that_mean_nothing_are_summed_up(reported):
    lines = reported("# " * 1000)
    assert len(lines) == MAX_DIAGNOSTICS
    assert lines[-1].endswith(" too many errors; the rest is not shown")
