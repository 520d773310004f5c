"""What is fuzzed: each target takes bytes and raises unless everything it promises holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

import omnigraph
from omnigraph import lang
from omnigraph.lang import Code, Diagnostic, DiagnosticError, Severity
from omnigraph.lang.query_tree import QueryTree
from omnigraph.lang.schema_tree import SchemaTree

_T = TypeVar("_T")

_MAX_Reported = 4000
_HARBOUR = (Path(__file__).parent / "corpus" / "harbour.pg").read_text(encoding="utf-8")


class Target(NamedTuple):
    """A promise with the name it is reported under."""

    name: str
    run: Callable[[bytes], None]


def _check_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Every diagnostic can be shown to people and programs and points into its text."""
    for diagnostic in diagnostics:
        shown = diagnostic.render()
        shown.encode("utf-8")
        json.dumps(diagnostic.to_json()).encode("utf-8")
        assert len(shown) < _MAX_Reported, "a diagnostic is too long to be read"
        if diagnostic.span is not None and diagnostic.source is not None:
            start, end = diagnostic.span
            assert 0 <= start <= end <= len(diagnostic.source.text), "span is outside of the text"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _unless_refused(action: Callable[[], _T]) -> _T | None:
    """Return what the action returns, or None when it refuses its text as it should."""
    try:
        return action()
    except DiagnosticError as error:
        _check_refusal(error)
        return None


def _check_refusal(error: DiagnosticError) -> None:
    assert any(d.severity is Severity.ERROR for d in error.diagnostics), "refused without reason"
    _check_diagnostics(error.diagnostics)
    json.dumps(error.to_json())


def _read_schema(data: bytes) -> None:
    report = lang.report_for_bytes(data, "fuzz.pg", Code.SCHEMA_UNREADABLE)
    tree = lang.read_schema(report)
    _check_diagnostics(report.sorted())
    if not report.errors:
        assert lang.parse_schema(lang.print_schema(tree)) == tree, "printing changed the tree"


def _read_queries(data: bytes) -> None:
    report = lang.report_for_bytes(data, "fuzz.gq", Code.QUERY_UNREADABLE)
    tree = lang.read_queries(report)
    _check_diagnostics(report.sorted())
    if not report.errors:
        assert lang.parse_queries(lang.print_queries(tree)) == tree, "printing changed the tree"


def _format(
    data: bytes, format_: Callable[[str], str], parse: Callable[[str], SchemaTree | QueryTree]
) -> None:
    text = _text(data)
    formatted = _unless_refused(lambda: format_(text))
    if formatted is not None:
        assert parse(formatted) == parse(text), "formatting changed the tree"
        assert format_(formatted) == formatted, "formatting did not settle"


def _parse_schema(data: bytes) -> None:
    _unless_refused(lambda: lang.parse_schema(_text(data)))


def _parse_queries(data: bytes) -> None:
    _unless_refused(lambda: lang.parse_queries(_text(data)))


def _check_schema(data: bytes) -> None:
    _unless_refused(lambda: omnigraph.check(_text(data)))


def _check_queries(data: bytes) -> None:
    _unless_refused(lambda: omnigraph.check(_HARBOUR, _text(data)))


TARGETS = (
    Target("read schema", _read_schema),
    Target("read queries", _read_queries),
    Target("parse schema", _parse_schema),
    Target("parse queries", _parse_queries),
    Target("format schema", lambda data: _format(data, lang.format_schema, lang.parse_schema)),
    Target("format queries", lambda data: _format(data, lang.format_queries, lang.parse_queries)),
    Target("check schema", _check_schema),
    Target("check queries", _check_queries),
)
