"""Embed the records of a file, line by line, into another file.

The output file is replaced atomically. Unchanged lines are copied.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from omnigraph.embed.embed_spec import (
    EmbedFileJob,
    EmbedFileMode,
    EmbedTarget,
    unreadable_file_error,
)
from omnigraph.embed.embedder import Embedder
from omnigraph.embed.provider import Role
from omnigraph.errors import InvalidInput, translate_disk_errors

BATCH_LINES = 1_024
"""Lines in one batch."""


@dataclass(slots=True)
class EmbedFileReport:
    """The result for a file; `model` is None if nothing is embedded."""

    job: EmbedFileJob
    records: int = 0
    selected: int = 0
    embedded: int = 0
    cleaned: int = 0
    model: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "input": str(self.job.input),
            "output": str(self.job.output),
            "records": self.records,
            "selected_records": self.selected,
            "embedded_records": self.embedded,
            "cleaned_records": self.cleaned,
            "mode": str(self.job.mode),
            "dimension": self.job.spec.dimension,
            "model": self.model,
        }


@dataclass(frozen=True, slots=True)
class EmbedFileProgress:
    """The progress of a file, with the same fields as that of a load."""

    phase: str
    rows: int
    bytes: int
    total_bytes: int | None = None


def embed_file(
    job: EmbedFileJob,
    embedder: Embedder,
    progress: Callable[[EmbedFileProgress], None] | None = None,
) -> EmbedFileReport:
    """Embed one file into another."""
    report = EmbedFileReport(job)
    if job.mode is not EmbedFileMode.CLEAN:
        report.model = embedder.model
    read = 0
    with _open_input(job.input) as lines, _replace_file(job.output) as output:
        size = os.fstat(lines.fileno()).st_size
        numbered = enumerate(lines, start=1)
        while part := list(islice(numbered, BATCH_LINES)):
            output.writelines(_EmbedLineBatch(job, report, embedder).output_lines(part))
            read += sum(len(line) for _, line in part)
            if progress is not None:
                progress(EmbedFileProgress(str(job.mode), report.records, read, size))
    return report


@contextmanager
def _open_input(path: Path) -> Iterator[BinaryIO]:
    try:
        opened = path.open("rb")
    except OSError as error:
        raise unreadable_file_error(path, error) from error
    with opened:
        yield opened


@contextmanager
def _replace_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces `path` on success and is deleted on an error."""
    unfinished = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = unfinished.open("wb")
    except OSError as error:
        raise unreadable_file_error(path, error) from error
    try:
        with translate_disk_errors(path):
            with opened:
                yield opened
            unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class _EmbedLineBatch:
    """A batch of input lines."""

    job: EmbedFileJob
    report: EmbedFileReport
    embedder: Embedder

    def output_lines(self, lines: list[tuple[int, bytes]]) -> list[bytes]:
        """Return the lines of the output."""
        kept: list[bytes | dict[str, Any]] = []
        texts: list[str] = []
        changed: list[tuple[dict[str, Any], str]] = []
        for number, line in lines:
            if not line.strip():
                continue
            self.report.records += 1
            record = self._record(number, line)
            target = self._selected(record)
            if target is None or not self._change(record, target):
                kept.append(line if line.endswith(b"\n") else line + b"\n")
                continue
            kept.append(record)
            if self.job.mode is not EmbedFileMode.CLEAN:
                texts.append(record_text(record["type"], record["data"], target))
                changed.append((record["data"], target.property))
        if texts:
            vectors = self.embedder.embed(texts, self.job.spec.dimension, Role.DOCUMENT)
            for (data, name), vector in zip(changed, vectors, strict=True):
                data[name] = [float(number) for number in vector]
            self.report.embedded += len(texts)
        return [line if isinstance(line, bytes) else _to_line(line) for line in kept]

    def _record(self, number: int, line: bytes) -> dict[str, Any]:
        place = f"{self.job.input}, line {number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise _bad_line(f"{place}: invalid JSON: {error}", number) from error
        if not isinstance(record, dict):
            raise _bad_line(f"{place}: a record must be a JSON object", number)
        if isinstance(record.get("type"), str) and not isinstance(record.get("data"), dict):
            raise _bad_line(f"{place}: a record with a type needs an object `data`", number)
        return record

    def _selected(self, record: Mapping[str, Any]) -> EmbedTarget | None:
        """Return the target of a record, or None if it is not selected."""
        type_ = record.get("type")
        if not isinstance(type_, str) or type_ not in self.job.spec.types:
            return None
        if self.job.types and type_ not in self.job.types:
            return None
        chosen = [s for s in self.job.selectors if s.type in (None, type_)]
        if self.job.selectors and not any(
            s.value in _value_texts(record["data"].get(s.field)) for s in chosen
        ):
            return None
        self.report.selected += 1
        return self.job.spec.types[type_]

    def _change(self, record: Mapping[str, Any], target: EmbedTarget) -> bool:
        """Return whether a selected record changes; remove its vector in mode `clean`."""
        data = record["data"]
        if self.job.mode is EmbedFileMode.CLEAN:
            if target.property not in data:
                return False
            del data[target.property]
            self.report.cleaned += 1
            return True
        return self.job.mode is not EmbedFileMode.FILL or data.get(target.property) in (None, [])


def record_text(type_: str, data: Mapping[str, Any], target: EmbedTarget) -> str:
    """Return the text of a record: its type, then a line for each non-empty property."""
    lines = [f"type: {type_}"]
    for name in target.fields:
        text = ", ".join(_value_texts(data.get(name)))
        if text.strip():
            lines.append(f"{name}: {text}")
    return "\n".join(lines)


def _value_texts(value: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    """Return the text of each item of a value; empty for null."""
    if value is None:
        return []
    if isinstance(value, list):
        return [word for item in value for word in _value_texts(item)]
    return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]


def _to_line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode() + b"\n"


def _bad_line(message: str, number: int) -> InvalidInput:
    return InvalidInput(message, code="embed_input_invalid", line=number)
