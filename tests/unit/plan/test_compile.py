"""Checking a schema with queries, and compiling one of them."""

import pytest

from omnigraph.lang import Code, Diagnostic, QueryError, SchemaError, Severity
from omnigraph.plan import MutationPlan, ReadPlan, check, compile_query
from tests.support.plans import catalog

SCHEMA = "node Port { code: String @key  depth: F64? }"
READ = "query q() { match { $p: Port } return { $p } }"


def codes(diagnostics):
    return [str(diagnostic.code) for diagnostic in diagnostics]


@pytest.mark.parametrize("query", [None, "", READ])
def test_nothing_is_reported_about_what_is_right(query):
    assert check(SCHEMA, query) == []


def test_warnings_are_returned():
    found = check(
        SCHEMA,
        'query m() { insert Port { code: "AAA" } }\n'
        "query u($c: String) { update Port set { depth: 1.0 } where code = $c }",
    )
    assert codes(found) == ["L101"]
    [warning] = found
    assert isinstance(warning, Diagnostic)
    assert warning.severity is Severity.WARNING
    assert warning.location == "<query>:1:7"


def test_a_refused_schema_is_raised_with_every_reason():
    with pytest.raises(SchemaError) as refused:
        check("node A { x: I32? @key }\nedge E: A -> B", READ)
    assert codes(refused.value.diagnostics) == ["S203", "S103"]
    assert refused.value.code == "S203"
    assert [d.location for d in refused.value.diagnostics] == ["<schema>:1:10", "<schema>:2:14"]


def test_refused_queries_are_raised_with_every_reason_warnings_included():
    with pytest.raises(QueryError) as refused:
        check(
            SCHEMA,
            "query a() { match { $p: Prt } return { $p } }\n"
            "query m() { delete Port where cod = 1 }\n"
            f"{READ}",
        )
    assert codes(refused.value.diagnostics) == ["T1", "L101", "T11"]
    assert refused.value.code == "T1"
    assert "did you mean `Port`?" in str(refused.value)


def test_text_that_is_no_query_is_raised():
    with pytest.raises(QueryError) as refused:
        check(SCHEMA, "query")
    assert codes(refused.value.diagnostics) == ["Q000"]


@pytest.mark.parametrize(
    ("schema", "query", "error", "code"),
    [
        ("node A { \ud800 }", None, SchemaError, "S001"),
        (SCHEMA, "// \udfff", QueryError, "Q001"),
        ("x" * (16 * 1024 * 1024 + 1), None, SchemaError, "S001"),
        (SCHEMA, "x" * (16 * 1024 * 1024 + 1), QueryError, "Q001"),
    ],
    ids=["half a letter", "half a letter in a query", "too long", "too long a query"],
)
def test_unreadable_text_is_raised(schema, query, error, code):
    with pytest.raises(error) as refused:
        check(schema, query)
    assert codes(refused.value.diagnostics) == [code]


TWO = "query a() { match { $s: Ship } return { $s } }\nquery b() { delete Note where id = 1 }"


def test_a_query_is_compiled_by_name():
    assert isinstance(compile_query(catalog(), TWO, "a"), ReadPlan)


def test_the_mistakes_of_the_chosen_query_are_raised():
    with pytest.raises(QueryError) as refused:
        compile_query(catalog(), TWO, "b", source_name="notes.gq")
    [mistake] = refused.value.diagnostics
    assert mistake.location == "notes.gq:2:36"
    assert mistake.code is Code.LITERAL_MISFIT


def test_the_only_query_needs_no_name():
    text = "query m($t: String) { insert Note { text: $t } }"
    assert isinstance(compile_query(catalog(), text), MutationPlan)


@pytest.mark.parametrize(
    ("text", "name", "message", "hint"),
    [
        (TWO, None, "the text holds 2 queries; say which one to run", "known names: `a`, `b`"),
        (TWO, "c", "query 'c' not found", "known names: `a`, `b`"),
        ("query ships() { delete Note where id = 1 }", "shps", "query 'shps' not found", "ships"),
        ("", None, "the text holds 0 queries; say which one to run", None),
        ("", "a", "query 'a' not found", None),
    ],
)
def test_a_query_that_is_not_there_is_raised(text, name, message, hint):
    with pytest.raises(QueryError) as refused:
        compile_query(catalog(), text, name)
    [missing] = refused.value.diagnostics
    assert missing.code is Code.QUERY_NOT_FOUND
    assert missing.message == message
    assert missing.hint == hint or hint in missing.hint


def test_a_syntax_error_anywhere_refuses_the_whole_text():
    with pytest.raises(QueryError) as refused:
        compile_query(catalog(), f"{TWO}\nquery c( {{ }}", "a")
    assert codes(refused.value.diagnostics) == ["Q000"]


def test_compiling_one_of_two_queries_of_one_name_is_refused():
    text = "query q() { match { $s: Ship } return { $s } }\n" * 2
    with pytest.raises(QueryError) as caught:
        compile_query(catalog(), text, "q")
    assert [(d.code, d.location) for d in caught.value.diagnostics] == [("Q003", "<query>:2:7")]
