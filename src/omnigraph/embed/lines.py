"""This module embeds the records of a file, line by line, into another file.

The other file appears whole or not at all. Lines that are not changed are copied as they are.
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

from omnigraph.embed.embedder import Embedder
from omnigraph.embed.provider import Role
from omnigraph.embed.seed import Job, Mode, Target, unreadable
from omnigraph.errors import InvalidInput, writing_file

AT_ONCE = 1_024
"""Lines read and embedded together."""


@dataclass(slots=True)
class FileReport:
    """What was done to a file; `model` is None when nothing embeds."""

    job: Job
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
class FileProgress:
    """How far a file is; the same facts a load tells."""

    phase: str
    rows: int
    bytes: int
    total_bytes: int | None = None


def embed_file(
    job: Job, embedder: Embedder, progress: Callable[[FileProgress], None] | None = None
) -> FileReport:
    """Embed one file into another."""
    report = FileReport(job)
    if job.mode is not Mode.CLEAN:
        report.model = embedder.model
    read = 0
    with _reading(job.input) as lines, _replacing(job.output) as output:
        size = os.fstat(lines.fileno()).st_size
        numbered = enumerate(lines, start=1)
        while part := list(islice(numbered, AT_ONCE)):
            output.writelines(_Part(job, report, embedder).made(part))
            read += sum(len(line) for _, line in part)
            if progress is not None:
                progress(FileProgress(str(job.mode), report.records, read, size))
    return report


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    try:
        opened = path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error
    with opened:
        yield opened


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write, which takes its name when it is complete and is gone otherwise."""
    unfinished = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = unfinished.open("wb")
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        with writing_file(path):
            with opened:
                yield opened
            unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class _Part:
    """Some lines on their way."""

    job: Job
    report: FileReport
    embedder: Embedder

    def made(self, lines: list[tuple[int, bytes]]) -> list[bytes]:
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
            if self.job.mode is not Mode.CLEAN:
                texts.append(record_text(record["type"], record["data"], target))
                changed.append((record["data"], target.property))
        if texts:
            vectors = self.embedder.embed(texts, self.job.spec.dimension, Role.DOCUMENT)
            for (data, name), vector in zip(changed, vectors, strict=True):
                data[name] = [float(number) for number in vector]
            self.report.embedded += len(texts)
        return [line if isinstance(line, bytes) else _written(line) for line in kept]

    def _record(self, number: int, line: bytes) -> dict[str, Any]:
        place = f"{self.job.input}, line {number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise _bad_line(f"{place}: invalid JSON: {error}", number) from error
        if not isinstance(record, dict):
            raise _bad_line(f"{place}: a record is a JSON object", number)
        if isinstance(record.get("type"), str) and not isinstance(record.get("data"), dict):
            raise _bad_line(f"{place}: a record with a type needs an object `data`", number)
        return record

    def _selected(self, record: Mapping[str, Any]) -> Target | None:
        """Return what is embedded of a record, if it is meant."""
        type_ = record.get("type")
        if not isinstance(type_, str) or type_ not in self.job.spec.types:
            return None
        if self.job.types and type_ not in self.job.types:
            return None
        chosen = [s for s in self.job.selectors if s.type in (None, type_)]
        if self.job.selectors and not any(
            s.value in _words(record["data"].get(s.field)) for s in chosen
        ):
            return None
        self.report.selected += 1
        return self.job.spec.types[type_]

    def _change(self, record: Mapping[str, Any], target: Target) -> bool:
        """Tell whether a selected record changes; take its vector away when that is asked for."""
        data = record["data"]
        if self.job.mode is Mode.CLEAN:
            if target.property not in data:
                return False
            del data[target.property]
            self.report.cleaned += 1
            return True
        return self.job.mode is not Mode.FILL or data.get(target.property) in (None, [])


def record_text(type_: str, data: Mapping[str, Any], target: Target) -> str:
    """Return the text of a record: its type, then a line for each property that is not empty."""
    lines = [f"type: {type_}"]
    for name in target.fields:
        text = ", ".join(_words(data.get(name)))
        if text.strip():
            lines.append(f"{name}: {text}")
    return "\n".join(lines)


def _words(value: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    """Return the text of each item of a value; null has none."""
    if value is None:
        return []
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]


def _written(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode() + b"\n"


def _bad_line(message: str, number: int) -> InvalidInput:
    return InvalidInput(message, code="embed_input_invalid", line=number)
