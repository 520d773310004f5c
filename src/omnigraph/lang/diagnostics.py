"""Diagnostics: errors and warnings about source text, collected in a report.

A diagnostic has a stable code, a place, a sentence in graph words and, where we can, the way
out. A `Report` gathers the diagnostics of one source so that one run shows them all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from omnigraph.errors import Category, OmniError
from omnigraph.lang.codes import Code, Severity
from omnigraph.lang.source import SourceText, TextSpan
from omnigraph.notebook.problems import diagnostics_html

MAX_DIAGNOSTICS = 100
"""Diagnostics kept per source; more are not reported."""

_MAX_QUOTE = 60
_LONG_NAME = re.compile(rf"\w{{{_MAX_QUOTE + 1},}}")
_SNIPPET_WIDTH = 120


def quote(text: str) -> str:
    """Return user text fit for a message: short, and with nothing unprintable in it."""
    short = text if len(text) <= _MAX_QUOTE else text[: _MAX_QUOTE - 1] + "…"
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in short)


def _with_short_names(message: str) -> str:
    """Return the message with names cut that would fill a screen."""
    return _LONG_NAME.sub(lambda name: name[0][: _MAX_QUOTE - 1] + "…", message)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning about one span of one source."""

    code: Code
    message: str
    span: TextSpan | None = None
    hint: str | None = None
    severity: Severity = Severity.ERROR
    source: SourceText | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def location(self) -> str:
        """`file:line:column`, as editors understand it."""
        if self.source is None:
            return ""
        if self.span is None:
            return self.source.name
        line, column = self.source.position(self.span.start)
        return f"{self.source.name}:{line}:{column}"

    def render(self) -> str:
        """Return the full text: headline, location, snippet with caret, hint."""
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.source is not None:
            lines.append(f"  --> {self.location}")
            if self.span is not None:
                lines += _snippet(self.source, self.span)
        if self.hint is not None:
            lines.append(f"   = help: {self.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the same facts as plain JSON values."""
        facts: dict[str, Any] = {
            "code": str(self.code),
            "name": self.code.slug,
            "severity": str(self.severity),
            "message": self.message,
            "hint": self.hint,
        }
        if self.source is not None:
            facts["file"] = self.source.name
            if self.span is not None:
                start = self.source.position(self.span.start)
                end = self.source.position(self.span.end)
                facts["span"] = {
                    "start": self.span.start,
                    "end": self.span.end,
                    "line": start.line,
                    "column": start.column,
                    "end_line": end.line,
                    "end_column": end.column,
                }
        return facts

    def _repr_html_(self) -> str:
        return diagnostics_html([str(self)])


def _snippet(source: SourceText, span: TextSpan) -> list[str]:
    """Draw the line of `span` with carets under it; a very long line is cut around the place."""
    start = source.position(span.start)
    text = source.line(start.line)
    column = start.column - 1
    width = max(1, min(span.end - span.start, len(text) - column))
    left = max(0, column - _SNIPPET_WIDTH // 2) if len(text) > _SNIPPET_WIDTH else 0
    shown = quote_line(text[left : left + _SNIPPET_WIDTH])
    prefix = quote_line(text[left:column])
    marked = quote_line(text[column : column + min(width, _SNIPPET_WIDTH - (column - left))])
    gutter = str(start.line)
    pad = " " * len(gutter)
    return [
        f"{pad}  |",
        f"{gutter}  | {'…' if left else ''}{shown}",
        f"{pad}  | {' ' * (_columns(prefix) + (1 if left else 0))}{'^' * max(1, _columns(marked))}",
    ]


def _columns(text: str) -> int:
    """Return how many columns a terminal needs: wide letters take two, combining marks none."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def quote_line(text: str) -> str:
    """Return one line of source with tabs as spaces and control characters made visible."""
    return "".join(
        c if c.isprintable() else ("    " if c == "\t" else "\N{REPLACEMENT CHARACTER}")
        for c in text
    )


class DiagnosticReport:
    """Collects the diagnostics of one source."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []

    @property
    def full(self) -> bool:
        """Whether the report is full."""
        return len(self.errors) >= MAX_DIAGNOSTICS

    @property
    def errors(self) -> list[Diagnostic]:
        """The diagnostics that refuse the text."""
        return [d for d in self.diagnostics if d.severity is Severity.ERROR]

    def add(
        self,
        code: Code,
        message: str,
        span: TextSpan | None = None,
        *,
        hint: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Record one diagnostic; a repeated diagnostic about the same span is dropped.

        The first error is recorded even if the report is full: without it the text would pass.
        """
        message = _with_short_names(message)
        hint = _with_short_names(hint) if hint is not None else None
        diagnostic = Diagnostic(code, message, span, hint, severity or code.severity, self.source)
        is_error = diagnostic.severity is Severity.ERROR
        full = self.full if is_error else len(self.diagnostics) >= MAX_DIAGNOSTICS
        if not full and diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)

    def sorted(self) -> tuple[Diagnostic, ...]:
        """Return everything recorded, in the order of the text."""
        return tuple(sorted(self.diagnostics, key=lambda d: (d.span or TextSpan(0, 0), d.code)))

    def raise_errors(self, error: type[DiagnosticError]) -> None:
        """Raise an error with everything recorded, if that contains an error."""
        if self.errors:
            raise error(self.sorted())


class DiagnosticError(OmniError):
    """Source text was refused; `diagnostics` lists every error."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: Sequence[Diagnostic] = tuple(diagnostics)
        errors = [d for d in self.diagnostics if d.severity is Severity.ERROR]
        super().__init__(
            "\n\n".join(d.render() for d in errors),
            code=str(errors[0].code),
            category=Category.INVALID,
            details={"diagnostics": [d.to_json() for d in self.diagnostics]},
        )


class SchemaError(DiagnosticError):
    """A schema was refused."""


class QueryError(DiagnosticError):
    """A query, or the parameters given to it, were refused."""


# ----------------------------------------------------------------------
# Suggestions: the name that was probably meant


_MAX_NAME = 64
_CUTOFF = 0.7


def nearest_name(wrong: str, names: Iterable[str]) -> str | None:
    """Return the name closest to `wrong`, or None when nothing is close."""
    if len(wrong) > _MAX_NAME:
        return None
    by_folded: dict[str, str] = {}
    for name in sorted(names):
        by_folded.setdefault(name.lower(), name)
    close = get_close_matches(wrong.lower(), by_folded, n=1, cutoff=_CUTOFF)
    return by_folded[close[0]] if close else None


def did_you_mean(wrong: str, candidates: Iterable[str], *, prefix: str = "") -> str | None:
    """Return a hint that names the nearest known name, or lists a few when none is near."""
    names = sorted(candidates)
    nearest = nearest_name(wrong, names)
    if nearest is not None:
        return f"did you mean `{prefix}{nearest}`?"
    if not names:
        return None
    shown = ", ".join(f"`{prefix}{name}`" for name in names[:6])
    return f"known names: {shown}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")


# ----------------------------------------------------------------------
# Decoding bytes to source text


MAX_SOURCE_BYTES = 16 * 1024 * 1024

_BOM = "\ufeff"


def report_for_bytes(data: bytes, name: str, code: Code) -> DiagnosticReport:
    """Return the report of a new source; it holds an error when `data` is not usable text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8").removeprefix(_BOM)
        report = DiagnosticReport(
            SourceText(data.decode("utf-8", "replace").removeprefix(_BOM), name)
        )
        place = TextSpan(len(readable), len(readable) + 1)
        report.add(
            code,
            f"byte 0x{data[error.start]:02x} is not valid UTF-8",
            place,
            hint="save the file as UTF-8",
        )
        return report
    return report_for_text(text, name, code)


def report_for_text(text: str, name: str, code: Code) -> DiagnosticReport:
    """Return the report of a new source over text that is already decoded."""
    text = text.removeprefix(_BOM)
    report = DiagnosticReport(SourceText(text, name))
    size = len(text)
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        report = DiagnosticReport(SourceText(text.encode("utf-8", "replace").decode("utf-8"), name))
        report.add(
            code, "the text has an unpaired surrogate", TextSpan(error.start, error.start + 1)
        )
    if size > MAX_SOURCE_BYTES:
        report.add(
            code,
            f"the text is {size:,} bytes long; {MAX_SOURCE_BYTES:,} is the limit",
            TextSpan(0, 0),
            hint="split it into several files",
        )
    return report
