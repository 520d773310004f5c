"""This module turns bytes into source text, or says where they are not text."""

from __future__ import annotations

from omnigraph.lang.codes import Code
from omnigraph.lang.diagnostics import Report
from omnigraph.lang.source import Source, Span

MAX_SOURCE_BYTES = 16 * 1024 * 1024

_BOM = "\ufeff"


def decode(data: bytes, name: str, code: Code) -> Report:
    """Return the report of a new source; it holds an error when `data` is not usable text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8").removeprefix(_BOM)
        report = Report(Source(data.decode("utf-8", "replace").removeprefix(_BOM), name))
        place = Span(len(readable), len(readable) + 1)
        report.add(
            code,
            f"byte 0x{data[error.start]:02x} is not valid UTF-8",
            place,
            hint="save the file as UTF-8",
        )
        return report
    return admit(text, name, code)


def admit(text: str, name: str, code: Code) -> Report:
    """Return the report of a new source over text that is already decoded."""
    text = text.removeprefix(_BOM)
    report = Report(Source(text, name))
    size = len(text)
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        report = Report(Source(text.encode("utf-8", "replace").decode("utf-8"), name))
        report.add(
            code, "the text holds half of a surrogate pair", Span(error.start, error.start + 1)
        )
    if size > MAX_SOURCE_BYTES:
        report.add(
            code,
            f"the text is {size:,} bytes long; {MAX_SOURCE_BYTES:,} is the limit",
            Span(0, 0),
            hint="split it into several files",
        )
    return report
