"""Print the diagnostics of a text, one line each."""

from __future__ import annotations

from omnigraph.lang import Code, DiagnosticReport, read_queries, read_schema, report_for_text


def reported(report: DiagnosticReport) -> list[str]:
    """Return `line:column message`, followed by ` | hint` where there is one, in text order."""
    return [
        f"{':'.join(map(str, d.source.position(d.span.start)))} {d.message}"
        + (f" | {d.hint}" if d.hint is not None else "")
        for d in report.sorted()
        if d.source is not None and d.span is not None
    ]


def reported_schema(text: str) -> list[str]:
    """Return what reading `.pg` text says."""
    report = report_for_text(text, "test.pg", Code.SCHEMA_UNREADABLE)
    read_schema(report)
    return reported(report)


def reported_queries(text: str) -> list[str]:
    """Return what reading `.gq` text says."""
    report = report_for_text(text, "test.gq", Code.QUERY_UNREADABLE)
    read_queries(report)
    return reported(report)


def read_table(table: str) -> list[tuple[str, list[str]]]:
    """Read lines of text, each followed by indented lines with what it is reported.

    A hint stands on a line of its own after its message and starts with `= `.
    """
    rows: list[tuple[str, list[str]]] = []
    for line in filter(str.strip, table.splitlines()):
        if not line.startswith("  "):
            rows.append((line, []))
        elif line.startswith("  = "):
            rows[-1][1][-1] += f" | {line[4:]}"
        else:
            rows[-1][1].append(line[2:])
    return rows
