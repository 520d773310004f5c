"""Format source text: same tree, same comments, one layout."""

from __future__ import annotations

from omnigraph.lang.codes import Code
from omnigraph.lang.diagnostics import QueryError, SchemaError, report_for_text
from omnigraph.lang.query_parser import read_queries
from omnigraph.lang.query_printer import print_queries
from omnigraph.lang.schema_parser import read_schema
from omnigraph.lang.schema_printer import print_schema
from omnigraph.lang.tokens import find_comments


def format_schema(text: str, name: str = "<schema>") -> str:
    """Return `.pg` text in canonical layout; raise SchemaError when it cannot be read.

    >>> format_schema("node A{x:I32 y : I32?} // two")
    'node A {\\n  x: I32\\n  y: I32?\\n} // two\\n'
    """
    report = report_for_text(text, name, Code.SCHEMA_UNREADABLE)
    tree = read_schema(report)
    report.raise_errors(SchemaError)
    return print_schema(tree, report.source, find_comments(report.source))


def format_queries(text: str, name: str = "<query>") -> str:
    """Return `.gq` text in canonical layout; raise QueryError when it cannot be read."""
    report = report_for_text(text, name, Code.QUERY_UNREADABLE)
    tree = read_queries(report)
    report.raise_errors(QueryError)
    return print_queries(tree, report.source, find_comments(report.source))
