"""Diagnostics as text and as JSON."""

import pytest

from omnigraph.errors import Category, OmniError
from omnigraph.lang import (
    Code,
    Diagnostic,
    DiagnosticReport,
    QueryError,
    SchemaError,
    Severity,
    SourceText,
    TextSpan,
)
from omnigraph.lang.diagnostics import MAX_DIAGNOSTICS, quote


def drawn(text, start, end=None, **facts):
    """Return the snippet under a diagnostic, below the line that says where it is."""
    span = TextSpan(start, start + 1 if end is None else end)
    diagnostic = Diagnostic(Code.QUERY_SYNTAX, "m", span, source=SourceText(text, "f"), **facts)
    return diagnostic.render().split("\n")[2:]


def test_a_diagnostic_shows_headline_place_snippet_and_hint():
    source = SourceText("node A {}\nnode b {}\n", "my.pg")
    diagnostic = Diagnostic(
        Code.SCHEMA_SYNTAX, "no `b`", TextSpan(15, 16), "try `B`", source=source
    )
    assert diagnostic.render() == (
        "error[S000]: no `b`\n"
        "  --> my.pg:2:6\n"
        "   |\n"
        "2  | node b {}\n"
        "   |      ^\n"
        "   = help: try `B`"
    )
    assert diagnostic.location == "my.pg:2:6"
    assert str(diagnostic) == "S000: no `b`"


def test_a_diagnostic_without_a_place_shows_what_it_knows():
    named = Diagnostic(Code.QUERY_NOT_FOUND, "m", source=SourceText("", "f"))
    assert named.render() == "error[Q004]: m\n  --> f"
    assert named.location == "f"
    assert Diagnostic(Code.QUERY_NOT_FOUND, "m").render() == "error[Q004]: m"
    assert Diagnostic(Code.QUERY_NOT_FOUND, "m").location == ""


@pytest.mark.parametrize(
    ("text", "start", "end", "snippet"),
    [
        pytest.param("abc", 0, 3, ["1  | abc", "   | ^^^"], id="whole line"),
        pytest.param("abc", 1, 1, ["1  | abc", "   |  ^"], id="zero width"),
        pytest.param("abc", 3, 3, ["1  | abc", "   |    ^"], id="end of text"),
        pytest.param("", 0, 0, ["1  | ", "   | ^"], id="empty text"),
        pytest.param("abc\n", 4, 4, ["2  | ", "   | ^"], id="after the last line break"),
        pytest.param("a\nbc\nd", 2, 6, ["2  | bc", "   | ^^"], id="several lines"),
        pytest.param("a\r\nbc\r\nd", 3, 5, ["2  | bc", "   | ^^"], id="CRLF"),
        pytest.param("\tx\ty", 3, 4, ["1  |     x    y", "   |          ^"], id="tabs before"),
        pytest.param("a\tb", 1, 2, ["1  | a    b", "   |  ^^^^"], id="a tab marked"),
        pytest.param("日本x", 2, 3, ["1  | 日本x", "   |     ^"], id="wide letters before"),
        pytest.param("日本x", 0, 2, ["1  | 日本x", "   | ^^^^"], id="wide letters marked"),
        pytest.param("e\u0301x", 2, 3, ["1  | e\u0301x", "   |  ^"], id="combining mark before"),
        pytest.param("a\0\x1bb", 3, 4, ["1  | a��b", "   |    ^"], id="control characters"),
    ],
)
def test_carets_stand_under_the_place(text, start, end, snippet):
    assert drawn(text, start, end) == ["   |", *snippet]


def test_gutter_grows_with_the_line_number():
    assert drawn("\n" * 99 + "abc", 100, 101) == ["     |", "100  | abc", "     |  ^"]


def test_a_very_long_line_is_cut_around_the_place():
    text = "".join(str(i % 10) for i in range(1000))
    assert drawn(text, 0, 2) == ["   |", f"1  | {text[:120]}", "   | ^^"]
    assert drawn(text, 500, 503) == ["   |", f"1  | …{text[440:560]}", "   | " + " " * 61 + "^^^"]
    assert drawn(text, 999) == ["   |", f"1  | …{text[939:]}", "   | " + " " * 61 + "^"]
    assert drawn(text, 500, 1000) == [
        "   |",
        f"1  | …{text[440:560]}",
        "   | " + " " * 61 + "^" * 60,
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abc", "abc"),
        ("a" * 60, "a" * 60),
        ("a" * 61, "a" * 59 + "…"),
        ("a\nb\0\u2028", "a\\u{a}b\\u{0}\\u{2028}"),
        ("日本", "日本"),
    ],
)
def test_quoted_text_is_short_and_printable(text, shown):
    assert quote(text) == shown


