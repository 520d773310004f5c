"""Hostile text: always diagnostics or acceptance, in time that grows with the text only."""

import time
from random import Random

import pytest

from omnigraph.lang import (
    Code,
    Severity,
    format_queries,
    format_schema,
    read_queries,
    read_schema,
    report_for_bytes,
)
from omnigraph.lang.base_parser import MAX_NESTING
from tests.support.diagnostic_lines import reported, reported_queries, reported_schema

TEN_MB = 10_000_000
TWO_MB = 2_000_000
"""Enough for quadratic time to take far longer than allowed."""
DEEP = 10_000
CPU_SECONDS = 10.0

both = pytest.mark.parametrize(
    ("read", "code"),
    [(read_schema, Code.SCHEMA_UNREADABLE), (read_queries, Code.QUERY_UNREADABLE)],
    ids=["pg", "gq"],
)


def read_in_time(data, read, code):
    """Read, draw and tell within the time allowed; return the report."""
    before = time.process_time()
    report = report_for_bytes(data, "bad", code)
    read(report)
    for diagnostic in report.sorted():
        assert len(diagnostic.render()) < 2000
        span = diagnostic.to_json()["span"]
        assert 0 <= span["start"] <= span["end"] <= len(report.source.text)
    assert time.process_time() - before < CPU_SECONDS
    return report


ONE_THING = (
    *('"', '\\"', '"\\', '""', "'", "/*", "//", "$", "@", "-", "(", "[", "{", "}", ".", "#", "!"),
    *("a", "A", "0", "0.", " ", "\n", "\r", "\0", "é", "\ufeff", "\u2028", "a ", "a\n", "x: "),
    *("not {", "enum(", "query q() {", "node A {\n", "node A { x: I32, }\n"),
)
HARMLESS = ("//", " ", "\n", "\r")


