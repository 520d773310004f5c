"""Text to trees, for `.pg` schemas and `.gq` queries, and back.

Text enters; trees with spans, diagnostics and canonical text leave. Trees compare by meaning, so
`parse(print(parse(x))) == parse(x)`. Reading never raises on bad text: it reports, recovers at the
next declaration or clause, and goes on. The grammar is in `docs/language/`.
"""

from omnigraph.lang.codes import Code, Severity
from omnigraph.lang.diagnostics import (
    Diagnostic,
    DiagnosticError,
    DiagnosticReport,
    QueryError,
    SchemaError,
    did_you_mean,
    nearest_name,
    report_for_bytes,
    report_for_text,
)
from omnigraph.lang.format import format_queries, format_schema
from omnigraph.lang.query_parser import parse_queries, read_named_queries, read_queries
from omnigraph.lang.query_printer import print_queries
from omnigraph.lang.schema_parser import parse_schema, read_schema
from omnigraph.lang.schema_printer import print_schema, print_type
from omnigraph.lang.source import SourceText, TextPosition, TextSpan

__all__ = [
    "Code",
    "Diagnostic",
    "DiagnosticError",
    "DiagnosticReport",
    "QueryError",
    "SchemaError",
    "Severity",
    "SourceText",
    "TextPosition",
    "TextSpan",
    "did_you_mean",
    "format_queries",
    "format_schema",
    "nearest_name",
    "parse_queries",
    "parse_schema",
    "print_queries",
    "print_schema",
    "print_type",
    "read_named_queries",
    "read_queries",
    "read_schema",
    "report_for_bytes",
    "report_for_text",
]