def test_json_has_the_same_facts():
    source = SourceText("a\nbc\nd", "f")
    full = Diagnostic(Code.NO_PARAMS, "m", TextSpan(2, 6), "h", Severity.WARNING, source)
    assert full.to_json() == {
        "code": "L101",
        "name": "no_params",
        "severity": "warning",
        "message": "m",
        "hint": "h",
        "file": "f",
        "span": {"start": 2, "end": 6, "line": 2, "column": 1, "end_line": 3, "end_column": 2},
    }
    assert Diagnostic(Code.NO_PARAMS, "m").to_json() == {
        "code": "L101",
        "name": "no_params",
        "severity": "error",
        "message": "m",
        "hint": None,
    }


def test_severity_is_the_codes_own_unless_given():
    report = DiagnosticReport(SourceText(""))
    report.add(Code.NO_PARAMS, "a")
    report.add(Code.NO_PARAMS, "b", severity=Severity.ERROR)
    assert [d.severity for d in report.diagnostics] == [Severity.WARNING, Severity.ERROR]
    assert [d.message for d in report.errors] == ["b"]


def test_the_same_about_the_same_place_is_reported_once():
    report = DiagnosticReport(SourceText("abc"))
    for start in (0, 1, 0):
        report.add(Code.QUERY_SYNTAX, "m", TextSpan(start, 2))
    assert [d.span for d in report.diagnostics] == [(0, 2), (1, 2)]


def test_a_report_is_read_in_the_order_of_the_text():
    report = DiagnosticReport(SourceText("abc"))
    report.add(Code.QUERY_SYNTAX, "late", TextSpan(2, 3))
    report.add(Code.QUERY_SYNTAX, "early", TextSpan(0, 1))
    report.add(Code.QUERY_NOT_FOUND, "nowhere")
    assert [d.message for d in report.sorted()] == ["nowhere", "early", "late"]


def test_a_report_keeps_a_hundred_errors_and_always_room_for_one():
    report = DiagnosticReport(SourceText(""))
    for number in range(MAX_DIAGNOSTICS + 50):
        report.add(Code.NO_PARAMS, f"warning {number}")
    assert len(report.diagnostics) == MAX_DIAGNOSTICS
    assert not report.full
    for number in range(MAX_DIAGNOSTICS + 50):
        report.add(Code.QUERY_SYNTAX, f"error {number}")
    assert report.full
    assert [d.message for d in report.errors] == [f"error {n}" for n in range(MAX_DIAGNOSTICS)]


def test_names_that_would_fill_a_screen_are_cut_in_messages_and_hints():
    report = DiagnosticReport(SourceText(""))
    name = "a" * 1000
    report.add(Code.QUERY_SYNTAX, f"no `{name}` in `b`", hint=f"try `{name}`")
    [diagnostic] = report.diagnostics
    assert diagnostic.message == f"no `{'a' * 59}…` in `b`"
    assert diagnostic.hint == f"try `{'a' * 59}…`"


@pytest.mark.parametrize("error", [SchemaError, QueryError])
def test_an_error_carries_all_diagnostics_and_speaks_of_the_errors(error):
    warning = Diagnostic(Code.NO_PARAMS, "w", severity=Severity.WARNING)
    first, second = Diagnostic(Code.QUERY_SYNTAX, "a"), Diagnostic(Code.UNKNOWN_EDGE, "b")
    refusal = error([warning, first, second])
    assert isinstance(refusal, OmniError)
    assert str(refusal) == refusal.message == "error[Q000]: a\n\nerror[T4]: b"
    assert refusal.code == "Q000"
    assert refusal.category is Category.INVALID
    assert refusal.diagnostics == (warning, first, second)
    assert refusal.to_json() == {
        "code": "Q000",
        "category": "invalid",
        "message": "error[Q000]: a\n\nerror[T4]: b",
        "details": {"diagnostics": [d.to_json() for d in (warning, first, second)]},
    }