@both
@pytest.mark.parametrize("unit", ONE_THING)
def test_megabytes_of_one_thing_are_reported_in_time(unit, read, code):
    data = (unit * (TWO_MB // len(unit.encode()))).encode()
    report = read_in_time(data, read, code)
    assert bool(report.errors) != (unit in HARMLESS)


@both
@pytest.mark.parametrize(
    "before",
    [
        *("node A { x: enum(", "node A { ", "node A @d(", 'node A { x: String @d("', "edge E: A"),
        *("query q() { match { ", "query q() { match { $x.a = ", "query q() { insert T { a: "),
        *("query q(", 'query q() @description("', "query q() { match { $x: T } return { "),
    ],
)
@pytest.mark.parametrize("unit", ["a", "a,", "a, ", "- ", "\\", "(a", "$a ", "x: I32 ", "/**/"])
def test_a_long_text_in_an_open_place_is_reported_in_time(before, unit, read, code):
    data = (before + unit * (TEN_MB // 400 // len(unit))).encode()
    assert read_in_time(data, read, code).errors


GARBAGE = {
    "bytes": bytes(range(256)),
    "printable": bytes(range(32, 127)),
    "signs": b'{}()[],:@.?=<>-" \n',
}


@both
@pytest.mark.parametrize("alphabet", GARBAGE.values(), ids=GARBAGE)
def test_ten_megabytes_of_garbage_are_reported_in_time(alphabet, read, code):
    table = bytes(alphabet[number % len(alphabet)] for number in range(256))
    data = Random(7).randbytes(TEN_MB).translate(table)
    assert read_in_time(data, read, code).errors


def test_a_ten_megabyte_schema_is_accepted():
    about = "x" * 400
    text = "".join(
        f'node N{n} @description("{about}") {{\n  slug: String @key // {about}\n}}\n'
        for n in range(TEN_MB // 850)
    )
    assert len(text) > 9_900_000
    before = time.process_time()
    report = report_for_bytes(text.encode(), "big.pg", Code.SCHEMA_UNREADABLE)
    assert len(read_schema(report).declarations) == TEN_MB // 850
    assert reported(report) == []
    assert format_schema(text).count("\n") == TEN_MB // 850 * 4 - 1
    assert time.process_time() - before < CPU_SECONDS


def test_a_ten_megabyte_query_file_is_accepted():
    about = "x" * 800
    query = 'query q{n}() {{ match {{ $x: T {{ a: "{about}" }} }} /* {n} */ return {{ $x }} }}\n'
    text = "".join(query.format(n=n, about=about) for n in range(TEN_MB // 850))
    assert len(text) > 9_900_000
    before = time.process_time()
    report = report_for_bytes(text.encode(), "big.gq", Code.QUERY_UNREADABLE)
    assert len(read_queries(report).queries) == TEN_MB // 850
    assert reported(report) == []
    assert format_queries(text).count("/*") == TEN_MB // 850
    assert time.process_time() - before < CPU_SECONDS


@pytest.mark.parametrize(
    ("format_", "before", "line", "after"),
    [
        (format_queries, "query q() { match {\n", "    $x: T\n", "  }\n  return { $x }\n}\n"),
        (format_schema, "node A {\n", "  x: I32 // beside\n\n", "}\n"),
    ],
)
def test_formatting_takes_time_that_grows_with_the_text_only(format_, before, line, after):
    text = before + line * 100_000 + after + "// one comment, far away\n"
    start = time.process_time()
    assert format_(text).count("\n" + line.rstrip()) == 100_000
    assert time.process_time() - start < CPU_SECONDS


def test_a_name_of_ten_megabytes_is_accepted_and_never_shown_whole():
    name = "a" * TEN_MB
    assert reported_schema(f"node A {{ {name}: I32 }}") == []
    [line] = reported_schema(f"node A {{ {name} I32 }}")
    assert line.endswith(f"expected `:` after the property name `{'a' * 59}…`, found `I32`")


NESTINGS = {
    "not": ("query q() { match { ", "not { ", "$x: T", " }", " } return { $x } }"),
    "group": ("query q() { match { ", "(", "$x.a = 1", ")", " } return { $x } }"),
    "or group": ("query q() { match { ", "($x.a = 1 or ", "$x.a = 1", ")", " } return { $x } }"),
    "and in or": (
        "query q() { match { ",
        "($x.a = 1 and ",
        "$x.a = 1",
        " or $x.b = 2)",
        " } return { $x } }",
    ),
    "call": ("query q() { match { $x: T } return { ", "f(", "$x", ")", " } }"),
    "call in order": ("query q() { match { $x: T } return { $x } order { ", "f(", "1", ")", " } }"),
    "list": ("query q() { match { $x.a = ", "[", "1", "]", " } return { $x } }"),
    "list in match": ("query q() { match { $x: T { a: ", "[", "1", "]", " } } return { $x } }"),
    "list in insert": ("query q() { insert T { a: ", "[", "1", "]", " } }"),
    "list in where": ("query q() { delete T where a = ", "[", "1", "]", " }"),
}


def nested(name, depth, *, closed=True):
    before, opening, inside, closing, after = NESTINGS[name]
    text = before + opening * depth + inside
    return text + closing * depth + after if closed else text


@pytest.mark.parametrize("name", NESTINGS)
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_is_reported_where_it_gets_too_deep(name, closed):
    before = time.process_time()
    lines = reported_queries(nested(name, DEEP, closed=closed))
    assert time.process_time() - before < CPU_SECONDS
    assert lines[-1].endswith(f"nesting is deeper than {MAX_NESTING} levels")
    assert len(lines) == 1


@pytest.mark.parametrize("name", NESTINGS)
def test_nesting_within_the_limit_is_accepted_and_formatted(name):
    text = nested(name, MAX_NESTING - 2)
    assert reported_queries(text) == []
    assert format_queries(format_queries(text)) == format_queries(text)


@pytest.mark.parametrize(
    "text", ["node A { x: " + unit * DEEP for unit in ("[", "enum(", "Vector(", "{", "@d(")]
)
def test_a_schema_does_not_nest(text):
    assert reported_schema(text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("node A { x: I32 }\0", ["1:18 unexpected character U+0000"]),
        ("\0", ["1:1 unexpected character U+0000"]),
        ('node A @d("\0") {}', []),
        ("node A {} // \0", []),
        ("node A {}\r\n\r\nnode b {}", ["3:6 expected a type name after `node`, found `b`"]),
        ("node A {}\rnode B {}", []),
        ('node A { x: I32 @d("', ['1:20 string is not closed | close it with `"`']),
        ("node A { x: I32 } /*", ["1:19 comment is not closed | close it with `*/`"]),
        ("node A { x: I32 } /", ["1:19 expected `node`, `edge` or `interface` here, found `/`"]),
    ],
)
def test_odd_characters_are_reported_or_harmless(text, lines):
    assert [line.partition(" | type names")[0] for line in reported_schema(text)] == lines


def test_every_error_of_bad_text_is_an_error():
    report = report_for_bytes(
        b"node a {} $ ' \xc3\xa9 node B { x: Foo", "bad", Code.SCHEMA_UNREADABLE
    )
    read_schema(report)
    assert {d.severity for d in report.diagnostics} == {Severity.ERROR}
    assert {d.code for d in report.diagnostics} == {Code.SCHEMA_SYNTAX}
