"""Text to trees, for `.pg` schemas and `.gq` queries, and back.

Text enters; trees with spans, diagnostics and canonical text leave. Trees compare by meaning, so
`parse(print(parse(x))) == parse(x)`. Reading never raises on bad text: it reports, recovers at the
next declaration or clause, and goes on. The grammar is in `docs/language/`.
"""

from omnigraph.lang.codes import Code, Severity
from omnigraph.lang.diagnostics import (
    Diagnostic,
    DiagnosticError,
    QueryError,
    Report,
    SchemaError,
)
from omnigraph.lang.format import format_queries, format_schema
from omnigraph.lang.query_parser import parse_queries, read_queries
from omnigraph.lang.query_printer import print_queries
from omnigraph.lang.schema_parser import parse_schema, read_schema
from omnigraph.lang.schema_printer import print_schema, print_type
from omnigraph.lang.source import Position, Source, Span
from omnigraph.lang.suggest import did_you_mean, nearest_name
from omnigraph.lang.text import admit, decode

__all__ = [
    "Code",
    "Diagnostic",
    "DiagnosticError",
    "Position",
    "QueryError",
    "Report",
    "SchemaError",
    "Severity",
    "Source",
    "Span",
    "admit",
    "decode",
    "did_you_mean",
    "format_queries",
    "format_schema",
    "nearest_name",
    "parse_queries",
    "parse_schema",
    "print_queries",
    "print_schema",
    "print_type",
    "read_queries",
    "read_schema",
]
